// One request and its answer, redirects included. Each hop is checked like the first. Another origin gets neither the caller's
// headers nor a body, and a redirect from https to http is refused.
import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Dispatcher } from "undici";
import type { Clock } from "../../core/clock.ts";
import { DaybookError, isDaybookError } from "../../core/error.ts";
import type { ErrorKind } from "../call.ts";
import type { Outgoing } from "../request/content.ts";
import { isHarmlessHeader } from "../request/secret.ts";
import { phasesOf, type Phases } from "./connector.ts";
import { type AllowList, refuseDestination, refusedDestination, type PortPolicy } from "./destination.ts";

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly truncated: boolean;
  /** The URLs of the redirects. */
  readonly hops: readonly string[];
  readonly firstByteMs: number;
};

type ExchangeParts = {
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
  for (let outgoing = first; ;) {
    const refused = refuseDestination(outgoing.url, parts.allow, parts.ports);
    if (refused !== undefined) throw refusedDestination(refused);
    const answer = await send(outgoing, parts);
    const firstByteMs = parts.clock.monotonic() - began;
    const headers = flatten(answer.headers);
    const { location } = headers;
    if (hops.length < parts.redirects && redirects.has(answer.statusCode) && location !== undefined) {
      await discard(answer);
      outgoing = follow(outgoing, answer.statusCode, location);
      hops.push(outgoing.url.href);
      continue;
    }
    const { bytes: body, truncated } = await readBody(answer.body, headers["content-encoding"] ?? "", parts.bytesMax);
    return { status: answer.statusCode, headers, body, truncated, hops, firstByteMs };
  }
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

async function send({ method, url, headers, body }: Outgoing, parts: ExchangeParts): Promise<Dispatcher.ResponseData> {
  return phasesOf.run(parts.phases, () =>
    parts.dispatcher.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers,
      body,
      signal: parts.signal,
    }),
  );
}

// The body of a redirect does not matter, and it may be endless.
async function discard({ body }: Dispatcher.ResponseData): Promise<void> {
  await readBody(body, "", 16_384);
}

/** The request that follows a redirect. */
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

// The key and the signature of a call are only for the host that was called.
function goesAnywhere(name: string): boolean {
  return isHarmlessHeader(name) && name !== "idempotency-key";
}

const redirectCode = "redirect";

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

/** Why a request has no answer, in words that reveal neither a secret nor the inside of a network. */
export type Failure = { readonly kind: ErrorKind; readonly message: string };

export function failureOf(error: unknown, signal: AbortSignal, host: string): Failure {
  if (signal.aborted) return aborted(signal.reason);
  if (isDaybookError(error)) {
    if (error.code === "forbidden") return { kind: "refused", message: error.message };
    if (error.details["kind"] === redirectCode) return { kind: "redirect", message: error.message };
  }
  const code = codeOf(error);
  const kind = kindOf(code);
  return { kind, message: `${words[kind]} ${host}${code === "" ? "" : ` (${code})`}` };
}

/** Why a destination was refused, for the operator. */
export function reasonOf(error: unknown): string | undefined {
  if (!isDaybookError(error) || error.code !== "forbidden") return undefined;
  const reason = error.details["reason"];
  return typeof reason === "string" ? reason : undefined;
}

const words: Readonly<Partial<Record<ErrorKind, string>>> = {
  dns: "the name could not be resolved:",
  connect: "no connection to",
  tls: "no secure connection to",
  reset: "the connection was closed by",
  protocol: "the answer is no valid HTTP, or too long, from",
  internal: "the request failed to",
};

function aborted(reason: unknown): Failure {
  const cause = isDaybookError(reason) ? reason.details["cause"] : undefined;
  const message = isDaybookError(reason) ? reason.message : "it was given up";
  if (cause === "timeout") return { kind: "timeout", message: "there was no complete answer within the timeout" };
  if (cause === "cancel") return { kind: "cancelled", message };
  return { kind: cause === "lost" ? "lost" : "shutdown", message };
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (!Error.isError(error)) return "";
  const code: unknown = Reflect.get(error, "code");
  if (typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code)) return code;
  // An answer that is not HTTP has no code.
  return error.name === "HTTPParserError" ? "HPE_INVALID" : "";
}

function kindOf(code: string): ErrorKind {
  if (code === "ENOTFOUND" || code.startsWith("EAI_") || code === "ENODATA") return "dns";
  if (connectCodes.has(code)) return "connect";
  if (/^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_|ERR_OSSL|EPROTO)/.test(code)) return "tls";
  if (code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_SOCKET" || code === "ECONNABORTED") return "reset";
  if (/^(?:HPE_|UND_ERR_|Z_|ERR_|ERR__)/.test(code)) return "protocol";
  return "internal";
}

const connectCodes: ReadonlySet<string> = new Set(
  `ECONNREFUSED EHOSTUNREACH ENETUNREACH ETIMEDOUT UND_ERR_CONNECT_TIMEOUT EADDRNOTAVAIL EHOSTDOWN ENETDOWN
  EACCES`.split(/\s+/),
);

type ReadBody = { readonly bytes: Buffer; readonly truncated: boolean };

/** Reads a body up to a limit: the rest is not waited for, unpacked or kept. */
async function readBody(body: Readable, encoding: string, bytesMax: number): Promise<ReadBody> {
  const unpack = unpackers.get(encoding.trim().toLowerCase());
  if (unpack === undefined) return readUpTo(body, bytesMax);
  const unpacked = unpack();
  body.on("error", (error) => unpacked.destroy(error));
  try {
    return await readUpTo(body.pipe(unpacked), bytesMax);
  } finally {
    body.destroy();
  }
}

const unpackers: ReadonlyMap<string, () => ReturnType<typeof createGunzip>> = new Map([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

// By events: an iterator makes several promises per chunk, which costs measurable time.
function readUpTo(stream: Readable, bytesMax: number): Promise<ReadBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let over = false;
    const done = (truncated: boolean): void => {
      over = true;
      resolve({ bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), truncated });
    };
    stream.on("data", (chunk: Buffer) => {
      const room = bytesMax - length;
      length += chunk.length;
      if (room < 0) return;
      if (chunk.length <= room) return void chunks.push(chunk);
      if (room > 0) chunks.push(chunk.subarray(0, room));
      done(true);
      // This closes the connection too; errors of a closed connection no longer matter.
      stream.destroy();
    });
    stream.on("end", () => done(false));
    stream.on("error", reject);
    stream.on("close", () => {
      // Every stream closes. The error is made only if needed, because making one costs more than reading a short answer.
      if (!over) reject(cutOff());
    });
  });
}

// The stream closed without an error and without an end.
function cutOff(): NodeJS.ErrnoException {
  return Object.assign(new Error("the answer was cut off"), { code: "ECONNRESET" });
}
