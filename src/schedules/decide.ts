// Decides the slots that are due: a pure function of the schedule, its timing and the time. A slot that is at most a minute late
// is on time, however often the schedule is due. An older one was missed, and the policy decides about it.
import { limits } from "../core/limits.ts";
import { offsetOf, type DecisionKind, type ScheduleRow } from "./schedule.ts";
import type { Slot } from "./timing/slot.ts";
import type { Timing } from "./timing/timing.ts";

/** A slot to fire, unless the job of an earlier slot still runs and the schedule forbids overlap. */
export type Fire = {
  readonly slot: Slot;
  readonly kind: DecisionKind;
  /** How many missed slots before it are not made up for. */
  readonly missed: number;
  readonly lateMs: number;
  /** Slots before it are caught up in the same look, so it comes after them. */
  readonly behindMissed: boolean;
};

/** Slots that are not fired: one, or a span of them. */
export type Skip = {
  readonly first: Slot;
  readonly last: Slot;
  readonly slots: number;
  readonly kind: DecisionKind;
  readonly note: string | null;
};

export type Plan = {
  readonly fires: readonly Fire[];
  readonly skips: readonly Skip[];
  /** Every slot up to here is decided by this plan. */
  readonly cursorAt: number;
};

/** How late a slot may be and still count as on time. */
export const onTimeMs = 60_000;
const tooMany = `missed, and only the newest ${limits.caughtUpSlotsMax} are caught up`;
export const dayMs = 86_400_000;

export function decide(row: ScheduleRow, timing: Timing, now: number): Plan {
  const offset = offsetOf(row);
  const until = now - offset;
  const onTimeFrom = until - onTimeMs;
  const fires: Fire[] = [];
  const skips: Skip[] = [];
  const plan = (cursorAt: number): Plan => ({ fires, skips, cursorAt });
  // Skipped slots all lie before the first fire, which carries their number.
  const fire = (slot: Slot, kind: DecisionKind): void => {
    const missed = fires.length > 0 ? 0 : skips.reduce((sum, each) => sum + each.slots, 0);
    const behindMissed = fires[0]?.kind === "caught_up";
    fires.push({ slot, kind, missed, lateMs: until - slot.at, behindMissed });
  };

  const missed = timing.span(row.cursor_at, onTimeFrom, limits.missedSlotsMax);
  const current = slotsAfter(timing, Math.max(row.cursor_at, onTimeFrom), until, limits.firesPerTickMax);
  if (missed !== null) {
    const late = until - missed.last.at;
    if (row.missed === "all") {
      const oldest = Math.max(row.cursor_at, until - (row.max_lateness_ms ?? dayMs) - 1);
      const from = catchUpFrom(timing, oldest, onTimeFrom);
      const caught = slotsAfter(timing, from, onTimeFrom, limits.firesPerTickMax + 1);
      const kept = caught.slice(0, limits.firesPerTickMax);
      const before = kept[0]?.at ?? onTimeFrom + 1;
      const note = from > oldest ? tooMany : "missed for longer than maxLateness";
      skip(timing, row.cursor_at, before - 1, "skipped_missed", note, skips);
      for (const slot of kept) fire(slot, "caught_up");
      // The next look decides the rest: later slots must not be enqueued before earlier ones.
      if (caught.length > kept.length) return plan(kept.at(-1)?.at ?? row.cursor_at);
    } else {
      const most = row.max_lateness_ms ?? Math.min(periodAfter(timing, missed.last.at), dayMs);
      const makeUp = row.missed === "latest" && current.length === 0 && late <= most;
      const note = makeUp ? "a later one was made up for" : whyMissed(row.missed, current.length > 0);
      const last = makeUp ? missed.last.at - 1 : onTimeFrom;
      skip(timing, row.cursor_at, last, "skipped_missed", note, skips);
      if (makeUp) fire(missed.last, "late");
    }
  }
  for (const slot of current) fire(slot, slot.dst === "gap" ? "shifted_dst" : "fired");
  const decided = fires.at(-1)?.slot.at ?? skips.at(-1)?.last.at ?? row.cursor_at;
  return plan(Math.max(row.cursor_at, decided));
}

/** Where to start so that only the newest allowed slots are caught up, found by bisection. */
function catchUpFrom(timing: Timing, after: number, until: number): number {
  const most = limits.caughtUpSlotsMax;
  const count = (from: number): number => timing.span(from, until, most + 1)?.count ?? 0;
  if (count(after) <= most) return after;
  let [tooEarly, from] = [after, until];
  while (from - tooEarly > 1) {
    const middle = Math.floor((tooEarly + from) / 2);
    const found = count(middle);
    if (found > most) tooEarly = middle;
    else from = middle;
    if (found === most) break;
  }
  return from;
}

function whyMissed(policy: string, newer: boolean): string {
  if (policy === "skip") return "missed, and the policy is skip";
  return newer ? "missed, and a newer one was due" : "missed for longer than maxLateness";
}

/** Adds the slots of a span that are not fired, as one decision. */
export function skip(
  timing: Timing,
  after: number,
  until: number,
  kind: DecisionKind,
  note: string | null,
  skips: Skip[],
): void {
  const span = timing.span(after, until, limits.missedSlotsMax);
  if (span === null) return;
  const more = span.more ? ` (and more than ${limits.missedSlotsMax} before)` : "";
  skips.push({ first: span.first, last: span.last, slots: span.count, kind, note: note === null ? null : note + more });
}

/** The slots after `after` up to `until`, in order, at most `most`. */
export function slotsAfter(timing: Timing, after: number, until: number, most: number): Slot[] {
  const slots: Slot[] = [];
  for (let next = timing.next(after); next !== null && next.at <= until; next = timing.next(next.at)) {
    slots.push(next);
    if (slots.length >= most) break;
  }
  return slots;
}

/** How long after a slot the next one is; a day when there is none. */
export function periodAfter(timing: Timing, at: number): number {
  const next = timing.next(at);
  return next === null ? dayMs : next.at - at;
}
