// A call made ready to be sent: opened, signed, and redacted for the book.
import { DaybookError, isDaybookError } from "../../core/error.ts";
import { advise } from "../../jobs/advice.ts";
import { sealedFor, type CallPolicy, type CallRow } from "../call.ts";
import type { Outgoing } from "../client/exchange.ts";
import { signatureHeaders } from "../client/sign.ts";
import type { RequestContent, ShownRequest } from "../request/content.ts";
import { markWith, shownHeaders, type Mark } from "../request/redact.ts";
import { scrubber, type Scrub } from "../request/secrets.ts";
import type { CallSettings } from "../settings.ts";

export type Sendable = Pick<
  CallRow,
  | ("tenant_id" | "id" | "name" | "method" | "host" | "correlation_id" | "due_at" | "request" | "content" | "key_id")
  | ("policy" | "send_key")
>;

export type ReadySend = {
  readonly call: Sendable;
  readonly outgoing: Outgoing;
  readonly policy: CallPolicy;
  /** What the book shows of it: the headers as JSON. */
  readonly shown: { readonly url: string; readonly headers: string; readonly body: string | null };
  readonly mark: Mark;
  readonly scrub: Scrub;
};

/** What is to be sent, or why it cannot be, with advice for the next try. */
export function readySend({ keys }: Pick<CallSettings, "keys">, call: Sendable, now: number): ReadySend | Error {
  const content = openContent(keys, call);
  if (content instanceof Error) return content;
  const mark = markWith(keys, call.tenant_id);
  const outgoing = outgoingOf(content, call, now);
  // It was redacted when it was submitted.
  const { url, body } = JSON.parse(call.request) as ShownRequest;
  return {
    ...{ call, outgoing, mark, scrub: scrubber(content), policy: JSON.parse(call.policy) as CallPolicy },
    shown: { url, headers: JSON.stringify(shownHeaders(outgoing.headers, mark)), body },
  };
}

const askAgainMs = 60_000;

function openContent(keys: CallSettings["keys"], call: Sendable): RequestContent | Error {
  if (call.key_id === null) return JSON.parse(call.content) as RequestContent;
  try {
    if (keys !== undefined) return JSON.parse(keys.open(call.content, sealedFor(call.tenant_id, call.id))) as never;
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "unavailable") return advise(error as Error, { again: false });
  }
  // Another process may have the key, so it is neither sent nor failed.
  const missing = `call ${call.id} is sealed with key ${call.key_id}, which this process does not have`;
  return advise(new DaybookError("unavailable", missing), { counts: false, atLeastMs: askAgainMs });
}

function outgoingOf(content: RequestContent, call: Sendable, now: number): Outgoing {
  const { method, url, secrets } = content;
  const body = content.body === null ? null : Buffer.from(content.body, content.base64 ? "base64" : "utf8");
  const timestamp = Math.floor(now / 1000);
  const signed =
    secrets.length === 0
      ? {}
      : signatureHeaders({ id: call.send_key, timestamp, body: body ?? Buffer.alloc(0), secrets });
  return {
    ...{ method, url: new URL(url), body },
    headers: {
      ...{ accept: "*/*", "accept-encoding": "identity", "user-agent": "daybook", "idempotency-key": call.send_key },
      ...content.headers,
      ...signed,
    },
  };
}
