import { nextWall, type Plan } from "./plan.ts";
import type { Zone, Period } from "./zone.ts";

/** One moment at which a schedule is due. */
export type Slot = {
  readonly at: number;
  /** The local time by the expression, such as "2026-03-29T02:30:00"; in a gap, a time that did not exist. */
  readonly local: string;
  /** "gap": moved to the end of a gap. "ambiguous": the local clock reads this time twice. */
  readonly dst: "gap" | "ambiguous" | null;
};

/** The slot of an exact moment, which needs no resolving of clock changes. */
export function slotAt(zone: Zone, at: number): Slot {
  const { start, end, offset, offsetBefore, offsetAfter } = zone.periodAt(at);
  const wall = at + offset;
  const twice = wall < start + offsetBefore || wall >= end + offsetAfter;
  return { at, local: localText(wall), dst: twice ? "ambiguous" : null };
}

/** `wall` is a local time written as if it were UTC: milliseconds since 1970 on the local clock. */
export function localText(wall: number): string {
  const text = new Date(wall).toISOString();
  return text.endsWith(".000Z") ? text.slice(0, -5) : text.slice(0, -1);
}

/**
 * How to treat local times that do not exist, or exist twice, when the clock changes.
 *
 * A plan that leaves out some hour names times of the day, and each is due once on its day. A time inside a gap moves to the
 * gap's end. Several that move to the same moment are one slot with the first one's local time, or no extra slot if the plan
 * names that moment itself. A time that comes twice is due the first time.
 *
 * A plan of every hour is due whenever the local clock shows one of its times, so it keeps its pace in real time through changes
 * of whole hours: nothing moves, and an hour that comes twice is two hours.
 */
export type ClockChanges = { readonly gap: "shift" | "skip"; readonly ambiguous: "first" | "last" | "both" };

/** The search ends here. Years have four digits in ISO 8601. */
export const latestMs = Date.UTC(10_000, 0, 1) - 1;
/** Before this, most towns kept their own solar time. */
export const earliestMs = Date.UTC(1900, 0, 1);

// Longer than any clock change: Samoa and Kwajalein once skipped a whole day.
const changeMsMax = 172_800_000;
// How many periods one search reads at most. Only times that `skip` leaves out year after year come near it.
const periodsMax = 500;

/** The first slot strictly after `after`; null when there is none any more. */
export function nextSlot(plan: Plan, zone: Zone, changes: ClockChanges, after: number): Slot | null {
  let from = Math.max(Math.floor(after), earliestMs - 1);
  for (let looked = 0; looked < periodsMax && from < latestMs; looked++) {
    const period = zone.periodAt(from + 1);
    const moved = slotOfGap(plan, period, changes, from);
    if (moved !== null) return moved;
    const { start, end, offset, offsetBefore, offsetAfter } = period;
    const first = !plan.everyHour && changes.ambiguous === "first";
    const last = !plan.everyHour && changes.ambiguous === "last";
    const low = first ? start + Math.max(offset, offsetBefore) : start + offset;
    const high = last ? end + Math.min(offset, offsetAfter) : end + offset;
    const wall = nextWall(plan, Math.max(Math.ceil((from + 1 + offset) / 1000) * 1000, low));
    if (wall === null || wall - offset > latestMs) return null;
    if (wall < high) {
      const twice = wall < start + offsetBefore || wall >= end + offsetAfter;
      return { at: wall - offset, local: localText(wall), dst: twice ? "ambiguous" : null };
    }
    // Nothing is due before `wall`, so the periods until shortly before it need not be read, unless local times from
    // before `wall` come again.
    from = offsetAfter < offset ? end - 1 : Math.max(end - 1, wall - offset - changeMsMax);
  }
  return null;
}

/** The slot at the end of the gap that a period begins with, if a time of the plan falls into the gap. */
function slotOfGap(plan: Plan, period: Period, { gap }: ClockChanges, from: number): Slot | null {
  const { start, offset, offsetBefore } = period;
  if (plan.everyHour || gap === "skip" || start <= from || offset <= offsetBefore) return null;
  const wall = nextWall(plan, start + offsetBefore);
  if (wall === null || wall >= start + offset) return null;
  if (nextWall(plan, start + offset) === start + offset) return null;
  return { at: start, local: localText(wall), dst: "gap" };
}

/** The slots of a stretch of time: the first, the last, and how many, counted up to a bound. */
export type Span = { readonly count: number; readonly first: Slot; readonly last: Slot; readonly more: boolean };

type Next = (after: number) => Slot | null;

/**
 * The slots after `after` up to and including `until`. It counts at most `most` of them, and finds the last without walking there:
 * a schedule of every second that was down for years costs as little as a daily one.
 */
export function spanOf(next: Next, after: number, until: number, most: number): Span | null {
  const first = slotUntil(next, after, until);
  if (first === null) return null;
  let last = first;
  for (let count = 1; ; count++) {
    const further = slotUntil(next, last.at, until);
    if (further === null) return { count, first, last, more: false };
    if (count >= most) return { count, first, last: lastSlot(next, further, until), more: true };
    last = further;
  }
}

function slotUntil(next: Next, after: number, until: number): Slot | null {
  const slot = next(after);
  return slot !== null && slot.at <= until ? slot : null;
}

/** The last slot up to `until`, from a known one: doubles its steps back from `until`, then bisects. */
function lastSlot(next: Next, known: Slot, until: number): Slot {
  let last = known;
  // No slot lies after `high` and up to `until`.
  let high = until;
  for (let backMs = 1000; until - backMs > known.at; backMs *= 2) {
    const slot = slotUntil(next, until - backMs, until);
    if (slot !== null) {
      last = slot;
      break;
    }
    high = until - backMs;
  }
  for (;;) {
    const further = slotUntil(next, last.at, high);
    if (further === null) return last;
    const middle = Math.floor((further.at + high) / 2);
    const later = slotUntil(next, middle, high);
    last = later ?? further;
    if (later === null) high = middle;
  }
}
