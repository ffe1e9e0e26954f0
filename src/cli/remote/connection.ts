// Requests to a server. What a lost connection leaves open is asked again: a change bears a key under which the server keeps its
// reply, so it is done once however often it is sent.
import { systemClock, type Clock } from "../../core/clock.ts";
import { describeError, DaybookError, errorCodes, type ErrorCode } from "../../core/error.ts";
import { createIds, systemRandom } from "../../core/id.ts";
import { quote } from "../../core/quote.ts";
import { apiPrefix } from "../../verbs/route.ts";
import type { Server } from "../target.ts";
import type { ServerRequest } from "./request.ts";

export type Connection = {
  readonly server: Server;
  /** The whole reply, which is no refusal. */
  send(request: ServerRequest): Promise<Reply>;
  /** A reply whose body comes as it happens. */
  listen(request: ServerRequest): Promise<Response>;
};

export type Reply = { readonly status: number; readonly headers: Headers; readonly text: string };

/** How long it waits before each try but the first; about three seconds, in which a server that is restarted is there again. */
const waitsMs = [50, 100, 200, 400, 800, 1600] as const;

/** A server that asks for more patience than this is told of, not waited for. */
const retryAfterSecondsMax = 10;

export function connect(server: Server, signal: AbortSignal, clock: Clock = systemClock): Connection {
  const ids = createIds(clock, systemRandom);

  async function ask<Answer>(request: ServerRequest, take: (response: Response) => Promise<Answer>): Promise<Answer> {
    const isChange = request.method !== "GET";
    const key = isChange && !request.hasKey ? ids() : undefined;
    let mayBeDone = false;
    for (let failures = 0; ;) {
      const waitMs = waitsMs[failures];
      try {
        const response = await fetch(`${server.url}${apiPrefix}${request.path}`, {
          method: request.method,
          headers: headersOf(server, request, key),
          ...(request.body === undefined ? {} : { body: request.body }),
          // Another address might be told the token.
          redirect: "manual",
          signal,
        });
        const again = againMs(response, waitMs);
        if (again === undefined) return await take(response);
        await response.body?.cancel();
        // What is under way is waited for: it ends, and then its reply is there.
        if (response.status !== 409) failures++;
        await clock.sleep(again, signal);
      } catch (error) {
        if (error instanceof DaybookError || signal.aborted) throw error;
        const code = codeOf(error);
        mayBeDone ||= isChange && !unsent.has(code);
        if (waitMs === undefined || hopeless.test(code)) throw lost(server, error, mayBeDone);
        failures++;
        await clock.sleep(waitMs, signal);
      }
    }
  }

  return {
    server,
    send: (request) =>
      ask(request, async (response) => {
        // Read here, so that a connection that is lost in between is asked again, too.
        const text = await response.text();
        if (!response.ok) throw refusalOf(server, response, text);
        return { status: response.status, headers: response.headers, text };
      }),
    listen: (request) =>
      ask(request, async (response) => {
        if (!response.ok) throw refusalOf(server, response, await response.text());
        return response;
      }),
  };
}

function headersOf(
  { token, tenant }: Server,
  { body }: ServerRequest,
  key: string | undefined,
): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    ...(tenant === null ? {} : { "daybook-tenant": tenant }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(key === undefined ? {} : { "idempotency-key": key }),
  };
}

/** How long to wait before the same is asked again; undefined: this is the reply. */
function againMs({ status, headers }: Response, waitMs: number | undefined): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  if (!(seconds >= 0 && seconds <= retryAfterSecondsMax)) return undefined;
  if (status === 409) return seconds * 1000;
  if (status !== 503 && status !== 429) return undefined;
  return waitMs === undefined ? undefined : Math.max(waitMs, seconds * 1000);
}

/** What happened before anything was sent. */
const unsent: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT", "bad port"],
]);

/** What the next try finds as it is: a name that is not known, a certificate that is not trusted. */
const hopeless = /ENOTFOUND|CERT|SSL|TLS|SELF_SIGNED|ERR_INVALID|bad port/;

/** `fetch failed` says nothing; its cause does. */
function codeOf(error: unknown): string {
  const cause: unknown = Error.isError(error) ? (error.cause ?? error) : error;
  const code: unknown = Error.isError(cause) ? Reflect.get(cause, "code") : undefined;
  return typeof code === "string" ? code : describeError(cause).message;
}

function lost({ url }: Server, error: unknown, mayBeDone: boolean): DaybookError {
  const code = codeOf(error);
  const details = { server: url, reason: code };
  if (!mayBeDone) {
    return new DaybookError("unavailable", `${url} cannot be reached: ${code}`, { cause: error, details });
  }
  const message = `the connection to ${url} was lost (${code}): it may or may not have been done, so look before you repeat it`;
  return new DaybookError("unknown_outcome", message, { cause: error, details });
}

/** The error that a library on the server threw, as it would have been thrown here. */
export function refusalOf(
  { url }: Server,
  { status, headers }: Pick<Response, "status" | "headers">,
  text: string,
): DaybookError {
  if (status >= 300 && status < 400) {
    const to = headers.get("location") ?? "another address";
    return new DaybookError("unavailable", `${url} sends us on to ${to}: give --server as it is there`);
  }
  const problem = problemIn(text);
  if (problem !== undefined) return problemError(problem, url);
  const kind = headers.get("content-type") ?? "nothing that has a type";
  const message = `${url} does not answer as a server of daybook does (${status}, ${kind}): is that its address?`;
  return new DaybookError("unavailable", message, { details: { server: url, status } });
}

export type Problem = { readonly code: string; readonly detail: string; readonly details?: Record<string, unknown> };

export function problemError({ code, detail, details = {} }: Problem, url: string): DaybookError {
  // A later server may have codes that are not known here.
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "internal";
  if (known !== "internal") return new DaybookError(known, detail, { details });
  const message = `${url} failed (${code}): ${detail} Its log says more.`;
  return new DaybookError(known, message, { details: { ...details, server: url } });
}

function problemIn(text: string): Problem | undefined {
  try {
    const { code, detail, details } = JSON.parse(text) as Partial<Problem>;
    if (typeof code !== "string" || typeof detail !== "string") return undefined;
    return { code, detail, ...(details === undefined ? {} : { details }) };
  } catch {
    return undefined;
  }
}

/** JSON that a server sent. */
export function parseReply({ url }: Server, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = `${url} answered what is no JSON: ${quote(text)}`;
    throw new DaybookError("unavailable", message, { cause, details: { server: url } });
  }
}
