// How an attempt ended, as its row keeps it (redacted and within its limits), and what that means for the next try.
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/quote.ts";
import type { RetryAdvice } from "../../core/retry.ts";
import type { ErrorKind } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import type { Answer, Failure } from "../client/exchange.ts";
import {
  isSecretName,
  redacted,
  scrubValues,
  shownHeaders,
  withoutSecrets,
  type Mark,
  type Scrub,
} from "../request/redact.ts";

export type AttemptEnd = {
  readonly status: number | null;
  readonly headers: string | null;
  readonly body: string | null;
  readonly base64: boolean;
  /** How many bytes of the answer were read; if it is truncated, there were more. */
  readonly bytes: number | null;
  readonly truncated: boolean;
  readonly hops: string | null;
  readonly errorKind: ErrorKind | null;
  readonly errorMessage: string | null;
  readonly phases: Phases;
  readonly firstByteMs: number | null;
  readonly totalMs: number;
};

type Timing = { readonly phases: Phases; readonly totalMs: number };

/** The fields of an attempt without an answer. */
export const noAnswer = {
  status: null,
  headers: null,
  body: null,
  base64: false,
  bytes: null,
  truncated: false,
  hops: null,
  firstByteMs: null,
};

export function failed({ kind, message }: Failure, scrub: Scrub, { phases, totalMs }: Timing): AttemptEnd {
  return { ...noAnswer, errorKind: kind, errorMessage: storableText(scrub(message), 500), phases, totalMs };
}

export function answered(answer: Answer, ofRequest: Scrub, mark: Mark, { phases, totalMs }: Timing): AttemptEnd {
  const { status, headers, body, truncated, hops, firstByteMs } = answer;
  const ok = status >= 200 && status < 300;
  const ofAnswer = scrubValues(answer.secrets);
  const scrub: Scrub = (text) => ofAnswer(ofRequest(text));
  return {
    status,
    headers: JSON.stringify(scrubbed(shownHeaders(headers, mark), scrub)),
    bytes: body.length,
    truncated,
    ...shownAnswer(body, headers["content-type"] ?? "", scrub),
    hops: hops.length === 0 ? null : JSON.stringify(hops.map((hop) => scrub(hop))),
    errorKind: ok ? null : "status",
    errorMessage: ok ? null : `it was answered with status ${status}`,
    phases,
    firstByteMs,
    totalMs,
  };
}

// Each value separately: cutting a secret that looks like JSON out of the whole text would break the JSON.
function scrubbed(headers: Readonly<Record<string, string>>, scrub: Scrub): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [scrub(name), scrub(value)]));
}

/** Text as text, with secrets cut out; anything else as base64. */
function shownAnswer(bytes: Buffer, type: string, scrub: Scrub): { body: string | null; base64: boolean } {
  if (bytes.length === 0) return { body: null, base64: false };
  const text = asText(bytes);
  if (text === undefined) return { body: bytes.toString("base64"), base64: true };
  return { body: scrub(/\bjson\b/i.test(type) ? withoutFields(text) : text), base64: false };
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function asText(bytes: Buffer): string | undefined {
  // The limit may have cut a character in two.
  for (let cut = 0; cut < 4; cut++) {
    try {
      const text = decoder.decode(bytes.subarray(0, bytes.length - cut));
      return text.includes("\0") ? undefined : text;
    } catch {
      continue;
    }
  }
  return undefined;
}

// A truncated answer is not valid JSON: its secret fields are then found by a pattern.
function withoutFields(text: string): string {
  try {
    return JSON.stringify(withoutSecrets(JSON.parse(text)));
  } catch {
    return text.replaceAll(/"((?:[^"\\]|\\.){1,100})"\s*:\s*"(?:[^"\\]|\\.)*"?/g, (pair, name: string) =>
      isSecretName(name) ? `"${name}":"${redacted}"` : pair,
    );
  }
}

/** The part of a body that facts carry. */
export function snippetOf(end: AttemptEnd | undefined): string | null {
  if (end === undefined || end.body === null || end.base64) return null;
  return storableText(end.body, limits.callSnippetBytesMax);
}

/** Answers that may differ next time. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const passingKinds: ReadonlySet<ErrorKind> = new Set(["dns", "connect", "tls", "timeout", "reset", "protocol"]);

export function adviceAfter(end: AttemptEnd, now: number): RetryAdvice {
  if (end.errorKind !== "status") return { again: end.errorKind !== null && passingKinds.has(end.errorKind) };
  if (!passingStatuses.has(end.status ?? 0)) return { again: false };
  const afterMs = retryAfterMs(end, now);
  return afterMs === undefined ? { again: true } : { again: true, atLeastMs: afterMs };
}

/** How long the server's Retry-After asks us to wait (seconds or a date), capped. */
function retryAfterMs(end: Pick<AttemptEnd, "headers">, now: number): number | undefined {
  const headers = JSON.parse(end.headers ?? "{}") as Record<string, string | undefined>;
  const text = headers["retry-after"]?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), limits.callRetryAfterMsMax) : undefined;
}

/** Whether the host is up: any answer proves it, even a refusal. Undefined when the attempt says nothing about it. */
export function hostIsThere(end: Pick<AttemptEnd, "status" | "errorKind">): boolean | undefined {
  if (end.status !== null) return ![502, 503, 504].includes(end.status);
  const { errorKind: kind } = end;
  if (kind === "dns" || kind === "connect" || kind === "tls" || kind === "timeout" || kind === "reset") return false;
  return kind === "protocol" ? true : undefined;
}
