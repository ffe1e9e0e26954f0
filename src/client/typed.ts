// The verbs that take a definition of yours and are typed by it, as they are in the library.
import { DaybookError } from "../core/daybook-error.ts";
import type { Duration } from "../core/duration.ts";
import type { Event } from "../events/define.ts";
import type { AnyJob, EnqueueOptions, Given, Job } from "../jobs/define.ts";
import type { Enqueued } from "../jobs/enqueue.ts";
import type { AwaitableJob } from "../jobs/result.ts";
import type { Entity } from "../records/define/definition.ts";
import type { Written } from "../records/write/write.ts";
import { isNamed } from "./request.ts";
import { waitInParts, type CallOptions } from "./send.ts";
import type { Moment, Noun } from "./verbs.ts";

type Making = Omit<EnqueueOptions, "backoff" | "losses" | "at"> & {
  readonly at?: Moment;
  readonly signal?: AbortSignal;
};
// One signature for all, because of overloads the compiler would point at the definition, whatever is wrong.
type InputOf<Of> = Of extends Job<infer Input, unknown> ? Input : never;
type ResultOf<Of> = Of extends Job<infer _Input, infer Result> ? Result : never;

export type TypedJobs = Omit<Noun<"jobs">, "enqueue" | "result"> & {
  /** Makes a job. A program that cannot import the definition names it, with
   *  its type: `enqueue<typeof sendReceipt>("send-receipt", { orderId })`. */
  enqueue<Of extends AnyJob = Job>(
    definition: Of | string,
    ...given: Given<InputOf<Of>, Making>
  ): Promise<AwaitableJob<ResultOf<Of>>>;
  /** Makes a job from a template. */
  enqueueFrom(template: string, overrides?: unknown, options?: Making): Promise<AwaitableJob>;
  /** Waits until the job has ended with all its retries, and gives what its handler returned. */
  result<Result>(job: Enqueued<Result> | string, options?: Waiting): Promise<NoInfer<Result>>;
};

export type Waiting = { readonly timeout?: Duration; readonly signal?: AbortSignal };

type Publishing = Parameters<Noun<"events">["publish"]>[1];

export type TypedEvents = Omit<Noun<"events">, "publish"> & {
  publish<Input>(
    event: Event<Input, unknown> | string,
    ...given: Given<NoInfer<Input>, Omit<NonNullable<Publishing>, "payload"> & CallOptions>
  ): ReturnType<Noun<"events">["publish"]>;
};

type Writing = Parameters<Noun<"records">["put"]>[2];

export type TypedRecords = Omit<Noun<"records">, "put"> & {
  put<Input, Value>(
    type: Entity<Input, Value> | string,
    document: NoInfer<Input>,
    input?: Writing,
    options?: CallOptions,
  ): Promise<Written>;
};

export type TypedGroups = Omit<Noun<"groups">, "wait"> & {
  /** Waits until the group has ended. */
  wait(id: string, options?: Waiting): ReturnType<Noun<"groups">["wait"]>;
};

/** Asks a verb, by its key and its fields. */
export type Ask = (verb: string, input: Readonly<Record<string, unknown>>, options?: CallOptions) => Promise<unknown>;

type Fields = Record<string, unknown>;

/** These, in place of what the table alone would make. */
export function typedVerbs(ask: Ask): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const result = async (job: unknown, options: Waiting = {}): Promise<unknown> => {
    const id = typeof job === "string" ? job : (job as Enqueued | undefined)?.id;
    if (typeof id !== "string") throw new DaybookError("invalid", "give the id of a job, or what enqueue returned");
    const answer = await waitFor(ask, "jobs.result", { id, wait: true }, options);
    return (answer as { readonly result: unknown }).result ?? undefined;
  };
  const make = async (input: Fields, { keyScope, signal, ...options }: Fields = {}): Promise<unknown> => {
    const scope = keyScope === undefined ? {} : { keyScope: scopeText(keyScope) };
    const made = await ask("jobs.enqueue", { ...input, ...options, ...scope }, callOptions({ signal }));
    const { id } = made as Enqueued;
    return Object.defineProperty(made, "result", { value: (waiting?: Waiting) => result(id, waiting) });
  };
  return {
    jobs: {
      result,
      enqueue: (definition: unknown, params?: unknown, options?: Fields) =>
        make({ name: isNamed(definition) ? definition.name : definition, ...given("params", params) }, options),
      enqueueFrom: (template: unknown, overrides?: unknown, options?: Fields) =>
        make({ template, ...given("params", overrides) }, options),
    },
    events: {
      async publish(event: unknown, payload?: unknown, { signal, idempotencyKey, ...options }: Fields = {}) {
        const topic = typeof event === "object" && event !== null && "topic" in event ? event.topic : event;
        const input = { topic, ...given("payload", payload), ...options };
        return ask("events.publish", input, callOptions({ signal, idempotencyKey }));
      },
    },
    groups: { wait: (id: unknown, options: Waiting = {}) => waitFor(ask, "groups.wait", { id }, options) },
  };
}

function given(name: string, value: unknown): Fields {
  return value === undefined ? {} : { [name]: value };
}

function callOptions(options: Fields): CallOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function scopeText(scope: unknown): unknown {
  return typeof scope === "object" && scope !== null && "window" in scope ? scope.window : scope;
}

function waitFor(ask: Ask, verb: string, input: Fields, { timeout, signal }: Waiting): Promise<unknown> {
  const options = callOptions({ signal });
  const once = (partMs: number): Promise<unknown> => ask(verb, { ...input, timeout: partMs }, options);
  return waitInParts(timeout === undefined ? Number.POSITIVE_INFINITY : durationOf(timeout), once);
}

const unitsMs: Readonly<Record<string, number>> = {
  w: 604_800_000,
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
};

function durationOf(timeout: Duration): number {
  if (typeof timeout === "number" && timeout >= 0) return timeout;
  const parts = [...String(timeout).matchAll(/ ?(\d+)(ms|[wdhms])/gy)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== timeout) {
    throw new DaybookError(
      "invalid",
      `timeout is ${JSON.stringify(timeout)}: give milliseconds, or text such as "30s" or "5m"`,
    );
  }
  return parts.reduce((sum, [, many, unit = ""]) => sum + Number(many) * (unitsMs[unit] ?? 0), 0);
}
