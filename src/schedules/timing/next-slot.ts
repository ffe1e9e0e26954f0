import { type Plan, nextWall } from "./plan.ts";
import { type Slot, localText } from "./slot.ts";
import type { Period, Zone } from "./zone.ts";

/**
 * What becomes of local times that do not exist, or exist twice, when the clock is changed.
 *
 * A plan that leaves out some hour names times of the day, and each is due once on its day. A time inside a gap moves to
 * the gap's end; several that move to the same moment are one slot, which is called by the first of them, and by none when
 * the plan names the moment itself. A time that comes twice is due the first time.
 *
 * A plan of every hour is due whenever the local clock reads one of its times. So it keeps its pace in real time through
 * changes of whole hours: nothing is moved, and an hour that comes twice is two hours.
 */
export type ClockChanges = { readonly gap: "shift" | "skip"; readonly overlap: "first" | "last" | "both" };

/** The search ends here. Years have four digits in ISO 8601. */
export const latestMs = Date.UTC(10_000, 0, 1) - 1;
/** Before this, zones were whatever the sun said in each town. */
export const earliestMs = Date.UTC(1900, 0, 1);

// More than any change of any clock: Samoa and Kwajalein once left out a whole day.
const changeMsMax = 172_800_000;
// One search looks into this many periods at most. Only times that `skip` leaves out year after year come near it.
const periodsMax = 500;

/** The first slot strictly after `after`; null when there is none any more. */
export function nextSlot(plan: Plan, zone: Zone, changes: ClockChanges, after: number): Slot | null {
  let from = Math.max(Math.floor(after), earliestMs - 1);
  for (let looked = 0; looked < periodsMax && from < latestMs; looked++) {
    const period = zone.periodAt(from + 1);
    const moved = slotOfGap(plan, period, changes, from);
    if (moved !== null) return moved;
    const { start, end, offset, offsetBefore, offsetAfter } = period;
    const first = !plan.everyHour && changes.overlap === "first";
    const last = !plan.everyHour && changes.overlap === "last";
    const low = first ? start + Math.max(offset, offsetBefore) : start + offset;
    const high = last ? end + Math.min(offset, offsetAfter) : end + offset;
    const wall = nextWall(plan, Math.max(Math.ceil((from + 1 + offset) / 1000) * 1000, low));
    if (wall === null || wall - offset > latestMs) return null;
    if (wall < high) {
      const twice = wall < start + offsetBefore || wall >= end + offsetAfter;
      return { at: wall - offset, local: localText(wall), dst: twice ? "overlap" : null };
    }
    // Nothing is due before `wall`, so the periods until shortly before it need not be read, unless local times from
    // before `wall` come again.
    from = offsetAfter < offset ? end - 1 : Math.max(end - 1, wall - offset - changeMsMax);
  }
  return null;
}

/** The slot at the end of the gap with which a period begins, when some time of the plan fell into the gap. */
function slotOfGap(plan: Plan, period: Period, { gap }: ClockChanges, from: number): Slot | null {
  const { start, offset, offsetBefore } = period;
  if (plan.everyHour || gap === "skip" || start <= from || offset <= offsetBefore) return null;
  const wall = nextWall(plan, start + offsetBefore);
  if (wall === null || wall >= start + offset) return null;
  if (nextWall(plan, start + offset) === start + offset) return null;
  return { at: start, local: localText(wall), dst: "gap" };
}
