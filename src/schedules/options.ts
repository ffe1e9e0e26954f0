// The options of a schedule, checked. Definitions in code and schedules made at run time share them.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson, isPlain } from "../core/json.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown, checkWord } from "../core/suggest.ts";
import { timeMs } from "../core/time.ts";
import type { FireOverlap, Missed, ScheduleRow } from "./schedule.ts";
import { checkTarget, type CheckedTarget, type Around, type TargetOptions, type StoredTarget } from "./target.ts";
import { createTiming, timingKeys, restoreTiming } from "./timing/timing.ts";
import type { Timing, TimingInput, TimingOptions, StoredTiming } from "./timing/timing.ts";

export type Policies = {
  /** What to do with slots that were due while no process worked: run the latest (default), all, or none. */
  readonly missed?: Missed;
  /** How late a missed slot may still run; default one period (at most a day) for `latest`, a day for `all`. */
  readonly maxLateness?: Duration;
  /** When the job of the previous slot has not ended: skip this slot (default), queue its job, cancel the other job, or run both.
   *  Not for events, which have no job. */
  readonly overlap?: FireOverlap;
  /** Fires up to this much later, by a fixed amount per schedule, so that many schedules do not fire at once. */
  readonly jitter?: Duration;
  readonly maxFires?: number;
  /** Pauses the schedule after this many jobs in a row have failed for good. */
  readonly pauseAfterFailures?: number;
};

/** When, what and how. */
export type ScheduleOptions<Input = unknown> = Alone<TimingInput> & TimingOptions & Policies & TargetOptions<Input>;

/** One way to say when, without the others. */
type Alone<When> = When extends unknown
  ? When & { readonly [other in Exclude<(typeof timingKeys)[number], keyof When>]?: undefined }
  : never;

export type CheckedSchedule = CheckedTarget &
  StoredTiming &
  Pick<
    ScheduleRow,
    "missed" | "max_lateness_ms" | "overlap" | "jitter_ms" | "max_fires" | "pause_after" | "for_all"
  > & {
    readonly timing: Timing;
    /** The delay of "in", which counts from the moment the schedule is written; until then the timing counts from 1970. */
    readonly inMs: number | null;
  };

const timingOptionKeys = ["zone", "gap", "ambiguous", "start", "end"];
const policyKeys = ["missed", "maxLateness", "overlap", "jitter", "maxFires", "pauseAfterFailures"];
const targetKeys = ["job", "template", "params", "queue", "priority", "tags", "event", "payload"];
const known = [...timingKeys, "anchor", ...timingOptionKeys, ...policyKeys, ...targetKeys];

export async function checkSchedule(
  name: string,
  given: ScheduleOptions & DefinitionOptions,
  around: Around,
): Promise<CheckedSchedule> {
  checkName(name, "schedule name");
  const options = given.zone === undefined ? withZone(given, await around.zone()) : given;
  const { timing, jitter_ms } = checkWhen(name, options);
  const inMs = "in" in options && options.in !== undefined ? durationMs(options.in, "in") : null;
  const {
    missed = "latest",
    overlap = options.event === undefined ? "skip" : "allow",
    maxLateness,
    maxFires,
    pauseAfterFailures,
  } = options;
  return {
    ...timing.stored,
    timing,
    inMs,
    missed: checkWord(missed, ["latest", "all", "skip"], "missed"),
    overlap: checkWord(overlap, ["skip", "queue", "cancel", "allow"], "overlap"),
    ...(await checkTarget(name, options, around)),
    max_lateness_ms: maxLateness === undefined ? null : durationMs(maxLateness, "maxLateness"),
    jitter_ms,
    max_fires: maxFires === undefined ? null : checkCount(maxFires, "maxFires", 1),
    pause_after: pauseAfterFailures === undefined ? null : checkCount(pauseAfterFailures, "pauseAfterFailures", 1),
    for_all: given.tenants === "all" ? 1 : 0,
  };
}

/** The same options with that zone. What is no object of options is refused by what checks it next. */
export function withZone<Options extends object>(options: Options, zone: string): Options {
  return isPlain(options) ? { ...options, zone } : options;
}

type When = { readonly timing: Timing; readonly jitter_ms: number };

export function checkWhen(name: string, options: object, now?: number): When {
  refuseOthers(name, options);
  const { jitter } = options as Pick<Policies, "jitter">;
  return {
    timing: checkTiming(name, options, now),
    jitter_ms: jitter === undefined ? 0 : durationMs(jitter, "jitter"),
  };
}

/** Refuses what is no option of a schedule. Whether it may say for which tenants it is, its caller knows. */
export function refuseOthers(name: string, options: object): void {
  const { tenants: _tenants, ...rest } = Object(options) as { tenants?: unknown };
  refuseUnknown(isPlain(options) ? rest : options, known, `schedule "${name}"`);
}

export function checkTiming(name: string, options: object, now?: number): Timing {
  const given = timingKeys.filter((key) => Reflect.get(options, key) !== undefined);
  if (given.length !== 1) {
    const what = given.length === 0 ? "says not when" : `says when in ${given.length} ways (${given.join(", ")})`;
    throw invalid(`schedule "${name}" ${what}: give one of cron, every, at, in, daily`);
  }
  const when = pick(options, [...timingKeys, "anchor"]) as TimingInput;
  return createTiming(when, pick(options, timingOptionKeys), now);
}

function pick(options: object, keys: readonly string[]): object {
  return Object.fromEntries(
    Object.entries(options).filter(([key, value]) => keys.includes(key) && value !== undefined),
  );
}

/** Counts "in" from now; returns any other schedule as it is. The moment is kept as the anchor, so that a program that starts again
 *  does not put the fire off. */
export function countedFrom(now: number, checked: CheckedSchedule): CheckedSchedule {
  if (checked.inMs === null) return checked;
  const { zone, gap, ambiguous } = checked;
  const timing = createTiming({ in: checked.inMs }, { zone, gap, ambiguous }, now);
  return { ...checked, expression: timing.expression, anchor_at: timing.stored.anchor_at, timing };
}

/** Whether the row was made by the same "in". */
export function isCounted({ kind, expression, anchor_at: anchor }: ScheduleRow, { inMs }: CheckedSchedule): boolean {
  return inMs !== null && kind === "once" && anchor !== null && timeMs(expression, "at") - anchor === inMs;
}

export function keepMoment({ expression, anchor_at }: ScheduleRow, checked: CheckedSchedule): CheckedSchedule {
  const timing = restoreTiming({ ...checked.timing.stored, expression, anchor_at });
  return { ...checked, expression, anchor_at, timing };
}

/** What an edit may change. Null resets a setting to its default; undefined leaves it as it is. */
export type ScheduleChanges = OrNull<ScheduleOptions>;

type OrNull<Options> = { readonly [Key in keyof Options]?: Options[Key] | null };

/** The options of an existing schedule with an edit applied. */
export function mergeOptions(row: ScheduleRow, given: object): ScheduleOptions {
  const changes: object = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const timing = timingKeys.some((key) => key in changes) ? keptTiming(row, changes) : timingFrom(row);
  const isOther = "job" in changes || "template" in changes || "event" in changes;
  const target = isOther ? {} : targetFrom(row);
  const { zone, gap, ambiguous, starts_at: start, ends_at: end, missed, overlap } = row;
  const { max_lateness_ms: maxLateness, jitter_ms: jitter, max_fires: maxFires, pause_after: pauseAfterFailures } = row;
  const policies = { missed, overlap, maxLateness, jitter, maxFires, pauseAfterFailures };
  const rest = { zone, gap, ambiguous, start, end, ...policies };
  // "in" is one moment without start and end; those of the row belong to its old timing.
  const bounds = "in" in changes ? { start: null, end: null } : {};
  // Policies about jobs do not apply to events.
  const ofJobs = row.target === "event" || "event" in changes ? { overlap: null, pauseAfterFailures: null } : {};
  const merged = { ...timing, ...target, ...rest, ...ofJobs, ...bounds, ...changes };
  const entries = Object.entries(merged).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries) as unknown as ScheduleOptions;
}

// An interval keeps its anchor when only its length changes.
function keptTiming({ kind, anchor_at: anchor }: ScheduleRow, changes: object): object {
  return kind === "every" && "every" in changes ? { anchor } : {};
}

function timingFrom({ kind, expression, anchor_at: anchor }: ScheduleRow): object {
  switch (kind) {
    case "cron":
      return { cron: expression };
    case "every":
      return { every: expression, anchor };
    case "once":
      return { at: expression };
    case "daily":
      return { daily: expression };
  }
}

function targetFrom(row: ScheduleRow): object {
  const { prepared, overrides, settings } = JSON.parse(row.job) as StoredTarget;
  const params: unknown = row.target === "template" ? overrides : JSON.parse(prepared.params);
  return { [row.target]: row.target_name, [row.target === "event" ? "payload" : "params"]: params, ...settings };
}

/** Keeps what the job's definition said when the schedule was made, unless the edit is about the job: a process that does not know
 *  the definition (the command line) must not lose its attempts, timeout and limits. */
export function keepTarget(row: ScheduleRow, given: object, checked: CheckedSchedule): CheckedSchedule {
  const { target, target_name, job } = row;
  const changed = Object.entries(given).some(([key, value]) => targetKeys.includes(key) && value !== undefined);
  if (!changed) return { ...checked, target, target_name, job, unknown: false, warning: null };
  if (!checked.unknown || checked.target !== target || checked.target_name !== target_name) return checked;
  const kept = JSON.parse(job) as StoredTarget;
  const { prepared, settings } = JSON.parse(checked.job) as StoredTarget;
  const { queue = kept.prepared.queue, priority = kept.prepared.priority } = settings;
  const { params, tags } = prepared;
  const stored: StoredTarget = { ...kept, settings, prepared: { ...kept.prepared, params, queue, priority, tags } };
  return { ...checked, job: toJson(stored, { what: "schedule" }) };
}

/** What a definition in code adds to the options of a schedule. */
export type DefinitionOptions = {
  /** `"all"`: every tenant has this schedule, also tenants that come later, and owns its jobs. Default: it belongs to the tenant of
   *  `open`. */
  readonly tenants?: "all";
};

/** A schedule defined in code. A process that works writes it into the book, by its name, when it opens the book. */
export type AnySchedule = {
  readonly kind: "schedule";
  readonly name: string;
  readonly options: ScheduleOptions & DefinitionOptions;
};

export function defineSchedule(name: string, options: AnySchedule["options"]): AnySchedule {
  checkName(name, "schedule name");
  checkTiming(name, options);
  const { tenants, template } = options;
  if (tenants !== undefined && tenants !== "all") {
    throw invalid(`schedule "${name}": tenants is ${quote(tenants)}; leave it out, or say "all"`);
  }
  if (tenants === "all" && template !== undefined) {
    throw invalid(`schedule "${name}" is for all tenants, and a template belongs to one of them: give "job"`);
  }
  return { kind: "schedule", name, options };
}
