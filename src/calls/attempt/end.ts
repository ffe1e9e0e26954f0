// How an attempt ended, as its row keeps it: everything in it is redacted and within its limits.
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/storable-text.ts";
import type { ErrorKind } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import type { Answer } from "../client/exchange.ts";
import type { Failure } from "../client/failure.ts";
import { redacted, shownHeaders, withoutSecrets, type Mark } from "../request/redact.ts";
import { isSecretName } from "../request/secret-name.ts";
import { scrubValues, type Scrub } from "../request/secrets.ts";

export type AttemptEnd = {
  readonly status: number | null;
  readonly headers: string | null;
  readonly body: string | null;
  readonly base64: boolean;
  /** How much of the answer was read; when it is truncated there was more. */
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

export function failed({ kind, message }: Failure, scrub: Scrub, { phases, totalMs }: Timing): AttemptEnd {
  return {
    ...{ status: null, headers: null, body: null, base64: false, bytes: null, truncated: false, hops: null },
    ...{ errorKind: kind, errorMessage: storableText(scrub(message), 500), phases, firstByteMs: null, totalMs },
  };
}

export function answered(answer: Answer, ofRequest: Scrub, mark: Mark, { phases, totalMs }: Timing): AttemptEnd {
  const { status, headers, body, truncated, hops, firstByteMs } = answer;
  const ok = status >= 200 && status < 300;
  const ofAnswer = scrubValues(answer.secrets);
  const scrub: Scrub = (text) => ofAnswer(ofRequest(text));
  return {
    ...{ status, headers: JSON.stringify(scrubbed(shownHeaders(headers, mark), scrub)), bytes: body.length, truncated },
    ...shownAnswer(body, headers["content-type"] ?? "", scrub),
    hops: hops.length === 0 ? null : JSON.stringify(hops.map((hop) => scrub(hop))),
    errorKind: ok ? null : "status",
    errorMessage: ok ? null : `it was answered with status ${status}`,
    ...{ phases, firstByteMs, totalMs },
  };
}

// Each by itself: cut out of the JSON as a whole, what looks like JSON would break it.
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
  // The limit may have cut a letter in two.
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

// An answer that was cut is no JSON any more; then its fields are found by how they look.
function withoutFields(text: string): string {
  try {
    return JSON.stringify(withoutSecrets(JSON.parse(text)));
  } catch {
    return text.replaceAll(/"((?:[^"\\]|\\.){1,100})"\s*:\s*"(?:[^"\\]|\\.)*"?/g, (pair, name: string) =>
      isSecretName(name) ? `"${name}":"${redacted}"` : pair,
    );
  }
}

/** What facts say of a body. */
export function snippetOf(end: AttemptEnd | undefined): string | null {
  if (end === undefined || end.body === null || end.base64) return null;
  return storableText(end.body, limits.callSnippetBytesMax);
}
