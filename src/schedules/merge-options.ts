// The options of a schedule that exists, with changes laid over them.
import { toJson } from "../core/json.ts";
import type { CheckedSchedule, ScheduleOptions } from "./options.ts";
import type { ScheduleRow } from "./schedule.ts";
import type { StoredTarget } from "./target.ts";

const timingKeys = ["cron", "every", "at", "in", "daily"];

/** What an edit may name. Null takes a setting back, undefined was not given. */
export type ScheduleChanges = OrNull<ScheduleOptions>;

type OrNull<Options> = { readonly [Key in keyof Options]?: Options[Key] | null };

export function mergeOptions(row: ScheduleRow, given: object): ScheduleOptions {
  const changes: object = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const timing = timingKeys.some((key) => key in changes) ? keptTiming(row, changes) : timingFrom(row);
  const isOther = "job" in changes || "template" in changes || "event" in changes;
  const target = isOther ? {} : targetFrom(row);
  const { zone, gap, overlap, starts_at: start, ends_at: end, missed, concurrency } = row;
  const { max_lateness_ms: maxLateness, jitter_ms: jitter, max_fires: maxFires, pause_after: pauseAfterFailures } = row;
  const rest = {
    zone,
    gap,
    overlap,
    start,
    end,
    missed,
    concurrency,
    maxLateness,
    jitter,
    maxFires,
    pauseAfterFailures,
  };
  // One moment has no bounds, and those that it had were of another timing.
  const bounds = "in" in changes ? { start: null, end: null } : {};
  // What is about jobs neither comes from an event nor goes to one.
  const ofJobs = row.target === "event" || "event" in changes ? { concurrency: null, pauseAfterFailures: null } : {};
  const merged = { ...timing, ...target, ...rest, ...ofJobs, ...bounds, ...changes };
  const entries = Object.entries(merged).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries) as unknown as ScheduleOptions;
}

// What an interval is counted from stays when only its length is changed.
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
  const said = { event: row.target_name, payload: JSON.parse(prepared.params) as unknown, ...settings };
  if (row.target === "event") return said;
  return row.target === "template"
    ? { template: row.target_name, params: overrides, ...settings }
    : { job: row.target_name, params: JSON.parse(prepared.params) as unknown, ...settings };
}

const targetKeys = ["job", "template", "params", "queue", "priority", "tags", "event", "payload"];

/** What the definition of the job said when the schedule was made stays, unless the edit is about the job: a process that
 *  does not know the definition (a command line) must not forget its attempts, timeout and limits. */
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
