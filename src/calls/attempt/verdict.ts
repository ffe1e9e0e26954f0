// What an end means: for trying again, and for what we think of the host.
import { limits } from "../../core/limits.ts";
import type { RetryAdvice } from "../../jobs/advice.ts";
import type { ErrorKind } from "../call.ts";
import type { AttemptEnd } from "./end.ts";

/** Answers that may be another one next time. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const passingKinds: ReadonlySet<ErrorKind> = new Set([
  ...(["dns", "connect", "tls", "timeout", "reset", "protocol"] as const),
]);

export function adviceAfter(end: AttemptEnd, now: number): RetryAdvice {
  if (end.errorKind !== "status") return { again: end.errorKind !== null && passingKinds.has(end.errorKind) };
  if (!passingStatuses.has(end.status ?? 0)) return { again: false };
  const afterMs = retryAfterMs(end, now);
  return afterMs === undefined ? { again: true } : { again: true, atLeastMs: afterMs };
}

/** How long the server asks us to wait: seconds or a date, within what is sensible. */
export function retryAfterMs(end: Pick<AttemptEnd, "headers">, now: number): number | undefined {
  const headers = JSON.parse(end.headers ?? "{}") as Record<string, string | undefined>;
  const text = headers["retry-after"]?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), limits.callRetryAfterMsMax) : undefined;
}

/** Whether the host is there at all: an answer says so, even one that refuses. Undefined when nothing was learned. */
export function hostIsThere(end: Pick<AttemptEnd, "status" | "errorKind">): boolean | undefined {
  if (end.status !== null) return ![502, 503, 504].includes(end.status);
  const { errorKind: kind } = end;
  if (kind === "dns" || kind === "connect" || kind === "tls" || kind === "timeout" || kind === "reset") return false;
  return kind === "protocol" ? true : undefined;
}
