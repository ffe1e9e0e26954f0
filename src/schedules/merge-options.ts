// The options of a schedule that exists, with changes laid over them.
import type { ScheduleOptions } from "./options.ts";
import type { ScheduleRow } from "./schedule.ts";
import type { StoredTarget } from "./target.ts";

const timingKeys = ["cron", "every", "at", "daily"];

export function mergeOptions(row: ScheduleRow, changes: object): ScheduleOptions {
  const timing = timingKeys.some((key) => key in changes) ? {} : timingFrom(row);
  const target = "job" in changes || "template" in changes ? {} : targetFrom(row);
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
  const merged = { ...timing, ...target, ...rest, ...changes };
  // Null takes a setting back, and what was never set is not there.
  const entries = Object.entries(merged).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries) as unknown as ScheduleOptions;
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
  const { prepared, overrides } = JSON.parse(row.job) as StoredTarget;
  const { queue, priority, tags } = prepared;
  const settings = { queue, priority, ...(tags === null ? {} : { tags: JSON.parse(tags) as string[] }) };
  return row.target === "template"
    ? { template: row.target_name, params: overrides, ...settings }
    : { job: row.target_name, params: JSON.parse(prepared.params) as unknown, ...settings };
}
