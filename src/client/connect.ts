// The client: the library's verbs over HTTP, in a browser, on Node, Deno and Bun. Nothing of the engine is loaded with it.
import { spread, waitAnywhere } from "../core/anywhere.ts";
import { DaybookError, type ErrorCode } from "../core/daybook-error.ts";
import { readAnswer } from "./answer.ts";
import { streamItems, streamLines } from "./items.ts";
import { parseReply } from "./problem.ts";
import { requestOf, type RouteOf } from "./request.ts";
import { plainNouns, routes } from "./routes.ts";
import { send, type CallOptions, type ConnectOptions, type Reply, type Wire } from "./send.ts";
import { streamFacts, type Fact, type StreamOptions } from "./stream.ts";
import {
  typedVerbs,
  type Ask,
  type TypedEvents,
  type TypedGroups,
  type TypedJobs,
  type TypedRecords,
} from "./typed.ts";
import type { Noun, NounName, PlainName } from "./verbs.ts";

export { DaybookError } from "../core/daybook-error.ts";
export type { ErrorCode } from "../core/daybook-error.ts";
export type { Fact, StreamOptions } from "./stream.ts";
export type { CallOptions, ConnectOptions } from "./send.ts";

type Typed = {
  readonly jobs: TypedJobs;
  readonly events: TypedEvents;
  readonly records: TypedRecords;
  readonly groups: TypedGroups;
};

export type Client = Typed & { readonly [Name in Exclude<NounName, keyof Typed>]: Noun<Name> } & Noun<PlainName> & {
    /** The same server, seen by one tenant: for tokens of the whole book. */
    tenant(id: string): Client;
    /** Follows what happens. It takes up again, without a gap, what breaks off. */
    stream(options?: StreamOptions): AsyncGenerator<Fact>;
  };

/** Speaks to a server of Daybook.
 *
 *      const book = connect("http://127.0.0.1:4600", { token });
 *      for await (const job of book.jobs.list({ status: ["failed"] })) console.log(job.name);
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
  const wire: Wire = { ...options, base: baseOf(url) };
  const ask: Ask = (verb, input, call) => askOne(wire, verb, input, call);
  const typed = typedVerbs(ask);
  const nouns = Object.entries(routes as Table).map(([noun, verbs]) => {
    const made = Object.entries(verbs).map(([name, of]) => [name, methodOf(wire, `${noun}.${name}`, of)] as const);
    return [noun, { ...Object.fromEntries(made), ...typed[noun] }] as const;
  });
  const isPlain = ([noun]: readonly [string, unknown]): boolean => plainNouns.some((plain) => plain === noun);
  return {
    ...Object.fromEntries(nouns.filter((each) => !isPlain(each))),
    ...Object.assign({}, ...nouns.filter(isPlain).map(([, verbs]) => verbs)),
    tenant: (id: string) => connect(url, { ...options, tenant: id }),
    stream: (wanted: StreamOptions = {}) => streamFacts(wire, wanted),
  } as Client;
}

type Table = Readonly<Record<string, Readonly<Record<string, RouteOf>>>>;
type Input = Readonly<Record<string, unknown>>;

function baseOf(url: string | URL): string {
  const given = URL.parse(url);
  if (given === null || !/^https?:$/.test(given.protocol) || given.username !== "" || given.password !== "") {
    throw new DaybookError(
      "invalid",
      `the server is ${JSON.stringify(String(url))}: give its address, such as "http://127.0.0.1:4600"`,
    );
  }
  return given.origin + given.pathname.replace(/\/+$/, "");
}

function methodOf(wire: Wire, verb: string, of: RouteOf): (...args: unknown[]) => unknown {
  return (...args) => {
    const [rest = {}, options = {}] = args.slice(of.places.length) as [Input?, CallOptions?];
    const places = Object.fromEntries(of.places.map((name, index) => [name, args[index]]));
    // A slip would be spread to nothing, which may mean everything.
    if (typeof rest !== "object" || rest === null || Array.isArray(rest)) {
      throw new DaybookError("invalid", `${verb} is given ${JSON.stringify(rest)}: give an object of its fields`);
    }
    const input = { ...rest, ...places };
    if (of.answer === "stream") return streamItems(wire, verb, requestOf(verb, of, input), options);
    if (of.answer === "lines") return streamLines(wire, verb, requestOf(verb, of, input), options);
    const page = askOne(wire, verb, input, options);
    return of.answer === "text"
      ? page
      : Object.assign(page, { [Symbol.asyncIterator]: () => rows(page, wire, verb, input, options) });
  };
}

async function askOne(wire: Wire, verb: string, input: Input, options: CallOptions = {}): Promise<unknown> {
  const of = routeOf(verb);
  const reply = await send(wire, requestOf(verb, of, input), options);
  if (of.answer === "text") return reply.text;
  if (reply.status === 202) return endOf(wire, verb, reply, options);
  return reply.status === 204 ? undefined : readAnswer(verb, parseReply(wire.base, reply));
}

function routeOf(verb: string): RouteOf {
  const [noun = "", name = ""] = verb.split(".");
  const of = (routes as Table)[noun]?.[name];
  if (of === undefined) throw new DaybookError("invalid", `there is no verb ${verb}`);
  return of;
}

/** The rows of this page and of all that come after it. */
async function* rows(
  first: Promise<unknown>,
  wire: Wire,
  verb: string,
  input: Input,
  options: CallOptions,
): AsyncGenerator<unknown> {
  for (let page = first; ;) {
    const { items: found, next = null } = (await page) as { items: readonly unknown[]; next?: string | null };
    yield* found;
    if (next === null) return;
    page = askOne(wire, verb, { ...input, after: next }, options);
  }
}

type Operation = {
  readonly id: string;
  readonly status: string;
  readonly result: unknown;
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
};

/** What takes minutes goes on in the server; here it is waited for, as in the library. */
async function endOf(wire: Wire, verb: string, begun: Reply, { signal }: CallOptions): Promise<unknown> {
  // By its id: what the server says of the place may lie below another path than the one that we know it by.
  const { id } = parseReply(wire.base, begun) as Operation;
  const path = `/api/v1/operations/${encodeURIComponent(id)}`;
  for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, lookEveryMsMax)) {
    const reply = await send(wire, { method: "GET", path }, signal === undefined ? {} : { signal });
    const { status, result, error } = parseReply(wire.base, reply) as Operation;
    if (status === "completed") return readAnswer(verb, result);
    const code = error?.code ?? (status === "lost" ? "unknown_outcome" : "conflict");
    if (status !== "running") {
      throw new DaybookError(code, error?.message ?? `${verb} is ${status}: see ${path}`, {
        details: { path, status },
      });
    }
    await waitAnywhere(spread(waitMs), signal);
  }
}

const lookEveryMsMax = 3000;
