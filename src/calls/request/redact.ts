// What people may see of a request and its answer. Secrets are cut out before anything is stored: headers unless a list names
// them as harmless, query parameters and body fields by their names, and secrets of the request wherever the answer repeats
// them.
import { remember } from "../../core/remember.ts";
import { createHash } from "node:crypto";
import { limits } from "../../core/limits.ts";
import type { KeyRing } from "../../core/seal.ts";
import { storableText } from "../../core/quote.ts";
import type { RequestContent } from "./content.ts";

export const redacted = "[redacted]";

/** A short mark of a text that is not kept, to tell two texts apart. */
export type Mark = (text: string) => string;

export function markWith(keys: KeyRing | undefined, tenant: string): Mark {
  if (keys !== undefined) return (text) => keys.mark(`${tenant}\n${text}`);
  return (text) => createHash("sha256").update(`${tenant}\n${text}`).digest("hex").slice(0, 12);
}

const harmless: ReadonlySet<string> = new Set(
  `accept accept-encoding accept-language accept-ranges age allow cache-control connection content-encoding content-language
  content-length content-type date etag expires location idempotency-key if-match if-none-match keep-alive last-modified
  ratelimit-limit ratelimit-remaining ratelimit-reset request-id retry-after server traceparent transfer-encoding user-agent
  vary webhook-id webhook-timestamp x-correlation-id x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset x-request-id
  x-runtime`.split(/\s+/),
);

export function isHarmlessHeader(name: string): boolean {
  return harmless.has(name);
}

/** Shows the harmless headers; of the others only a mark. */
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

// A long mix of letters and digits in a path is more often a token than a word. Common forms of ids stay visible.
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
      // It claims to be JSON and is not, so its secrets cannot be found: show only a mark.
    }
  } else if (/^application\/x-www-form-urlencoded/i.test(contentType)) {
    const fields = [...new URLSearchParams(body)].map(([name, value]) =>
      isSecretParameter(name) ? `${name}=${redacted}` : `${name}=${value}`,
    );
    return storableText(fields.join("&"), limits.callResponseBytesMax);
  }
  return `[${Buffer.byteLength(body)} bytes #${mark(body)}]`;
}

/** The same value with its secret fields redacted. */
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

/** A secret of a request, by its value: used to refuse keeping it in clear, and to cut it out of the answer, because many servers
 *  repeat what they were sent. */
type Secret = { readonly where: string; readonly value: string };

/** Everything in a request whose name marks it as secret. */
export function secretsOf(content: RequestContent): Secret[] {
  const inHeaders = Object.entries(content.headers).filter(([name]) => isSecretName(name));
  return [
    ...inHeaders.map(([name, value]) => ({ where: `the header "${name}"`, value })),
    ...secretsOfUrl(new URL(content.url)),
    ...content.secrets.map((value) => ({ where: "a webhook secret", value })),
    ...inBody(content),
  ];
}

export function secretsOfUrl({ searchParams }: URL): Secret[] {
  return secretParameters(searchParams, "the query parameter");
}

function secretParameters(parameters: URLSearchParams, what: string): Secret[] {
  const secret = [...parameters].filter(([name]) => isSecretParameter(name));
  return secret.map(([name, value]) => ({ where: `${what} "${name}"`, value }));
}

/** The values of cookies that an answer sets; their attributes (`Path=/; Secure`) are not secret. */
export function secretCookies(given: string | readonly string[] | undefined): string[] {
  return [given ?? []].flat().map((cookie) => {
    const [pair = ""] = cookie.split(";", 1);
    return pair.slice(pair.indexOf("=") + 1).trim();
  });
}

function inBody({ body, base64, headers }: RequestContent): Secret[] {
  if (body === null || base64) return [];
  const type = headers["content-type"] ?? "";
  if (/^application\/x-www-form-urlencoded/i.test(type)) {
    return secretParameters(new URLSearchParams(body), "the body's field");
  }
  if (!/\bjson\b/i.test(type)) return [];
  const found: Secret[] = [];
  try {
    collect(JSON.parse(body), "", found, 0);
  } catch {
    return [];
  }
  return found;
}

function collect(value: unknown, name: string, found: Secret[], depth: number): void {
  if (depth > limits.jsonDepthMax || value === null) return;
  if (typeof value === "string" || typeof value === "number") {
    if (isSecretName(name)) found.push({ where: `the body's field "${name}"`, value: String(value) });
    return;
  }
  if (typeof value !== "object") return;
  for (const [key, inner] of Object.entries(value)) collect(inner, Array.isArray(value) ? name : key, found, depth + 1);
}

export type Scrub = (text: string) => string;

// Shorter values occur in any text, and cutting them out would only reveal them.
const lengthMin = 6;

/** Cuts a request's secrets out of any text that comes back. */
export function scrubber(content: RequestContent): Scrub {
  const values = secretsOf(content).map(({ value }) => value);
  for (const [name, value] of Object.entries(content.headers)) if (!isHarmlessHeader(name)) values.push(value);
  // A body of unknown form is never shown, so it is cut out when the answer repeats it whole.
  if (content.body !== null && !content.base64 && !/json|urlencoded/i.test(content.headers["content-type"] ?? "")) {
    values.push(content.body);
  }
  return scrubValues(values);
}

/** Cuts these values out of any text, also when they are repeated in another encoding. */
export function scrubValues(values: readonly string[]): Scrub {
  const forms = values.flatMap((value) => {
    // A server may repeat "Bearer …" without its scheme, and query parameters in their raw form.
    const parts = value.length > limits.callHeaderBytesMax ? [value] : [value, ...value.split(/[\s;=,]+/)];
    const basic = /^basic\s+(\S+)$/i.exec(value)?.[1];
    if (basic !== undefined) parts.push(...Buffer.from(basic, "base64").toString("utf8").split(":"));
    return parts.flatMap((part) => [part, encodeURIComponent(part.toWellFormed()), JSON.stringify(part).slice(1, -1)]);
  });
  const known = [...new Set(forms)].filter((form) => form.length >= lengthMin).toSorted((a, b) => b.length - a.length);
  if (known.length === 0) return (text) => text;
  return (text) => known.reduce((clean, form) => clean.replaceAll(form, redacted), text);
}

// Words that mark the name of a header, a query parameter or a body field as secret. Names are split into words, so that
// "accessToken", "access_token" and "X-Access-Token" are the same, and "author" or "tokens" do not match.
const words: ReadonlySet<string> = new Set(
  `auth authorization authentication cookie cookie2 token secret password passwd pwd passphrase passcode credential
  credentials jwt bearer signature sig hmac otp cvv cvc ssn pin session sessionid sid apikey accesstoken authtoken csrf
  xsrf nonce`.split(/\s+/),
);

/** Words that are secret only before "key", and words that are secret only as a whole query parameter. */
const keyWords: ReadonlySet<string> = new Set(["api", "access", "private", "secret", "auth", "signing", "encryption"]);
const queryWords: ReadonlySet<string> = new Set(["key", "code", "hash", "access"]);

// Every call has the same few names; a long one is read anew each time, so that strangers cannot fill the memory.
const isSecretShortName = remember(readName);

export function isSecretName(name: string): boolean {
  return name.length <= 100 ? isSecretShortName(name) : readName(name);
}

function readName(name: string): boolean {
  const parts = name
    .slice(0, 200)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return parts.some((part, index) => words.has(part) || (part === "key" && keyWords.has(parts[index - 1] ?? "")));
}

function isSecretParameter(name: string): boolean {
  return queryWords.has(name.toLowerCase()) || isSecretName(name);
}
