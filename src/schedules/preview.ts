// The next fires of a schedule, as they would be: of one that exists, of one that is being written, and of both beside each
// other before an edit is saved.
import { checkCount } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { offsetOf, type ScheduleRow } from "./schedule.ts";
import type { Timing } from "./timing/timing.ts";

export type FirePreview = {
  /** Epoch milliseconds of the slot, and of the fire, which jitter makes later. */
  readonly at: number;
  readonly fireAt: number;
  /** What the schedule's local clock reads by the expression. */
  readonly local: string;
  /** The same moment in the zone of whoever looks. */
  readonly there: string;
  /** The local time does not exist on that day and is moved, or exists twice. */
  readonly dst: "gap" | "overlap" | null;
};

export function previewFires(
  timing: Timing,
  row: Pick<ScheduleRow, "id" | "jitter_ms"> & Partial<Pick<ScheduleRow, "max_fires" | "fires">>,
  { after, count, zone }: { readonly after: number; readonly count: number; readonly zone: string },
): FirePreview[] {
  checkCount(count, "count", 1, 1000);
  const format = formatIn(zone);
  const offset = offsetOf(row);
  const fires: FirePreview[] = [];
  const most = Math.min(count, (row.max_fires ?? Number.POSITIVE_INFINITY) - (row.fires ?? 0));
  for (let slot = timing.next(after); slot !== null && fires.length < most; slot = timing.next(slot.at)) {
    const { at, local, dst } = slot;
    fires.push({ at, fireAt: at + offset, local, there: format(at), dst });
  }
  return fires;
}

function formatIn(zone: string): (at: number) => string {
  try {
    const format = new Intl.DateTimeFormat("sv-SE", {
      ...({ timeZone: zone, dateStyle: "short", timeStyle: "medium" } as const),
    });
    return (at) => format.format(at).replace(" ", "T");
  } catch {
    throw invalid(`zone "${zone}" is not known: use a name such as "Europe/Madrid" or "UTC"`);
  }
}
