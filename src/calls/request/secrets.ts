// The secrets of one request, by their values: for refusing to keep them in clear, and for cutting them out of whatever the
// other side says, since many servers repeat what they were sent.
import { limits } from "../../core/limits.ts";
import { isHarmlessHeader, redacted } from "./redact.ts";
import type { RequestContent } from "./content.ts";
import { isSecretName, isSecretParameter } from "./secret-name.ts";

export type Secret = { readonly where: string; readonly value: string };

/** Everything in a request that its name gives away as secret. */
export function secretsOf(content: RequestContent): Secret[] {
  const found: Secret[] = [];
  for (const [name, value] of Object.entries(content.headers)) {
    if (isSecretName(name)) found.push({ where: `the header "${name}"`, value });
  }
  found.push(...secretsOfUrl(new URL(content.url)));
  for (const value of content.secrets) found.push({ where: "a webhook secret", value });
  found.push(...inBody(content));
  return found;
}

export function secretsOfUrl({ searchParams }: URL): Secret[] {
  return [...searchParams]
    .filter(([name]) => isSecretParameter(name))
    .map(([name, value]) => ({ where: `the query parameter "${name}"`, value }));
}

/** The values of cookies that an answer sets. What else stands beside them (`Path=/; Secure`) is no secret. */
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
    return [...new URLSearchParams(body)]
      .filter(([name]) => isSecretParameter(name))
      .map(([name, value]) => ({ where: `the body's field "${name}"`, value }));
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

// Shorter ones are found in every text, and cutting them out would only say what they are.
const lengthMin = 6;

/** Cuts the request's secrets out of any text that comes back. */
export function scrubber(content: RequestContent): Scrub {
  const values = secretsOf(content).map(({ value }) => value);
  for (const [name, value] of Object.entries(content.headers)) if (!isHarmlessHeader(name)) values.push(value);
  // Of a body in no known form nothing is shown, so nothing of it is shown when it comes back whole.
  if (content.body !== null && !content.base64 && !/json|urlencoded/i.test(content.headers["content-type"] ?? "")) {
    values.push(content.body);
  }
  return scrubValues(values);
}

/** Cuts these values out of any text, in whatever form they are repeated. */
export function scrubValues(values: readonly string[]): Scrub {
  const forms = values.flatMap((value) => {
    // "Bearer …" is repeated without its scheme, and query parameters as they were written.
    const parts = value.length > limits.callHeaderBytesMax ? [value] : [value, ...value.split(/[\s;=,]+/)];
    const basic = /^basic\s+(\S+)$/i.exec(value)?.[1];
    if (basic !== undefined) parts.push(...Buffer.from(basic, "base64").toString("utf8").split(":"));
    return parts.flatMap((part) => [part, encodeURIComponent(part.toWellFormed()), JSON.stringify(part).slice(1, -1)]);
  });
  const known = [...new Set(forms)].filter((form) => form.length >= lengthMin).toSorted((a, b) => b.length - a.length);
  if (known.length === 0) return (text) => text;
  return (text) => known.reduce((clean, form) => clean.replaceAll(form, redacted), text);
}
