// What is sent, complete and checked; and what people see of it.
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import type { KeyRing } from "../../core/seal.ts";
import { methods, type Method } from "../call.ts";
import { checkHeaders } from "./check-headers.ts";
import { checkUrl } from "./check-url.ts";
import { markWith, shownBody, shownHeaders, shownUrl, type Mark } from "./redact.ts";
import { secretsOf } from "./secrets.ts";

export type CallRequest = {
  /** Default GET, or POST when there is something to send. */
  readonly method?: Method;
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs every attempt by Standard Webhooks: a text, or `whsec_` and base64. While secrets change, give both, the new
   *  one first. */
  readonly secret?: string | readonly string[];
} & (
  | {
      /** The body as JSON. */
      readonly json?: unknown;
      readonly body?: undefined;
    }
  | {
      /** The body as it is. */
      readonly body?: string | Uint8Array;
      readonly json?: undefined;
    }
);

export const requestKeys = ["method", "url", "headers", "json", "body", "secret"] as const;

/** As it is kept and sent. Equal requests have equal JSON. */
export type RequestContent = {
  readonly method: Method;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The body is bytes, written as base64. */
  readonly base64: boolean;
  readonly secrets: readonly string[];
};

export type ShownRequest = {
  readonly method: Method;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly bodyBytes: number;
  readonly signed: boolean;
};

export function checkRequest(given: CallRequest): RequestContent {
  const url = checkUrl(given.url);
  const headers = checkHeaders(given.headers);
  const { body, base64, type } = checkBody(given);
  const method = checkMethod(given.method ?? (body === null ? "GET" : "POST"));
  if (method === "GET" && body !== null) throw invalid("a GET has no body: use POST, or put it into the url");
  if (type !== null) headers["content-type"] ??= type;
  return { method, url: url.href, headers, body, base64, secrets: checkSecrets(given.secret) };
}

function checkMethod(method: unknown): Method {
  const found = methods.find((each) => each === method);
  if (found !== undefined) return found;
  throw invalid(`method ${quote(method)} is not one of ${methods.join(", ")}`);
}

function checkBody({ json, body }: CallRequest): { body: string | null; base64: boolean; type: string | null } {
  if (json !== undefined && body !== undefined) throw invalid('give "json" or "body", not both');
  const bytesMax = limits.callBodyBytesMax;
  if (json !== undefined) {
    return { body: toJson(json, { what: "json", bytesMax }), base64: false, type: "application/json" };
  }
  if (body === undefined) return { body: null, base64: false, type: null };
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw invalid(`body is ${quote(body)}: give text or bytes, or use "json"`);
  }
  const bytes = Buffer.byteLength(body);
  if (bytes > bytesMax) {
    throw invalid(
      `the body is ${bytes} bytes, over the limit of ${bytesMax}: put it into a bucket and send its address`,
    );
  }
  if (typeof body === "string" && body.isWellFormed() && !body.includes("\0")) {
    return { body, base64: false, type: "text/plain;charset=utf-8" };
  }
  const type = typeof body === "string" ? "text/plain;charset=utf-8" : "application/octet-stream";
  return { body: Buffer.from(body as string).toString("base64"), base64: true, type };
}

function checkSecrets(given: unknown = []): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (list.length > 5) throw invalid(`${list.length} secrets: at most five`);
  return list.map((each) => {
    if (typeof each !== "string" || each.length < 16 || each.length > 512) {
      throw invalid("a webhook secret is a text of 16 to 512 characters"); // which is not shown
    }
    // What is no base64 would be read as a short key or none, with which anybody could sign.
    if (each.startsWith("whsec_") && !isBase64(each.slice(6))) {
      throw invalid('a webhook secret that begins with "whsec_" goes on with at least 16 bytes as base64');
    }
    return each;
  });
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && Buffer.from(text, "base64").length >= 16;
}

export function shownRequest(content: RequestContent, mark: Mark): ShownRequest {
  const { method, headers, body, base64 } = content;
  const bodyBytes = body === null ? 0 : Buffer.byteLength(body, base64 ? "base64" : "utf8");
  const type = headers["content-type"] ?? "";
  return {
    ...{ method, url: shownUrl(new URL(content.url)), headers: shownHeaders(headers, mark), bodyBytes },
    body: body === null ? null : base64 ? `[${bodyBytes} bytes #${mark(body)}]` : shownBody(body, type, mark),
    signed: content.secrets.length > 0,
  };
}

/** The columns that hold a request: for sending, and for looking at. Without a key nothing secret may be in it. */
export function keptRequest(
  content: RequestContent,
  { keys, tenant, about }: { readonly keys: KeyRing | undefined; readonly tenant: string; readonly about: string },
): { request: string; content: string; key_id: string | null } {
  const request = JSON.stringify(shownRequest(content, markWith(keys, tenant)));
  const text = toJson(content, { what: "request", bytesMax: 2 * limits.callBodyBytesMax });
  if (keys !== undefined) return { request, content: keys.seal(text, about), key_id: keys.id };
  const [secret] = secretsOf(content);
  if (secret !== undefined) {
    throw invalid(
      `${secret.where} would be kept in the book in clear: give a key with DAYBOOK_KEY or open(…, { calls: { key } }), ` +
        "and requests are sealed with it",
    );
  }
  return { request, content: text, key_id: null };
}
