import type { Zone } from "./zone.ts";

/** One moment at which a schedule is due. */
export type Slot = {
  readonly at: number;
  /** What the local clock reads by the expression, such as "2026-03-29T02:30:00"; in a gap, a time that did not exist. */
  readonly local: string;
  /** "gap": moved to the end of a gap. "overlap": the local clock reads this time twice. */
  readonly dst: "gap" | "overlap" | null;
};

/** The slot of a moment that needs no resolving: the local clock reads what it reads. */
export function slotAt(zone: Zone, at: number): Slot {
  const { start, end, offset, offsetBefore, offsetAfter } = zone.periodAt(at);
  const wall = at + offset;
  const twice = wall < start + offsetBefore || wall >= end + offsetAfter;
  return { at, local: localText(wall), dst: twice ? "overlap" : null };
}

/** `wall` is a local time written as if it were UTC: milliseconds since 1970 on the local clock. */
export function localText(wall: number): string {
  const text = new Date(wall).toISOString();
  return text.endsWith(".000Z") ? text.slice(0, -5) : text.slice(0, -1);
}
