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

/** An answer that was read whole. */
export type Reply = { readonly status: number; readonly text: string };

/** Resolves with the whole answer; what is refused is thrown. */
export function send(wire: Wire, asked: Asked, options: CallOptions = {}): Promise<Reply> {
  // Read within the try, so that an answer that breaks off is asked for again too.
  return ask(wire, asked, options, async (response) => {
    return { status: response.status, text: await response.text() };
  });
}

/** Resolves with an answer whose body comes as it happens. */
export function listen(wire: Wire, asked: Asked, options: CallOptions = {}): Promise<Response> {
  return ask(wire, asked, options, (response) => Promise.resolve(response));
}

async function ask<T>(
  wire: Wire,
  asked: Asked,
  { signal, idempotencyKey }: CallOptions,
  take: (response: Response) => Promise<T>,
): Promise<T> {
  const isChange = asked.method !== "GET";
  const key: Record<string, string> = isChange ? { "idempotency-key": idempotencyKey ?? randomKey() } : {};
  const keyed = { ...asked, headers: { ...asked.headers, ...key } };
  const tries = wire.attempts ?? 5;
  for (let tried = 1; ;) {
    const ended = await once(wire, keyed, signal, take);
    if ("taken" in ended) return ended.taken;
    const waitMs = againAfterMs(ended, wire, tried);
    // What is under way is waited for: it ends, and then its reply is there.
    const isUnderWay = "refused" in ended && ended.refused.status === 409;
    if (waitMs === undefined || (tried >= tries && !isUnderWay)) throw await whyOf(ended, wire, isChange);
    if (!isUnderWay) tried++;
    // A connection goes back to its pool only when its answer was read.
    if ("refused" in ended) await ended.refused.body?.cancel().catch(() => undefined);
    await waitAnywhere(waitMs, signal);
  }
}

/** How one try ended. `lost`: no answer, or not all of it. */
type Ended = { readonly refused: Response } | { readonly lost: DaybookError; readonly wasSent: boolean };

async function once<T>(
  wire: Wire,
  asked: Asked,
  signal: AbortSignal | undefined,
  take: (response: Response) => Promise<T>,
): Promise<Ended | { readonly taken: T }> {
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
    const response = await (wire.fetch ?? fetch)(request);
    begun.abort();
    return response.ok ? { taken: await take(response) } : { refused: response };
  } catch (cause) {
    // The caller gave up, which is no failure.
    signal?.throwIfAborted();
    if (late.signal.aborted) {
      return { lost: new DaybookError("timeout", `${wire.base} did not answer in time`, { cause }), wasSent: true };
    }
    const why = cause instanceof Error ? reasonOf(cause) : String(cause);
    const message = `${wire.base} cannot be reached: ${why}`;
    return { lost: new DaybookError("unavailable", message, { cause }), wasSent: !isUnsent(cause) };
  } finally {
    begun.abort();
  }
}

/** What is thrown of it. Whoever asked for a change must know that it may have been made. */
async function whyOf(ended: Ended, { base }: Wire, isChange: boolean): Promise<DaybookError> {
  if ("refused" in ended) return problemOf(ended.refused, base);
  const { lost, wasSent } = ended;
  if (!isChange || !wasSent) return lost;
  const message = `${lost.message}; it may or may not have been done, so look before you repeat it`;
  return new DaybookError("unknown_outcome", message, { cause: lost.cause });
}

/** What Node, Deno and Bun say of what happened before anything was sent; a browser tells nothing. */
const unsent = /ECONNREFUSED|ConnectionRefused|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|client error \(Connect\)/;

function isUnsent(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return unsent.test(`${String(Reflect.get(thrown, "code"))} ${thrown.message}`) || isUnsent(thrown.cause);
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
      // What is sent on is asked for by GET, also where it was a change.
      redirect: "manual",
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
function againAfterMs(ended: Ended, wire: Wire, tried: number): number | undefined {
  const waitMs = spread(Math.min((wire.backoffMs ?? 250) * 2 ** (tried - 1), backoffMsMax));
  if ("lost" in ended) return waitMs;
  const { status, headers } = ended.refused;
  const said = Number(headers.get("retry-after") ?? Number.NaN);
  const known = Number.isFinite(said) && said >= 0;
  if (status === 409) return known ? said * 1000 : undefined;
  if (![429, 502, 503].includes(status) && !(status === 504 && !isProblem(ended.refused))) return undefined;
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
      // Said by the server: one that does not answer at all is not asked for ever.
      const isOpen = error instanceof DaybookError && error.code === "timeout" && error.details["status"] === 504;
      if (!isOpen || isOver) throw error;
    }
  }
}

const partMsMax = 20_000;
