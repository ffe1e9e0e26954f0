import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { isoTime } from "../../core/time.ts";
import { type StoredTiming, type TimingInput, type TimingOptions, readDefinition } from "./definition.ts";
import { earliestMs, latestMs } from "./next-slot.ts";
import type { Slot } from "./slot.ts";
import { type Span, spanOf } from "./span.ts";
import { type Ticks, createTicks } from "./ticks.ts";
import { zoneOf } from "./zone.ts";

export type { StoredTiming, TimingInput, TimingOptions } from "./definition.ts";
export type { Slot } from "./slot.ts";
export type { Span } from "./span.ts";

export type Timing = {
  readonly kind: StoredTiming["kind"];
  /** The normalised text that is stored: the cron expression, the duration, the ISO time, the time of day. */
  readonly expression: string;
  readonly zone: string;
  /** For people: "every day at 07:00 (Europe/Madrid)". */
  readonly words: string;
  /** What `restoreTiming` needs to make the same timing again. */
  readonly stored: StoredTiming;
  /** The first slot strictly after `after`, or null when there is none any more. */
  next(after: number): Slot | null;
  /** The slots after `after` and up to `until`, counted to `most` (at least 1); `last` is the last of all. Null: none. */
  span(after: number, until: number, most: number): Span | null;
};

// Long after the last change of rules that anybody has announced, so that the rules of today are what counts.
const rulesSettledMs = Date.UTC(2100, 0, 1);

/** Checks everything; a timing that can never be due is refused. `in` counts from `now`. */
export function createTiming(input: TimingInput, options: TimingOptions = {}, now = 0): Timing {
  const timing = restoreTiming(readDefinition(input, options, now));
  const { start, end, gap } = timing.stored;
  if (timing.next((start ?? earliestMs) - 1) === null) {
    const bounds = [start === null ? "" : ` from ${isoTime(start)}`, end === null ? "" : ` before ${isoTime(end)}`];
    throw invalid(`${quote(timing.expression)} (${timing.zone}) is never due${bounds.join("")}; change start or end`);
  }
  // With `skip`, a time of the very night in which the clock is put forward may be left out each year.
  if (
    gap === "skip" &&
    end === null &&
    timing.kind === "cron" &&
    timing.next(Math.max(start ?? 0, rulesSettledMs)) === null
  ) {
    throw invalid(
      `${quote(timing.expression)} is never due in ${timing.zone}: its time falls into the change of the clock each ` +
        `year, and gap is "skip"; use gap "shift" or another time`,
    );
  }
  return timing;
}

/** Makes a timing from what was stored. Everything that takes time to prepare is shared by equal definitions. */
export function restoreTiming(stored: StoredTiming): Timing {
  const zone = zoneOf(stored.zone);
  const ticks = ticksOf(stored);
  const first = stored.start === null ? -Infinity : stored.start - 1;
  const end = stored.end ?? Infinity;

  function next(after: number): Slot | null {
    const slot = ticks.next(Math.max(after, first, earliestMs - 1));
    return slot === null || slot.at >= end || slot.at > latestMs ? null : slot;
  }
  return {
    kind: stored.kind,
    expression: ticks.expression,
    zone: zone.name,
    words: `${ticks.words} (${zone.name})`,
    stored: { ...stored, expression: ticks.expression, zone: zone.name },
    next,
    span: (after, until, most) => spanOf(next, after, until, most),
  };
}

const ticksMax = 10_000;
const known = new Map<string, Ticks>();

function ticksOf(stored: StoredTiming): Ticks {
  const { kind, expression, zone, gap, overlap, anchor } = stored;
  const key = JSON.stringify([kind, expression, zone, gap, overlap, anchor]);
  const found = known.get(key);
  if (found !== undefined) return found;
  const ticks = createTicks(stored);
  if (known.size >= ticksMax) known.clear();
  known.set(key, ticks);
  return ticks;
}
