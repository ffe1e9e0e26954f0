// What an enqueue will write, checked and complete, before any transaction begins.
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkKey, checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { checkWord, refuseUnknown } from "../core/suggest.ts";
import { futureMs, type TimeInput } from "../core/time.ts";
import { currentCause } from "../core/cause.ts";
import { currentTraceparent } from "../telemetry/trace.ts";
import { checkSettings, settingNames, validateParams } from "./define.ts";
import type { AnyJob, JobOptions, JobSettings } from "./define.ts";
import type { JobRow } from "./job.ts";
import type { Limits } from "./limit.ts";

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
  /** What to do when the key is taken: `"keep"` the job that has it (default), `"replace"` its params, priority and time
   *  while it has not started, or `"error"`. */
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
    tags: options.tags === undefined ? null : tagsJson(options.tags),
    attempts: own.attempts ?? definition.attempts,
    backoff: own.backoff ?? backoff,
    timeout_ms: own.timeout ?? definition.timeoutMs,
    losses_max: own.losses ?? definition.losses,
    ...limitsOf(definition, params),
    cause: currentCause(),
    traceparent: currentTraceparent(),
    // What whoever makes it should be told.
    warning: definition.byName?.warning ?? undefined,
    ...definition.owner,
  };
}

/** What limits a job of these params. */
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

function tagsJson(tags: readonly string[]): string {
  if (typeof tags === "string") throw invalid('tags is a list of texts, such as ["mail", "eu"]');
  if (tags.length > limits.tagsMax) throw invalid(`${tags.length} tags: at most ${limits.tagsMax}`);
  for (const tag of tags) {
    const bytes = Buffer.byteLength(checkName(tag, "tag"));
    if (bytes > limits.tagBytesMax)
      throw invalid(`tag ${quote(tag)} is ${bytes} bytes long; at most ${limits.tagBytesMax}`);
  }
  return toJson([...new Set(tags)].toSorted(), { what: "tags" });
}
