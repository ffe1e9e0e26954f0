// One request and its answer, redirects included. Each hop is checked like the first; to another origin go neither the
// caller's headers nor a body, and never from https to http.
import type { Dispatcher } from "undici";
import type { Clock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import type { Method } from "../call.ts";
import { isHarmlessHeader, shownUrl } from "../request/redact.ts";
import { secretCookies, secretsOfUrl } from "../request/secrets.ts";
import type { AllowList } from "./allow-list.ts";
import { phasesOf, type Phases } from "./connector.ts";
import { refuseDestination, refusedDestination, type PortPolicy } from "./destination.ts";
import { readBody } from "./read-body.ts";

export type Outgoing = {
  readonly method: Method;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
};

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly truncated: boolean;
  /** The redacted URLs that it was sent on to. */
  readonly hops: readonly string[];
  /** What the other side has made up that is secret: in those URLs, and in its cookies. */
  readonly secrets: readonly string[];
  readonly firstByteMs: number;
};

export type ExchangeParts = {
  readonly dispatcher: Dispatcher;
  readonly allow: AllowList;
  readonly ports: PortPolicy;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly redirects: number;
  readonly bytesMax: number;
  readonly phases: Phases;
};

export async function exchange(first: Outgoing, parts: ExchangeParts): Promise<Answer> {
  const began = parts.clock.monotonic();
  const hops: string[] = [];
  const secrets: string[] = [];
  for (let outgoing = first; ;) {
    const refused = refuseDestination(outgoing.url, parts.allow, parts.ports);
    if (refused !== undefined) throw refusedDestination(refused);
    const answer = await send(outgoing, parts);
    const firstByteMs = parts.clock.monotonic() - began;
    const headers = flatten(answer.headers);
    secrets.push(...secretCookies(answer.headers["set-cookie"]));
    const { location } = headers;
    if (hops.length < parts.redirects && redirects.has(answer.statusCode) && location !== undefined) {
      await discard(answer);
      outgoing = follow(outgoing, answer.statusCode, location);
      hops.push(shownUrl(outgoing.url));
      secrets.push(...secretsOfUrl(outgoing.url).map(({ value }) => value));
      continue;
    }
    const { bytes: body, truncated } = await readBody(answer.body, headers["content-encoding"] ?? "", parts.bytesMax);
    return { status: answer.statusCode, headers, body, truncated, hops, secrets, firstByteMs };
  }
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

async function send({ method, url, headers, body }: Outgoing, parts: ExchangeParts): Promise<Dispatcher.ResponseData> {
  return phasesOf.run(parts.phases, () =>
    parts.dispatcher.request({
      ...{ origin: url.origin, path: `${url.pathname}${url.search}`, method, headers, body },
      signal: parts.signal,
    }),
  );
}

// What a redirect says besides where to go is of no interest, and may be endless.
async function discard({ body }: Dispatcher.ResponseData): Promise<void> {
  await readBody(body, "", 16_384);
}

/** The request to where an answer points. */
function follow(from: Outgoing, status: number, location: string): Outgoing {
  const url = URL.parse(location, from.url);
  if (url === null) throw redirectError("the answer redirects to what is no URL");
  url.hash = "";
  if (from.url.protocol === "https:" && url.protocol === "http:") {
    throw redirectError("the answer redirects from https to http");
  }
  const asGet = status === 303 || (status < 303 && from.method === "POST");
  const method = asGet ? "GET" : from.method;
  const body = asGet ? null : from.body;
  const without = asGet ? ["content-type", "content-encoding"] : [];
  const kept = Object.entries(from.headers).filter(([name]) => !without.includes(name));
  if (url.origin === from.url.origin) return { url, method, body, headers: Object.fromEntries(kept) };
  if (body !== null) throw redirectError("the answer redirects a body to another origin");
  return { url, method, body, headers: Object.fromEntries(kept.filter(([name]) => goesAnywhere(name))) };
}

// The key of a call and its signature are for the one that was called.
function goesAnywhere(name: string): boolean {
  return (
    isHarmlessHeader(name) && name !== "idempotency-key" && !name.startsWith("webhook-") && !name.startsWith("if-")
  );
}

export const redirectCode = "redirect";

function redirectError(message: string): DaybookError {
  return new DaybookError("invalid", message, { details: { kind: redirectCode } });
}

function flatten(headers: Dispatcher.ResponseData["headers"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  );
}
