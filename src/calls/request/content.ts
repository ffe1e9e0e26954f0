// The request of a call: checked, and as it goes out.
import { createHmac } from "node:crypto";
import { invalid } from "../../core/error.ts";
import { isPlain, toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { methods, type Method } from "../call.ts";

export type CallRequest = {
  /** Default GET, or POST when there is something to send. */
  readonly method?: Method;
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs every attempt by Standard Webhooks: a text, or `whsec_` and base64. While a secret is being changed, give both, the
   *  new one first. */
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

/** The request as it is kept and sent. Equal requests have equal JSON. */
export type RequestContent = {
  readonly method: Method;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The body is bytes, written as base64. */
  readonly base64: boolean;
  readonly secrets: readonly string[];
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
    // Text that is not base64 would decode to a short key or none, and a stranger could sign with that.
    if (each.startsWith("whsec_") && !isBase64(each.slice(6))) {
      throw invalid('a webhook secret that begins with "whsec_" goes on with at least 16 bytes as base64');
    }
    return each;
  });
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && Buffer.from(text, "base64").length >= 16;
}

// Headers that only the client may set.
const forbidden: ReadonlySet<string> = new Set(
  `host connection keep-alive transfer-encoding content-length upgrade te trailer expect http2-settings via forwarded
  x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip webhook-id webhook-timestamp webhook-signature date
  accept-charset access-control-request-method`.split(/\s+/),
);

const tokenPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Checks headers and returns them by their lower-case names. A value cannot smuggle in another header. */
function checkHeaders(given: unknown): Record<string, string> {
  if (given === undefined) return {};
  // Headers and a Map have none of their own, and would count as none given.
  if (!isPlain(given)) {
    throw invalid(
      `headers are ${quote(given)}: give pairs of names and texts, such as { accept: "application/json" }; Object.fromEntries(headers) makes them`,
    );
  }
  const entries = Object.entries(given);
  if (entries.length > limits.callHeadersMax) {
    throw invalid(`${entries.length} headers: at most ${limits.callHeadersMax}`);
  }
  const headers = new Map<string, string>();
  for (const [given_, value] of entries) {
    const name = given_.toLowerCase();
    if (!tokenPattern.test(name)) throw invalid(`${quote(given_)} is not the name of a header`);
    if (forbidden.has(name) || name.startsWith("proxy-") || name.startsWith("sec-")) {
      throw invalid(`the header ${quote(given_)} is the client's own: leave it out`);
    }
    if (headers.has(name)) throw invalid(`the header ${quote(given_)} is there twice, but for its case`);
    headers.set(name, checkValue(given_, value));
  }
  return Object.fromEntries(headers);
}

// Never show the value: the refused header may be the one with the token.
function checkValue(name: string, value: unknown): string {
  if (typeof value !== "string") throw invalid(`the header ${quote(name)} is no text`);
  if (Buffer.byteLength(value) > limits.callHeaderBytesMax) {
    throw invalid(`the header ${quote(name)} is longer than ${limits.callHeaderBytesMax} bytes`);
  }
  // Visible ASCII, space and tab. Servers disagree about the meaning of other bytes.
  if (!/^[\t\x20-\x7e]*$/.test(value)) {
    throw invalid(`the header ${quote(name)} has a line break, a control character or a letter beyond ASCII`);
  }
  return value.trim();
}

/** Checks what can be known about a URL before it is requested. */
export function checkUrl(given: unknown): URL {
  if (typeof given !== "string" && !(given instanceof URL)) throw invalid(`a call needs a url, such as ${example}`);
  const text = String(given);
  if (Buffer.byteLength(text) > limits.callUrlBytesMax) {
    throw invalid(`the url is ${Buffer.byteLength(text)} bytes long; at most ${limits.callUrlBytesMax}`);
  }
  // A URL parser silently drops line breaks, and then the url is not what the caller meant.
  if (/[\s\p{Cc}]/u.test(text)) throw invalid("the url has white space or a control character: encode it");
  // It also accepts backslashes and more than two slashes, which other parsers read differently.
  const url = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) && !text.includes("\\") ? URL.parse(text) : null;
  // A URL that cannot be parsed is not shown, because its secrets cannot be found.
  if (url === null) throw invalid(`the url cannot be read: write it in full, such as ${example}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw invalid(`the url has the scheme ${url.protocol.slice(0, 40)} and calls are made by http and https`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid(`the url of ${url.host} carries a user name or a password: use an Authorization header`);
  }
  if (url.port === "0") throw invalid(`the url of ${url.host} has port 0`);
  url.hash = "";
  return url;
}

const example = "https://api.example.com/orders";

export type Outgoing = {
  readonly method: Method;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
};

/** The request as it goes out: with the client's headers, the caller's over them, and the signature if there is a secret. `id` is
 *  the Idempotency-Key, and the id of the signature. */
export function outgoingOf(
  content: RequestContent,
  { id, now }: { readonly id: string; readonly now: number },
): Outgoing {
  const { method, url, secrets } = content;
  const body = content.body === null ? null : Buffer.from(content.body, content.base64 ? "base64" : "utf8");
  const headers = {
    accept: "*/*",
    "accept-encoding": "identity",
    "user-agent": "daybook",
    "idempotency-key": id,
    ...content.headers,
    ...(secrets.length === 0 ? {} : signature(id, Math.floor(now / 1000), body ?? Buffer.alloc(0), secrets)),
  };
  return { method, url: new URL(url), headers, body };
}

// By Standard Webhooks: the receiver can tell that a request comes from us, is complete and is fresh. While a secret is being
// changed, both secrets sign, and the receiver accepts the one it knows.
function signature(id: string, seconds: number, body: Buffer, secrets: readonly string[]): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const signed = createHmac("sha256", keyOf(secret)).update(`${id}.${seconds}.`).update(body).digest("base64");
    return `v1,${signed}`;
  });
  return { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": signatures.join(" ") };
}

function keyOf(secret: string): Buffer {
  const prefix = "whsec_";
  return secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), "base64") : Buffer.from(secret);
}
