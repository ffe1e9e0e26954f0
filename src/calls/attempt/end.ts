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

/** The columns of the attempt's row that its end sets; what is left out stays as the row began. */
export type AttemptEnd = Timing & {
  readonly response_status?: number;
  readonly response_headers?: string;
  readonly response_body?: string;
  readonly response_base64?: number;
  /** How many bytes of the answer were read; if it is truncated, there were more. */
  readonly response_bytes?: number;
  readonly response_truncated?: number;
  readonly hops?: string | null;
  readonly error_kind: ErrorKind | null;
  readonly error_message: string | null;
  readonly first_byte_ms?: number;
};

export type Timing = Readonly<Phases> & { readonly total_ms: number };

export function failed({ kind, message }: Failure, scrub: Scrub, timing: Timing): AttemptEnd {
  return { error_kind: kind, error_message: storableText(scrub(message), 500), ...timing };
}

export function answered(answer: Answer, ofRequest: Scrub, mark: Mark, timing: Timing): AttemptEnd {
  const { status, headers, body, truncated, hops, firstByteMs } = answer;
  const ok = status >= 200 && status < 300;
  const ofAnswer = scrubValues(answer.secrets);
  const scrub: Scrub = (text) => ofAnswer(ofRequest(text));
  return {
    response_status: status,
    response_headers: JSON.stringify(scrubbed(shownHeaders(headers, mark), scrub)),
    response_bytes: body.length,
    response_truncated: truncated ? 1 : 0,
    ...shownAnswer(body, headers["content-type"] ?? "", scrub),
    hops: hops.length === 0 ? null : JSON.stringify(hops.map((hop) => scrub(hop))),
    error_kind: ok ? null : "status",
    error_message: ok ? null : `it was answered with status ${status}`,
    first_byte_ms: firstByteMs,
    ...timing,
  };
}

// Each value separately: cutting a secret that looks like JSON out of the whole text would break the JSON.
function scrubbed(headers: Readonly<Record<string, string>>, scrub: Scrub): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [scrub(name), scrub(value)]));
}

/** Text as text, with secrets cut out; anything else as base64. */
function shownAnswer(bytes: Buffer, type: string, scrub: Scrub): Pick<AttemptEnd, "response_body" | "response_base64"> {
  if (bytes.length === 0) return {};
  const text = asText(bytes);
  if (text === undefined) return { response_body: bytes.toString("base64"), response_base64: 1 };
  return { response_body: scrub(/\bjson\b/i.test(type) ? withoutFields(text) : text) };
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
  if (end?.response_body === undefined || end.response_base64 === 1) return null;
  return storableText(end.response_body, limits.callSnippetBytesMax);
}

/** Answers that may differ next time. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const passingKinds: ReadonlySet<ErrorKind> = new Set(["dns", "connect", "tls", "timeout", "reset", "protocol"]);

export function adviceAfter(end: AttemptEnd, now: number): RetryAdvice {
  const { error_kind: kind } = end;
  if (kind !== "status") return { again: kind !== null && passingKinds.has(kind) };
  if (!passingStatuses.has(end.response_status ?? 0)) return { again: false };
  const afterMs = retryAfterMs(end, now);
  return afterMs === undefined ? { again: true } : { again: true, atLeastMs: afterMs };
}

/** How long the server's Retry-After asks us to wait (seconds or a date), capped. */
function retryAfterMs({ response_headers: shown = "{}" }: AttemptEnd, now: number): number | undefined {
  const headers = JSON.parse(shown) as Record<string, string | undefined>;
  const text = headers["retry-after"]?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), limits.callRetryAfterMsMax) : undefined;
}

/** Whether the host is up: any answer proves it, even a refusal. Undefined when the attempt says nothing about it. */
export function hostIsThere({ response_status: status, error_kind: kind }: AttemptEnd): boolean | undefined {
  if (status !== undefined) return ![502, 503, 504].includes(status);
  if (kind === "dns" || kind === "connect" || kind === "tls" || kind === "timeout" || kind === "reset") return false;
  return kind === "protocol" ? true : undefined;
}
