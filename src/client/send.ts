// One request, sent again while that may help. A request that changes something carries a key, so that the server does it once however
// often it arrives.
import { elapsedMs, randomKey, spread, waitAnywhere } from "../core/anywhere.ts";
import { DaybookError } from "../core/daybook-error.ts";
import { problemOf } from "./problem.ts";

export type ConnectOptions = {
  /** `dbk_…`, or a function that gives one, asked for each request. Without it a browser sends the cookie of its login. */
  readonly token?: string | (() => string | Promise<string>);
  /** Which tenant is meant, with a token of the whole book. */
  readonly tenant?: string;
  /** How often a request is sent at most; default 5. */
  readonly attempts?: number;
  /** How long to wait before the second try; it doubles, with jitter; default 250. */
  readonly backoffMs?: number;
  /** How long one try may take until its answer begins; default 60,000. */
  readonly timeoutMs?: number;
  /** Sent along with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Another way to send: through a proxy, or into an app in this process. */
  readonly fetch?: (request: Request) => Promise<Response>;
};

/** What may be said of one request. */
export type CallOptions = {
  readonly signal?: AbortSignal;
  /** Yours, where one thing is to be done once also by different processes; without it each call has its own. */
  readonly idempotencyKey?: string;
};

export type Wire = ConnectOptions & {
  /** Without a slash at its end. */
  readonly base: string;
};

export type Asked = {
  readonly method: string;
  /** From the root, with its query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Resolves with an answer that is one; what is refused is thrown. */
export async function send(wire: Wire, asked: Asked, { signal, idempotencyKey }: CallOptions = {}): Promise<Response> {
  const key: Record<string, string> =
    asked.method === "GET" ? {} : { "idempotency-key": idempotencyKey ?? randomKey() };
  const tries = wire.attempts ?? 5;
  for (let tried = 1; ; tried++) {
    const ended = await once(wire, { ...asked, headers: { ...asked.headers, ...key } }, signal);
    if (ended instanceof Response && ended.ok) return ended;
    const waitMs = tried < tries ? againAfterMs(ended, wire, tried) : undefined;
    if (waitMs === undefined) throw ended instanceof Response ? await problemOf(ended) : ended;
    // A connection goes back to its pool only when its answer was read.
    if (ended instanceof Response) await ended.body?.cancel().catch(() => undefined);
    await waitAnywhere(waitMs, signal);
  }
}

async function once(wire: Wire, asked: Asked, signal: AbortSignal | undefined): Promise<Response | DaybookError> {
  signal?.throwIfAborted();
  const { token } = wire;
  const known = typeof token === "function" ? await token() : token;
  const late = new AbortController();
  const request = requestOf(
    wire,
    asked,
    known,
    signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
  );
  // Only until the answer begins: a long one may take its time.
  const begun = new AbortController();
  void abortAfter(late, wire.timeoutMs ?? timeoutMsDefault, begun.signal);
  try {
    return await (wire.fetch ?? fetch)(request);
  } catch (cause) {
    // The caller gave up, which is no failure.
    signal?.throwIfAborted();
    if (late.signal.aborted) return new DaybookError("timeout", `${wire.base} did not answer in time`, { cause });
    const why = cause instanceof Error ? reasonOf(cause) : String(cause);
    return new DaybookError("unavailable", `${wire.base} cannot be reached: ${why}`, { cause });
  } finally {
    begun.abort();
  }
}

function requestOf(
  wire: Wire,
  { method, path, body, headers }: Asked,
  token: string | undefined,
  signal: AbortSignal,
): Request {
  try {
    return new Request(wire.base + path, {
      method,
      headers: {
        ...wire.headers,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(wire.tenant === undefined ? {} : { "daybook-tenant": wire.tenant }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      signal,
      ...(body === undefined ? {} : { body }),
    });
  } catch (cause) {
    // A token or a tenant with a line break in it, for example.
    throw new DaybookError("invalid", `the request cannot be made: ${String(cause)}`, { cause });
  }
}

const timeoutMsDefault = 60_000;

async function abortAfter(late: AbortController, ms: number, begun: AbortSignal): Promise<void> {
  await waitAnywhere(ms, begun).then(
    () => late.abort(),
    () => undefined,
  );
}

/** `fetch failed` says nothing; what it hides, does. */
function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}

/** A busy server says when; 409 with a time means that the same request is under way. */
function againAfterMs(ended: Response | DaybookError, wire: Wire, tried: number): number | undefined {
  const waitMs = spread(Math.min((wire.backoffMs ?? 250) * 2 ** (tried - 1), backoffMsMax));
  if (!(ended instanceof Response)) return waitMs;
  const said = Number(ended.headers.get("retry-after") ?? Number.NaN);
  const known = Number.isFinite(said) && said >= 0;
  if (ended.status === 409) return known ? said * 1000 : undefined;
  if (![429, 502, 503].includes(ended.status) && !(ended.status === 504 && !isProblem(ended))) return undefined;
  if (!known) return waitMs;
  return said * 1000 > retryAfterMsMax ? undefined : Math.max(said * 1000, waitMs);
}

const backoffMsMax = 10_000;
/** Whoever is told to come back later than this is told so. */
const retryAfterMsMax = 60_000;

function isProblem({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("application/problem+json") === true;
}

/** Asks again and again, for at most a part of the time, for what only answers once it is so. A connection that waits for long is one
 *  that something in between ends. */
export async function waitInParts<T>(timeoutMs: number, ask: (partMs: number) => Promise<T>): Promise<T> {
  const from = elapsedMs();
  for (;;) {
    const leftMs = timeoutMs - (elapsedMs() - from);
    try {
      return await ask(Math.max(1, Math.round(Math.min(leftMs, partMsMax))));
    } catch (error) {
      const isOver = timeoutMs - (elapsedMs() - from) <= 0;
      if (!(error instanceof DaybookError) || error.code !== "timeout" || isOver) throw error;
    }
  }
}

const partMsMax = 20_000;
