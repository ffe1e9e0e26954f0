// "In ten minutes": once, counted from the moment at which the schedule is written. That moment stays with it as its anchor,
// so that a program which starts again finds the same wish and does not put it off.
import { timeMs } from "../core/time.ts";
import type { CheckedSchedule } from "./options.ts";
import type { ScheduleRow } from "./schedule.ts";
import { createTiming, restoreTiming } from "./timing/timing.ts";

/** With "in" counted from now; anything else as it is. */
export function countedFrom(now: number, checked: CheckedSchedule): CheckedSchedule {
  if (checked.inMs === null) return checked;
  const { zone, gap, overlap } = checked;
  const timing = createTiming({ in: checked.inMs }, { zone, gap, overlap }, now);
  return { ...checked, expression: timing.expression, anchor_at: timing.stored.anchor, timing };
}

/** Whether the row is the same wish, counted when it was first written. */
export function isCounted({ kind, expression, anchor_at: anchor }: ScheduleRow, { inMs }: CheckedSchedule): boolean {
  return inMs !== null && kind === "once" && anchor !== null && timeMs(expression, "at") - anchor === inMs;
}

export function keepMoment({ expression, anchor_at }: ScheduleRow, checked: CheckedSchedule): CheckedSchedule {
  const timing = restoreTiming({ ...checked.timing.stored, expression, anchor: anchor_at });
  return { ...checked, expression, anchor_at, timing };
}
