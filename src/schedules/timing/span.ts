import type { Slot } from "./slot.ts";

/** The slots of a stretch of time: the first, the last, and how many, counted up to a bound. */
export type Span = { readonly count: number; readonly first: Slot; readonly last: Slot; readonly more: boolean };

type Next = (after: number) => Slot | null;

/**
 * The slots after `after` up to and including `until`. It counts to `most` and no further, and finds the last without
 * walking there: a schedule of every second that was away for years costs as little as one of every day.
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

/** The last slot up to `until`, from one that is known: steps back that double, then halves what lies between. */
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
