// What people may see of a request and of its answer. It is cut out before anything is stored: headers by a list of those
// that are harmless, query parameters and fields of bodies by their names, and what was secret in the request wherever
// the answer repeats it.
import { createHash } from "node:crypto";
import { limits } from "../../core/limits.ts";
import type { KeyRing } from "../../core/seal.ts";
import { storableText } from "../../core/storable-text.ts";
import { isSecretName, isSecretParameter } from "./secret-name.ts";

export const redacted = "[redacted]";

/** Makes a short mark of a text that is not kept, by which two can be told apart. */
export type Mark = (text: string) => string;

export function markWith(keys: KeyRing | undefined, tenant: string): Mark {
  if (keys !== undefined) return (text) => keys.mark(`${tenant}\n${text}`);
  return (text) => createHash("sha256").update(`${tenant}\n${text}`).digest("hex").slice(0, 12);
}

const harmless: ReadonlySet<string> = new Set([
  ...["accept", "accept-encoding", "accept-language", "accept-ranges", "age", "allow", "cache-control", "connection"],
  ...["content-encoding", "content-language", "content-length", "content-type", "date", "etag", "expires", "location"],
  ...[
    "idempotency-key",
    "if-match",
    "if-none-match",
    "keep-alive",
    "last-modified",
    "ratelimit-limit",
    "ratelimit-remaining",
  ],
  ...[
    "ratelimit-reset",
    "request-id",
    "retry-after",
    "server",
    "traceparent",
    "transfer-encoding",
    "user-agent",
    "vary",
  ],
  ...["webhook-id", "webhook-timestamp", "x-correlation-id", "x-ratelimit-limit", "x-ratelimit-remaining"],
  ...["x-ratelimit-reset", "x-request-id", "x-runtime"],
]);

export function isHarmlessHeader(name: string): boolean {
  return harmless.has(name);
}

/** Headers by the list; of the others only a mark is kept. */
export function shownHeaders(headers: Readonly<Record<string, string>>, mark: Mark): Record<string, string> {
  const names = Object.keys(headers).slice(0, limits.callResponseHeadersMax);
  return Object.fromEntries(
    names.map((name) => {
      const value = headers[name] ?? "";
      if (name === "location") return [name, shownLocation(value)];
      if (!harmless.has(name)) return [storableText(name, 200), `${redacted} #${mark(value)}`];
      return [name, storableText(value, 1000)];
    }),
  );
}

function shownLocation(value: string): string {
  const url = URL.parse(value, "http://relative.invalid");
  if (url === null) return redacted;
  const shown = shownUrl(url);
  return shown.replace("http://relative.invalid", "");
}

// A long part of letters and digits in a path is more often a token than a word; ids as they are usually written stay.
const tokenLike = /^(?=.*\d)(?=.*[A-Za-z])[\w-]{24,}$/;
const idLike = /^(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{40}|[0-9a-f]{64})$/i;

export function shownUrl(url: URL): string {
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  shown.hash = "";
  shown.pathname = shown.pathname
    .split("/")
    .map((part) => (tokenLike.test(part) && !idLike.test(part) ? redacted : part))
    .join("/");
  const query = [...shown.searchParams].map(([name, value]) =>
    isSecretParameter(name) || tokenLike.test(value)
      ? `${encodeURIComponent(name)}=${redacted}`
      : `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  shown.search = "";
  const path = shown.href.replaceAll(encodeURIComponent(redacted), redacted);
  return storableText(query.length === 0 ? path : `${path}?${query.join("&")}`, limits.callUrlBytesMax);
}

export function shownBody(body: string, contentType: string, mark: Mark): string {
  if (/\bjson\b/i.test(contentType)) {
    try {
      return storableText(JSON.stringify(withoutSecrets(JSON.parse(body))), limits.callResponseBytesMax);
    } catch {
      // It says that it is JSON and is not; then nobody knows what is in it.
    }
  } else if (/^application\/x-www-form-urlencoded/i.test(contentType)) {
    const fields = [...new URLSearchParams(body)].map(([name, value]) =>
      isSecretParameter(name) ? `${name}=${redacted}` : `${name}=${value}`,
    );
    return storableText(fields.join("&"), limits.callResponseBytesMax);
  }
  return `[${Buffer.byteLength(body)} bytes #${mark(body)}]`;
}

/** The same value with the texts and numbers of secret fields cut out. */
export function withoutSecrets(value: unknown, depth = 0): unknown {
  if (depth > limits.jsonDepthMax) return redacted;
  if (Array.isArray(value)) return value.map((each) => withoutSecrets(each, depth + 1));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      isSecretName(name) && inner !== null && typeof inner !== "boolean" ? redacted : withoutSecrets(inner, depth + 1),
    ]),
  );
}
