// A definition: what a piece of work is called, what it takes and what it does. Everything else has a default. From it and from what
// an enqueue says comes a prepared job: all that will be written, checked and complete, before any transaction begins.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkKey, checkName, checkTags } from "../core/name.ts";
import { fitting, isSchema } from "../core/standard-schema.ts";
import { refuseUnknown, checkWord } from "../core/suggest.ts";
import type { RunOwner } from "../telemetry/run.ts";
import type { RunContext } from "./run/run.ts";
import type { ByName } from "./definition.ts";
import type { Engine } from "./engine.ts";
import { checkRate, type Rate, type Limits } from "./claim/limit.ts";
import { checkBackoff, type Backoff } from "../core/retry.ts";
import { futureMs, type TimeInput } from "../core/time.ts";
import { currentCause } from "../core/cause.ts";
import { currentTraceparent, tracing } from "../telemetry/trace.ts";
import { endedStatuses, type FinishedStatus, type JobRow } from "./job.ts";
import { checkNotice, type Notice } from "./notice.ts";

/** What a definition says of its jobs, and a template or an enqueue may say otherwise. */
export type JobSettings = {
  readonly queue?: string;
  /** −1000 … 1000; higher runs first. */
  readonly priority?: number;
  /** How often the work may be tried in total; default 4. */
  readonly attempts?: number;
  /** How long to wait before each retry; default 10 s, doubling, at most an hour, with jitter. */
  readonly backoff?: Backoff;
  /** How long one run may take; default without limit. */
  readonly timeout?: Duration;
  /** How often its process may be lost while it runs alone, before it is given up; default 3. */
  readonly losses?: number;
};

/** `Context` is what the front door gives to a handler; this room only passes it on. */
export type JobOptions<Params, Result, Context> = JobSettings & {
  /** Checks and types the params. Any Standard Schema: zod, valibot, arktype … */
  readonly params?: StandardSchemaV1<unknown, Params> | undefined;
  /** How many may run at the same time in one tenant, in all processes together. */
  readonly concurrency?: number;
  /** How many with the same key may run at the same time. */
  readonly limit?: { readonly key: (params: NoInfer<Params>) => string; readonly concurrency: number };
  /** How many may start per window: `{ max: 10, per: "1m" }`, for the name or for each key. */
  readonly rate?: Rate<NoInfer<Params>>;
  /** Tells a webhook how a job ended, after its last try: a call that is made in the same commit, whatever ended it. A template may
   *  say otherwise. */
  readonly notify?: Notice<FinishedStatus>;
  readonly run: (params: Params, context: Context) => Promise<Result> | Result;
};

/** A definition of any types, for lists of them. Only the definition itself reads its params. */
export type AnyJob = {
  readonly kind: "job";
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly attempts: number;
  readonly backoff: Backoff | undefined;
  readonly timeoutMs: number | null;
  readonly losses: number;
  readonly concurrency: number | null;
  readonly options: JobOptions<never, unknown, never>;
  readonly builtIn?: BuiltIn | undefined;
  /** Set on one that was found in the book, or nowhere, by its name alone. */
  readonly byName?: ByName;
  readonly owner?: RunOwner;
};

/** Work of the engine's own kind (a program to start), in place of a handler. */
export type BuiltIn = {
  /** Throws where a user enqueues or edits such a job: only its room makes them. */
  byHand?(): void;
  /** Throws when valid params are none for this kind; asked when a job is enqueued and again when it runs. */
  check?(params: unknown): void;
  run(engine: Engine, params: unknown, context: RunContext): Promise<unknown>;
};

/** A job that can be enqueued with `Input` and, where it is listed in `use`, run. */
export type Job<Input = unknown, Result = unknown> = AnyJob & {
  /** For the compiler alone; there is nothing here when the program runs. */
  readonly "~types"?: { readonly input: Input; readonly result: Result };
};

/** The arguments after a definition: params, which may be left out where nothing needs to be given, and options. */
export type Given<Input, Options> =
  Record<never, never> extends Input
    ? [params?: Input, options?: Options]
    : undefined extends Input
      ? [params?: Input, options?: Options]
      : [params: Input, options?: Options];

/** How each setting is checked, and what a row keeps of it. */
const settings = {
  queue: (queue: string) => checkName(queue, "queue"),
  priority: checkPriority,
  attempts: (attempts: number) => checkCount(attempts, "attempts", 1),
  backoff: (backoff: Backoff) => toJson(checkBackoff(backoff), { what: "backoff" }),
  timeout: (timeout: Duration) => durationMs(timeout, "timeout", { min: 1 }),
  losses: (losses: number) => checkCount(losses, "losses", 0),
};
type CheckedSettings = { readonly [Name in keyof JobSettings]?: ReturnType<Required<typeof settings>[Name]> };

export const settingNames = Object.keys(settings) as (keyof JobSettings)[];

export function checkSettings(given: JobSettings): CheckedSettings {
  const names = settingNames.filter((name) => given[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, settings[name](given[name] as never)]));
}

export const jobOptionNames = ["params", ...settingNames, "concurrency", "limit", "rate", "notify", "run"] as const;

export function defineJob<Input, Result>(name: string, options: JobOptions<never, Result, never>): Job<Input, Result> {
  checkName(name, "job name");
  // A handler in place of the options is the usual slip, and gets its own advice.
  if (typeof options !== "function") refuseUnknown(options, jobOptionNames, `job "${name}"`);
  if (typeof options.run !== "function") throw invalid(`job "${name}" has no run function: job("${name}", { run })`);
  if (options.params !== undefined && !isSchema(options.params)) {
    throw invalid(`the params of job "${name}" are no schema: give a Standard Schema (zod, valibot, arktype …)`);
  }
  if (options.rate !== undefined) checkRate(options.rate);
  if (options.notify !== undefined) checkNotice(options.notify, endedStatuses, `job "${name}"`);
  if (options.limit !== undefined) {
    refuseUnknown(options.limit, ["key", "concurrency"], "limit");
    if (typeof options.limit.key !== "function") throw invalid(`the limit of job "${name}" has no key function`);
    checkCount(options.limit.concurrency, "limit concurrency", 1);
  }
  const {
    queue = "default",
    priority = 0,
    attempts = 4,
    timeout: timeoutMs = null,
    losses = 3,
  } = checkSettings(options);
  return {
    kind: "job",
    name,
    queue,
    priority,
    attempts,
    timeoutMs,
    losses,
    backoff: options.backoff,
    concurrency: options.concurrency === undefined ? null : checkCount(options.concurrency, "concurrency", 1),
    options,
  };
}

export function checkPriority(priority: number): number {
  if (Number.isInteger(priority) && Math.abs(priority) <= limits.priorityMax) return priority;
  throw invalid(`priority ${priority} is not a whole number from -${limits.priorityMax} to ${limits.priorityMax}`);
}

/** The params as the definition's schema gives them back, defaults filled in. */
export async function validateParams(definition: AnyJob, input: unknown): Promise<unknown> {
  const schema: StandardSchemaV1 | undefined = definition.options.params;
  const { name: job, builtIn } = definition;
  const misfit = `params of job "${job}" do not fit its schema`;
  const params = schema === undefined ? input : fitting(await schema["~standard"].validate(input), misfit, { job });
  builtIn?.check?.(params);
  return params;
}

export type EnqueueOptions = JobSettings & {
  /** Not before this time. */
  readonly at?: TimeInput;
  /** Not before this long from now. */
  readonly in?: Duration;
  /** At most one job of this name and key at a time; see `keyScope` and `onConflict`. */
  readonly key?: string;
  /** How long a key is taken: until the job starts (`"queued"`), until it is done with all its retries (`"done"`, the
   *  default), or for a window of time from now. */
  readonly keyScope?: "queued" | "done" | { readonly window: Duration };
  /** When the key is taken: `"keep"` its job (default), `"replace"` its params, priority and time until it starts, or `"error"`. */
  readonly onConflict?: OnConflict;
  /** The same key and params again give the same job; other params are refused. */
  readonly idempotencyKey?: string;
  readonly tags?: readonly string[];
};

const onConflicts = ["keep", "replace", "error"] as const;
export type OnConflict = (typeof onConflicts)[number];

const own = ["at", "in", "key", "keyScope", "onConflict", "idempotencyKey", "tags"] as const;
const known: readonly (keyof EnqueueOptions)[] = [...settingNames, ...own];

/** The columns of the job that are known before its transaction, and what that makes the others of. */
export type Prepared = Readonly<Awaited<ReturnType<typeof prepareJob>>> & Partial<Pick<JobRow, "template_id">>;

export async function prepareJob(definition: AnyJob, input: unknown, options: EnqueueOptions) {
  definition.builtIn?.byHand?.();
  refuseUnknown(options, known, `enqueue of "${definition.name}"`);
  if (options.at !== undefined && options.in !== undefined) throw invalid('give "at" or "in", not both');
  for (const about of ["keyScope", "onConflict"] as const) {
    if (options[about] === undefined || options.key !== undefined) continue;
    throw invalid(`"${about}" says something about "key", which is missing`);
  }
  // What is kept is what was given: a schema may transform, and then its output is not its input when the job runs.
  const given = input ?? {};
  const params = await validateParams(definition, given);
  const own = checkSettings(options);
  const backoff = definition.backoff === undefined ? null : toJson(definition.backoff, { what: "backoff" });
  return {
    name: definition.name,
    queue: own.queue ?? definition.queue,
    priority: own.priority ?? definition.priority,
    params: toJson(given, { what: "params" }),
    // Either a moment, or a delay from the transaction's own time.
    at: options.at === undefined ? null : futureMs(options.at, "at"),
    delayMs: options.in === undefined ? 0 : durationMs(options.in, "in"),
    key: options.key === undefined ? null : checkKey(options.key, "key"),
    key_scope: options.key === undefined ? null : scopeOf(options.keyScope),
    keyWindowMs:
      typeof options.keyScope === "object" ? durationMs(options.keyScope.window, "key window", { min: 1 }) : null,
    onConflict: checkWord(options.onConflict ?? "keep", onConflicts, "onConflict"),
    idempotency_key: options.idempotencyKey === undefined ? null : checkKey(options.idempotencyKey, "idempotencyKey"),
    tags: options.tags === undefined ? null : toJson(checkTags(options.tags).toSorted(), { what: "tags" }),
    attempts: own.attempts ?? definition.attempts,
    backoff: own.backoff ?? backoff,
    timeout_ms: own.timeout ?? definition.timeoutMs,
    losses_max: own.losses ?? definition.losses,
    ...limitsOf(definition, params),
    cause: currentCause(),
    traceparent: tracing.api === undefined ? undefined : currentTraceparent(),
    // What its maker should be told.
    warning: definition.byName?.warning ?? undefined,
    ...definition.owner,
  };
}

export function limitsOf(definition: AnyJob, params: unknown): Pick<JobRow, "limits" | "limit_key"> {
  const { limit, rate } = definition.options as unknown as JobOptions<unknown, unknown, unknown>;
  const { concurrency } = definition;
  if (concurrency === null && limit === undefined && rate === undefined) return { limits: null, limit_key: null };
  const window = rate && {
    key: limitKey(definition.name, rate.key?.(params) ?? "*"),
    max: rate.max,
    ms: durationMs(rate.per, "rate per"),
  };
  // What is undefined is not written.
  const rules: { [Rule in keyof Limits]: Limits[Rule] | undefined } = {
    name: concurrency ?? undefined,
    key: limit?.concurrency,
    rate: window,
  };
  return {
    limits: JSON.stringify(rules),
    limit_key: limit === undefined ? null : limitKey(definition.name, limit.key(params)),
  };
}

// Limits belong to a name: two jobs that happen to use the same key do not hold each other up.
function limitKey(name: string, key: string): string {
  return `${name}\n${checkKey(key, "limit key")}`;
}

function scopeOf(scope: EnqueueOptions["keyScope"] = "done"): JobRow["key_scope"] {
  if (scope === "queued" || scope === "done") return scope;
  if (typeof scope === "object" && scope !== null && "window" in scope) return "window";
  throw invalid(`keyScope ${JSON.stringify(scope)} is not known: "queued", "done" or { window: "1h" }`);
}
