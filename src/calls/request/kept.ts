// How the two sides of a call are kept in the book, opened again, and shown. What was sent and what came back is sealed with a key from
// outside the book. Who may read the book sees where a call went, when, and how it ended; what was said is revealed to who may
// see secrets. Without a key a call that may have a secret is kept until it has ended, because it has to be sent, and its answers are not.
import { createHash } from "node:crypto";
import { DaybookError, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { openSealed, type KeyRing } from "../../core/seal.ts";
import type { RequestContent } from "./content.ts";
import { isShown, mayHaveSecret, mayHoldSecret, sureSecretOf } from "./secret.ts";

/** `sealed` with a key from outside the book; in `clear`, because there is no key and nothing that may be secret; or there is no key
 *  and something may be secret, so that it is kept `until_ended` and no longer. */
export type Kept = "sealed" | "clear" | "until_ended";

type Keys = KeyRing | undefined;

/** What stands for a text that is not shown. */
export const hidden = "[hidden]";

export type ShownRequest = {
  readonly method: RequestContent["method"];
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The body is bytes, written as base64. */
  readonly base64: boolean;
  readonly bodyBytes: number;
  readonly signed: boolean;
};

/** With everything that was said, but for the secrets that sign it. */
export function revealedRequest(content: RequestContent): ShownRequest {
  const { method, url, headers, body, base64, secrets } = content;
  const bodyBytes = body === null ? 0 : Buffer.byteLength(body, base64 ? "base64" : "utf8");
  return { method, url, headers, body, base64, bodyBytes, signed: secrets.length > 0 };
}

/** Where it goes, and the shape of what is said. */
function hiddenRequest(content: RequestContent): ShownRequest {
  const { body, ...rest } = revealedRequest(content);
  const { origin, pathname, search } = new URL(content.url);
  const shown = ([name, value]: [string, string]): [string, string] => [name, isShown(name, value) ? value : hidden];
  return {
    ...rest,
    url: `${origin}/${pathname === "/" && search === "" ? "" : hidden}`,
    headers: Object.fromEntries(Object.entries(content.headers).map(shown)),
    body: body === null ? null : hidden,
    base64: false,
  };
}

export type RequestColumns = {
  readonly request: string;
  readonly content: string;
  readonly key_id: string | null;
  readonly kept: Kept;
  readonly fingerprint: string | null;
};

type About = { readonly keys: Keys; readonly tenant: string; readonly id: string };

/** The columns of a request. */
export function keepRequest(content: RequestContent, { keys, tenant, id }: About): RequestColumns {
  const columns = keep(content, keys, sealedFor(tenant, id));
  return { ...columns, fingerprint: columns.kept === "until_ended" ? fingerprintOf(id, columns.content) : null };
}

export type WebhookColumns = Omit<RequestColumns, "fingerprint">;

/** The same of a webhook, of which calls are made later: those of one tenant, or of any ("*"). */
export function keepWebhook(content: RequestContent, keys: Keys, whose: string): WebhookColumns {
  if (keys === undefined && mayHaveSecret(content)) {
    throw invalid(
      `the address or a header of the webhook at ${new URL(content.url).host} may be a secret, and without a key the book would keep ` +
        "it in clear as long as it is named: give a key with DAYBOOK_KEY or open(…, { calls: { key } }), and it is sealed",
    );
  }
  return keep(content, keys, webhookFor(whose));
}

/** Whether a webhook that is kept says the same, so that it may stay. Without the key of a sealed one nobody can tell but by what is
 *  shown of it. One in clear does not stay where there is a key. */
export function isSameWebhook(keys: Keys, old: WebhookColumns, whose: string, content: RequestContent): boolean {
  const { key_id: keyId, content: text } = old;
  if (keys === undefined && keyId !== null) return old.request === JSON.stringify(hiddenRequest(content));
  if (keys === undefined || keyId === null) return keys === undefined && text === textOf(content);
  return keys.opens(keyId) && keys.open(text, webhookFor(whose)) === textOf(content);
}

/** What a call keeps that brings a message to a kept webhook. It is made without the key. */
export function withMessage({ content, ...columns }: WebhookColumns, whose: string, body: string): RequestColumns {
  const shown = { ...(JSON.parse(columns.request) as ShownRequest), bodyBytes: Buffer.byteLength(body) };
  const notice: NoticeContent = { webhook: content, whose, body };
  return { ...columns, request: JSON.stringify(shown), content: JSON.stringify(notice), fingerprint: null };
}

type NoticeContent = { readonly webhook: string; readonly whose: string; readonly body: string };

// Sealed text is no JSON, and the JSON of a request begins with another name.
function noticeIn(content: string): NoticeContent | undefined {
  return content.startsWith('{"webhook":') ? (JSON.parse(content) as NoticeContent) : undefined;
}

// Without a key, a request with a header that is always a secret is refused.
function keep(content: RequestContent, keys: Keys, about: string): WebhookColumns {
  const request = JSON.stringify(hiddenRequest(content));
  const text = textOf(content);
  if (keys !== undefined) {
    return { request, content: keys.seal(text, about), key_id: keys.id, kept: "sealed" };
  }
  const secret = sureSecretOf(content);
  if (secret !== undefined) {
    throw invalid(
      `${secret} would be kept in the book in clear: give a key with DAYBOOK_KEY or open(…, { calls: { key } }), ` +
        "and requests are sealed with it",
    );
  }
  return { request, content: text, key_id: null, kept: mayHaveSecret(content) ? "until_ended" : "clear" };
}

function textOf(content: RequestContent): string {
  return toJson(content, { what: "request", bytesMax: 2 * limits.callBodyBytesMax });
}

// By which the same request is known again after it has left the book. The id makes equal requests of two calls different.
function fingerprintOf(id: string, text: string): string {
  return createHash("sha256").update(`${id}\n${text}`).digest("base64url");
}

/** What statements read of a kept request. */
export type KeptRequest = {
  readonly id: string;
  readonly tenant_id: string;
  readonly content: string | null;
  readonly key_id: string | null;
};

type Sealed = Omit<KeptRequest, "content">;

/** The request as it was given; undefined when it has left the book. */
export function openRequest(keys: Keys, { id, tenant_id: tenant, content, key_id: keyId }: KeptRequest) {
  if (content === null) return undefined;
  const open = (text: string, about: string): RequestContent =>
    JSON.parse(keyId === null ? text : openSealed(keys, text, about)) as RequestContent;
  const notice = noticeIn(content);
  if (notice === undefined) return open(content, sealedFor(tenant, id));
  const { webhook, whose, body } = notice;
  if (whose === "*" || whose === tenant) return { ...open(webhook, webhookFor(whose)), body };
  throw new DaybookError("internal", `the webhook of call ${id} is another tenant's: it is not sent`);
}

export function isSameRequest(
  keys: Keys,
  kept: KeptRequest & { readonly fingerprint: string | null },
  other: RequestContent,
): boolean {
  const content = openRequest(keys, kept);
  if (content === undefined) return kept.fingerprint === fingerprintOf(kept.id, textOf(other));
  return textOf(content) === textOf(other);
}

/** What came back. */
export type KeptAnswer = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The body is bytes, written as base64. */
  readonly base64: boolean;
  /** Where redirects led. */
  readonly hops: readonly string[];
};

type AnswerColumns = { readonly answer?: string; readonly key_id?: string };

/** The columns of an answer; none when it is not kept. */
export function keepAnswer(
  answer: KeptAnswer,
  { keys, tenant, id, runId, kept }: About & { readonly runId: string; readonly kept: Kept },
): AnswerColumns {
  if (keys !== undefined) {
    return { answer: keys.seal(JSON.stringify(answer), answerSealedFor(tenant, id, runId)), key_id: keys.id };
  }
  const { headers, body, base64 } = answer;
  if (kept !== "clear" || base64 || mayHoldSecret(body ?? "", headers["content-type"] ?? "text/plain")) return {};
  const harmless = Object.entries(headers).filter(([name, value]) => isShown(name, value));
  return { answer: JSON.stringify({ ...answer, headers: Object.fromEntries(harmless), hops: [] }) };
}

export type KeptAnswerRow = Sealed & { readonly run_id: string; readonly answer: string | null };

export function openAnswer(keys: Keys, row: KeptAnswerRow): KeptAnswer | undefined {
  const { id, tenant_id: tenant, run_id: runId, answer, key_id: keyId } = row;
  if (answer === null) return undefined;
  const about = answerSealedFor(tenant, id, runId);
  return JSON.parse(keyId === null ? answer : openSealed(keys, answer, about)) as KeptAnswer;
}

/** The content of a request, sealed with the first key. Of the call of a notice the webhook is, for whose calls it was. */
export function resealRequest(
  keys: KeyRing,
  { id, tenant_id: tenant, key_id: keyId }: Sealed,
  content: string,
): string {
  const notice = noticeIn(content);
  if (notice === undefined) return sealAnew(keys, keyId, content, sealedFor(tenant, id));
  const { webhook, whose, body } = notice;
  const anew: NoticeContent = { webhook: sealAnew(keys, keyId, webhook, webhookFor(whose)), whose, body };
  return JSON.stringify(anew);
}

export function resealAnswer(
  keys: KeyRing,
  { id, tenant_id: tenant, key_id: keyId }: Sealed,
  runId: string,
  answer: string,
) {
  return sealAnew(keys, keyId, answer, answerSealedFor(tenant, id, runId));
}

export function resealWebhook(keys: KeyRing, columns: WebhookColumns, whose: string): WebhookColumns {
  const content = sealAnew(keys, columns.key_id, columns.content, webhookFor(whose));
  return { ...columns, content, key_id: keys.id, kept: "sealed" };
}

function sealAnew(keys: KeyRing, keyId: string | null, text: string, about: string): string {
  return keys.seal(keyId === null ? text : keys.open(text, about), about);
}

// What binds sealed text to its call and its attempt: it opens only there.
function sealedFor(tenant: string, id: string): string {
  return `call ${id}\n${tenant}`;
}

function webhookFor(whose: string): string {
  return `webhook\n${whose}`;
}

function answerSealedFor(tenant: string, id: string, runId: string): string {
  return `call ${id}\n${tenant}\n${runId}`;
}
