// How an attempt ended, as its row keeps it, and what that means for the next try.
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/quote.ts";
import type { RetryAdvice } from "../../core/retry.ts";
import type { ErrorKind } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import type { Answer, Failure } from "../client/exchange.ts";
import type { KeptAnswer } from "../request/kept.ts";

/** The columns of the attempt's row that its end sets; what is left out stays as the row began. */
export type AttemptEnd = Timing & {
  readonly response_status?: number;
  /** JSON of `KeptAnswer`: sealed when `key_id` is set. */
  readonly answer?: string;
  readonly key_id?: string;
  /** How many bytes of the answer were read; if it is truncated, there were more. */
  readonly response_bytes?: number;
  readonly response_truncated?: number;
  readonly error_kind: ErrorKind | null;
  readonly error_message: string | null;
  readonly first_byte_ms?: number;
};

export type Timing = Readonly<Phases> & { readonly total_ms: number };

export function failed({ kind, message }: Failure, timing: Timing): AttemptEnd {
  return { error_kind: kind, error_message: storableText(message, 500), ...timing };
}

/** What everybody may know of an answer. */
export function answered({ status, body, truncated, firstByteMs }: Answer, timing: Timing): AttemptEnd {
  const ok = status >= 200 && status < 300;
  return {
    response_status: status,
    response_bytes: body.length,
    response_truncated: truncated ? 1 : 0,
    error_kind: ok ? null : "status",
    error_message: ok ? null : `it was answered with status ${status}`,
    first_byte_ms: firstByteMs,
    ...timing,
  };
}

/** What came back: text as text, anything else as base64. */
export function saidIn({ headers, body: bytes, hops }: Answer): KeptAnswer {
  const text = asText(bytes);
  const body = bytes.length === 0 ? null : (text ?? bytes.toString("base64"));
  return { headers, body, base64: text === undefined, hops };
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

/** Answers that may differ next time. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const passingKinds: ReadonlySet<ErrorKind> = new Set(["dns", "connect", "tls", "timeout", "reset", "protocol"]);

/** `retryAfter` is the header of that name. */
export function adviceAfter(end: AttemptEnd, retryAfter: string | undefined, now: number): RetryAdvice {
  const { error_kind: kind } = end;
  if (kind !== "status") return { again: kind !== null && passingKinds.has(kind) };
  if (!passingStatuses.has(end.response_status ?? 0)) return { again: false };
  const afterMs = retryAfterMs(retryAfter?.trim() ?? "", now);
  return afterMs === undefined ? { again: true } : { again: true, atLeastMs: afterMs };
}

/** How long the server asks us to wait (seconds or a date), capped. */
function retryAfterMs(text: string, now: number): number | undefined {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), limits.callRetryAfterMsMax) : undefined;
}

/** Whether the host is up: any answer proves it, even a refusal. Undefined when the attempt says nothing about it. */
export function hostIsThere({ response_status: status, error_kind: kind }: AttemptEnd): boolean | undefined {
  if (status !== undefined) return ![502, 503, 504].includes(status);
  if (kind === "dns" || kind === "connect" || kind === "tls" || kind === "timeout" || kind === "reset") return false;
  return kind === "protocol" ? true : undefined;
}
