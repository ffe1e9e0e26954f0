// Definitions of events and of durable listeners, and what a publish is given, checked before any transaction begins.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { currentCause, type Cause } from "../core/cause.ts";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid, describeError } from "../core/error.ts";
import { isPlain, toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkName, checkKey } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { checkBackoff, type Backoff } from "../core/retry.ts";
import { isSchema, fitting } from "../core/standard-schema.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { futureMs, type TimeInput } from "../core/time.ts";
import { checkPriority } from "../jobs/define.ts";
import type { Predicate } from "./live/where.ts";
import { checkPattern, checkTopic } from "./topic.ts";

/** An event with any payload, for lists of definitions. */
export type AnyEvent = {
  readonly kind: "event";
  readonly topic: string;
  readonly schema: StandardSchemaV1 | undefined;
};

/** `publish` takes `Input`; listeners get `Output`. */
export type Event<Input = unknown, Output = Input> = AnyEvent & {
  /** For the compiler only; never set at run time. */
  readonly "~types"?: { readonly input: Input; readonly output: Output };
};

export type EventOptions<Schema extends StandardSchemaV1 = StandardSchemaV1> = {
  /** Checks and types the payload. Any Standard Schema: zod, valibot, arktype … */
  readonly schema?: Schema | undefined;
};

/** What a listener hears: an event, a pattern of topics (`order.*`, `light.>`), or several of them. */
export type Heard = AnyEvent | string;

/** The payload that a listener of `On` gets. A pattern may bring any payload. */
export type PayloadOf<On> = On extends readonly (infer One)[]
  ? PayloadOf<One>
  : On extends Event<infer _Input, infer Output>
    ? Output
    : unknown;

/** The payload that is published under `On`, as the book keeps it. */
export type SaidOf<On> = On extends readonly (infer One)[]
  ? SaidOf<One>
  : On extends Event<infer Input, infer _Output>
    ? Input
    : unknown;

/** Where a new listener begins. It matters once, when the book first sees the listener. */
export type StartFrom = "now" | "beginning" | { readonly time: TimeInput } | { readonly event: string };

/** `Context` is what the front door hands to a handler; this room adds the event. */
export type ListenerOptions<On, Context> = {
  readonly on: On;
  readonly from?: StartFrom;
  /** How many times a delivery may be tried in total; default 10. After that it is a dead letter. */
  readonly attempts?: number;
  /** How long to wait before each retry; default 0.5 s, doubling, at most 30 s, with jitter. */
  readonly backoff?: Backoff;
  /** How long one run may take; default without limit. */
  readonly timeout?: Duration;
  /** How many times its process may be lost while the delivery runs alone, before it is a dead letter; default 3. */
  readonly losses?: number;
  /** How many deliveries may run at the same time in one tenant, in all processes together. */
  readonly concurrency?: number;
  /** Delivers the events of one `key` one at a time, in the order of their commits, also across retries and dead letters. */
  readonly ordered?: boolean;
  readonly queue?: string;
  /** `"all"`: every tenant has this listener, also tenants that come later, each with its own position, pause and dead letters;
   *  `book` is bound to the event's tenant. Default: it belongs to the tenant of `open`. */
  readonly tenants?: "all";
  readonly run: (payload: PayloadOf<On>, context: Context) => unknown;
};

export type AnyListener = Required<
  Pick<ListenerOptions<unknown, never>, "from" | "attempts" | "backoff" | "losses" | "ordered" | "queue">
> & {
  readonly kind: "listener";
  readonly name: string;
  readonly topics: readonly string[];
  /** The event definitions among what it hears. */
  readonly events: readonly AnyEvent[];
  readonly timeoutMs: number | null;
  readonly concurrency: number | null;
  readonly allTenants: boolean;
  /** Which of their events it takes; the others are skipped when they are delivered. */
  readonly where?: Predicate<never>;
  /** It gets the stored payload, not what a schema returns. */
  readonly raw?: true;
  readonly run: (payload: never, context: never) => unknown;
};

const listenerKeys = [
  ...(["on", "from", "attempts", "backoff", "timeout", "losses"] as const),
  ...(["concurrency", "ordered", "queue", "tenants", "run"] as const),
];

const ofLive = ["where", "for", "debounce", "throttle", "once", "immediate", "priority", "mode", "backlog"] as const;

/** 250 ms · 2ⁿ after n failures. */
const usualBackoff: Backoff = { base: 500, factor: 2, max: 30_000, spread: 0.2 };

export function defineEvent(topic: string, options: EventOptions): AnyEvent {
  checkTopic(topic);
  refuseUnknown(options, ["schema"], `event "${topic}"`);
  const { schema } = options;
  if (schema !== undefined && !isSchema(schema)) {
    throw invalid(`the schema of event "${topic}" is none: give a Standard Schema (zod, valibot, arktype …)`);
  }
  return { kind: "event", topic, schema };
}

export function defineListener(name: string, options: ListenerOptions<unknown, never>): AnyListener {
  checkName(name, "listener name");
  const what = `listener "${name}"`;
  const live = ofLive.find((key) => key in Object(options));
  if (live !== undefined) {
    throw invalid(`"${live}" of ${what} is for those that are live: say live: true, or leave it out`, {
      details: { option: live },
    });
  }
  refuseUnknown(options, listenerKeys, what);
  if (options.backoff !== undefined) checkBackoff(options.backoff);
  const shared = checkListener(what, options);
  const { from = "now" } = options;
  if (shared.allTenants && typeof from === "object" && "event" in from) {
    throw invalid(`${what} is for all tenants, and an event belongs to one of them: give a time`);
  }
  return {
    kind: "listener",
    name,
    ...shared,
    from: checkStart(what, from),
    attempts: checkCount(options.attempts ?? 10, "attempts", 1),
    backoff: options.backoff ?? usualBackoff,
    timeoutMs: options.timeout === undefined ? null : durationMs(options.timeout, "timeout", { min: 1 }),
    losses: checkCount(options.losses ?? 3, "losses", 0),
    concurrency: options.concurrency === undefined ? null : checkCount(options.concurrency, "concurrency", 1),
    ordered: options.ordered ?? false,
    queue: checkName(options.queue ?? "events", "queue"),
  };
}

type Shared<Run> = { readonly on: unknown; readonly tenants?: unknown; readonly run: Run };

/** What durable and live listeners have in common: what they hear, whose events, and what they run. */
export function checkListener<Run>(what: string, { on, tenants, run }: Shared<Run>) {
  if (typeof run !== "function") throw invalid(`${what} has no run function`);
  const all: readonly unknown[] = Array.isArray(on) ? on : [on];
  if (all.length === 0 || all.length > limits.listenerTopicsMax) {
    throw invalid(`${what} hears ${all.length} things: give 1 to ${limits.listenerTopicsMax}`);
  }
  const heard = all.map((each) => {
    if (typeof each === "string") return checkPattern(each);
    if (isEvent(each)) return each;
    throw invalid(`${what} hears ${quote(each)}: give an event, a pattern such as "order.*", or a list of them`);
  });
  return {
    topics: [...new Set(heard.map((each) => (typeof each === "string" ? each : each.topic)))],
    events: heard.filter((each) => typeof each !== "string"),
    allTenants: isForAll(tenants, what),
    run,
  };
}

/** Whether something is for all tenants, by its option "tenants". */
export function isForAll(tenants: unknown, what: string): boolean {
  if (tenants === undefined || tenants === "all") return tenants === "all";
  throw invalid(`tenants ${quote(tenants)} of ${what} is not "all": leave it out, or say "all"`);
}

export function isEvent(value: unknown): value is AnyEvent {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "event";
}

function checkStart(what: string, from: StartFrom): StartFrom {
  if (from === "now" || from === "beginning") return from;
  if (typeof from === "object" && from !== null && "time" in from !== "event" in from) return from;
  throw invalid(`${what} starts from ${quote(from)}: give "now", "beginning", { time } or { event: id }`);
}

export type PublishOptions = {
  /** Your own id. If the book already has an event with this id, nothing is published. */
  readonly id?: string;
  /** −1000 … 1000, default 100: deliveries share the line with jobs, whose default is 0. */
  readonly priority?: number;
  /** Events of one key are heard in order, by listeners that ask for it. */
  readonly key?: string;
  /** Nothing is published while the book has an event with this key, or until `dedupeWindow` is over. */
  readonly dedupeKey?: string;
  /** How long a dedupe key counts; default as long as its event is kept. */
  readonly dedupeWindow?: Duration;
  /** Delivered at this time or later. */
  readonly at?: TimeInput;
  /** Delivered after this long or later. */
  readonly in?: Duration;
  /** Texts that travel beside the payload: a trace, a version, the author. */
  readonly headers?: Readonly<Record<string, string>>;
};

const publishKeys = ["id", "priority", "key", "dedupeKey", "dedupeWindow", "at", "in", "headers"] as const;

/** What a publish writes. What is left out has its default: see `newEvent`. */
export type PreparedEvent = {
  readonly topic: string;
  /** Canonical JSON. */
  readonly payload: string;
  readonly id?: string | null;
  readonly priority?: number;
  readonly key?: string | null;
  readonly dedupeKey?: string | null;
  readonly dedupeWindowMs?: number | null;
  readonly at?: number | null;
  readonly delayMs?: number;
  /** JSON: an object of texts. */
  readonly headers?: string | null;
  readonly cause?: Cause | undefined;
  /** The id of the event that this one repeats. */
  readonly replayOf?: string;
};

export async function prepareEvent(
  definition: AnyEvent,
  payload: unknown,
  options: PublishOptions = {},
): Promise<Required<Omit<PreparedEvent, "replayOf">>> {
  const { topic } = definition;
  checkTopic(topic);
  refuseUnknown(options, publishKeys, `publish of "${topic}"`);
  if (options.at !== undefined && options.in !== undefined) throw invalid('give "at" or "in", not both');
  if (options.dedupeWindow !== undefined && options.dedupeKey === undefined) {
    throw invalid('"dedupeWindow" says something about "dedupeKey", which is missing');
  }
  // The book keeps the payload as it was given. A schema may transform it, and listeners apply the schema once more.
  const given = payload ?? null;
  await validatePayload(definition, given);
  return {
    topic,
    id: options.id === undefined ? null : checkKey(options.id, "event id"),
    payload: toJson(given, { what: "payload" }),
    priority: checkPriority(options.priority ?? eventPriority),
    key: options.key === undefined ? null : checkKey(options.key, "key"),
    dedupeKey: options.dedupeKey === undefined ? null : checkKey(options.dedupeKey, "dedupeKey"),
    dedupeWindowMs:
      options.dedupeWindow === undefined ? null : durationMs(options.dedupeWindow, "dedupeWindow", { min: 1 }),
    at: options.at === undefined ? null : futureMs(options.at, "at"),
    delayMs: options.in === undefined ? 0 : durationMs(options.in, "in"),
    headers: options.headers === undefined ? null : headersJson(options.headers),
    cause: currentCause(),
  };
}

/** Higher than the default of jobs, which is 0: listeners hear an event before new work begins. */
export const eventPriority = 100;

/** The payload as the event's schema returns it. */
export async function validatePayload({ topic, schema }: AnyEvent, payload: unknown): Promise<unknown> {
  return schema === undefined ? payload : fittingPayload(topic, await schema["~standard"].validate(payload));
}

/** The payload that a schema returned; throws when the schema refused it. */
export function fittingPayload(topic: string, result: StandardSchemaV1.Result<unknown>): unknown {
  return fitting(result, `the payload of "${topic}" does not fit its schema`, { topic });
}

/** The error of a listener's run whose payload its schema refused. */
export function unfitPayload(cause: unknown): Error {
  const error = new Error(describeError(cause).message, { cause });
  error.name = "DependencyError";
  return error;
}

function headersJson(headers: Readonly<Record<string, string>>): string {
  // Headers and a Map have no properties of their own, and would count as none given.
  if (!isPlain(headers)) throw invalid(`headers are ${quote(headers)}: give an object of texts`);
  const names = Object.keys(headers);
  if (names.length > limits.headersMax) throw invalid(`${names.length} headers: at most ${limits.headersMax}`);
  for (const name of names) {
    if (typeof headers[name] !== "string")
      throw invalid(`header ${quote(name)} is ${quote(headers[name])}: give a text`);
  }
  return toJson(headers, { what: "headers", bytesMax: limits.headersBytesMax });
}
