// Definitions of events and of durable listeners.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { checkBackoff, type Backoff } from "../core/retry.ts";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { isSchema } from "../core/standard-schema.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { TimeInput } from "../core/time.ts";
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

export type AnyListener = {
  readonly kind: "listener";
  readonly name: string;
  readonly topics: readonly string[];
  /** The event definitions among what it hears. */
  readonly events: readonly AnyEvent[];
  readonly from: StartFrom;
  readonly attempts: number;
  readonly backoff: Backoff;
  readonly timeoutMs: number | null;
  readonly losses: number;
  readonly concurrency: number | null;
  readonly ordered: boolean;
  readonly queue: string;
  readonly allTenants: boolean;
  /** It gets the stored payload, not what a schema returns. */
  readonly raw?: true;
  readonly run: (payload: never, context: never) => unknown;
};

const known = [
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
  const live = ofLive.find((key) => key in options);
  if (live !== undefined) {
    throw invalid(`"${live}" of listener "${name}" is for those that are live: say live: true, or leave it out`, {
      details: { option: live },
    });
  }
  refuseUnknown(options, known, `listener "${name}"`);
  if (typeof options.run !== "function") throw invalid(`listener "${name}" has no run function`);
  if (options.backoff !== undefined) checkBackoff(options.backoff);
  const heard = heardBy(name, options.on);
  const { tenants, from } = options;
  if (tenants !== undefined && tenants !== "all")
    throw invalid(`tenants ${quote(tenants)} of listener "${name}" is not "all"`);
  if (tenants === "all" && typeof from === "object" && "event" in from) {
    throw invalid(`listener "${name}" is for all tenants, and an event belongs to one of them: give a time`);
  }
  return {
    kind: "listener",
    name,
    topics: [...new Set(heard.map((each) => (typeof each === "string" ? each : each.topic)))],
    events: heard.filter((each) => typeof each !== "string"),
    from: checkStart(name, options.from ?? "now"),
    attempts: checkCount(options.attempts ?? 10, "attempts", 1),
    backoff: options.backoff ?? usualBackoff,
    timeoutMs: options.timeout === undefined ? null : durationMs(options.timeout, "timeout", { min: 1 }),
    losses: checkCount(options.losses ?? 3, "losses", 0),
    concurrency: options.concurrency === undefined ? null : checkCount(options.concurrency, "concurrency", 1),
    ordered: options.ordered ?? false,
    queue: checkName(options.queue ?? "events", "queue"),
    allTenants: tenants === "all",
    run: options.run,
  };
}

export function heardBy(name: string, on: unknown): readonly Heard[] {
  const all: readonly unknown[] = Array.isArray(on) ? on : [on];
  if (all.length === 0 || all.length > limits.listenerTopicsMax) {
    throw invalid(`listener "${name}" hears ${all.length} things: give 1 to ${limits.listenerTopicsMax}`);
  }
  return all.map((each) => {
    if (typeof each === "string") return checkPattern(each);
    if (isEvent(each)) return each;
    throw invalid(
      `listener "${name}" hears ${quote(each)}: give an event, a pattern such as "order.*", or a list of them`,
    );
  });
}

export function isEvent(value: unknown): value is AnyEvent {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "event";
}

function checkStart(name: string, from: StartFrom): StartFrom {
  if (from === "now" || from === "beginning") return from;
  if (typeof from === "object" && from !== null && "time" in from !== "event" in from) return from;
  throw invalid(`listener "${name}" starts from ${quote(from)}: give "now", "beginning", { time } or { event: id }`);
}
