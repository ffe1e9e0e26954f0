import { remember } from "../../core/remember.ts";
import { type Duration, durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { isoTime, type TimeInput, futureMs, timeMs } from "../../core/time.ts";
import { earliestMs, latestMs, type Slot, type Span, spanOf } from "./slot.ts";
import { type Ticks, createTicks } from "./ticks.ts";
import { zoneOf } from "./zone.ts";

export type { Slot, Span } from "./slot.ts";

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

// Long after the last announced change of rules, so that only today's rules count.
const rulesSettledMs = Date.UTC(2100, 0, 1);

/** Checks everything; a timing that can never be due is refused. `in` counts from `now`. */
export function createTiming(input: TimingInput, options: TimingOptions = {}, now = 0): Timing {
  const timing = restoreTiming(readDefinition(input, options, now));
  const { start, end, gap } = timing.stored;
  if (timing.next((start ?? earliestMs) - 1) === null) {
    const bounds = [start === null ? "" : ` from ${isoTime(start)}`, end === null ? "" : ` before ${isoTime(end)}`];
    throw invalid(`${quote(timing.expression)} (${timing.zone}) is never due${bounds.join("")}; change start or end`);
  }
  // With `skip`, a time that falls into the clock change may be left out every year.
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

/** Makes a timing from what was stored. Equal definitions share the parts that take time to prepare. */
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

/** What decides when a schedule is due, but for its start and its end. */
export type TicksKey = Omit<StoredTiming, "start" | "end">;

const ticksOfKey = remember((key: string) => createTicks(JSON.parse(key) as TicksKey), { max: 10_000 });

function ticksOf({ kind, expression, zone, gap, ambiguous, anchor }: StoredTiming): Ticks {
  return ticksOfKey(JSON.stringify({ kind, expression, zone, gap, ambiguous, anchor } satisfies TicksKey));
}

/** When a schedule is due. Exactly one of the five. */
export type TimingInput =
  /** Five fields, or six with the seconds first; names, L, W and #; @hourly, @daily, @weekly, @monthly, @yearly. */
  | { readonly cron: string }
  /** In elapsed time, counted from `anchor` (1970 in UTC unless given), so it does not drift. */
  | { readonly every: Duration; readonly anchor?: TimeInput }
  | { readonly at: TimeInput }
  /** Once, this long after it is written into the book. */
  | { readonly in: Duration }
  /** "07:00" or "07:00:30" on the clock of the zone. */
  | { readonly daily: string };

export type TimingOptions = {
  /** An IANA name such as "Europe/Madrid". Default: UTC. */
  readonly zone?: string;
  /** A local time that the clock skips is due at the end of the gap ("shift", the default), or not at all. */
  readonly gap?: "shift" | "skip";
  /** A local time that comes twice is due the first time (the default), the last time, or both times. */
  readonly ambiguous?: "first" | "last" | "both";
  /** Slots before it do not count; one at this very moment does. */
  readonly start?: TimeInput;
  /** Slots at this moment or later do not count. */
  readonly end?: TimeInput;
};

/** A definition as it is stored: every choice made, every time in epoch milliseconds. */
export type StoredTiming = {
  readonly kind: "cron" | "every" | "once" | "daily";
  readonly expression: string;
  readonly zone: string;
  readonly gap: "shift" | "skip";
  readonly ambiguous: "first" | "last" | "both";
  readonly start: number | null;
  readonly end: number | null;
  /** What `every` counts from; for `in`, the moment at which it was written. */
  readonly anchor: number | null;
};

/** The five ways to say when. */
export const timingKeys = ["cron", "every", "at", "in", "daily"] as const;
const kinds = { cron: "cron", every: "every", at: "once", in: "once", daily: "daily" } as const;

/** Reads what a caller gave. `createTicks` and `zoneOf` check the expression and the zone. `in` counts from `now`. */
function readDefinition(input: TimingInput, options: TimingOptions, now: number): StoredTiming {
  refuseUnknown(options, ["zone", "gap", "ambiguous", "start", "end"], "a timing");
  const key = onlyKey(input);
  refuseUnknown(input, key === "every" ? [key, "anchor"] : [key], `a timing with ${key}`);

  const start = momentMs(options.start, "start");
  const end = momentMs(options.end, "end");
  if (key === "in" && (start !== null || end !== null)) throw invalid(`"in" is one moment: it has no start and no end`);
  if (start !== null && end !== null && end <= start) {
    throw invalid(`end is ${isoTime(end)}, which is not after start, ${isoTime(start)}`);
  }
  return {
    kind: kinds[key],
    expression: expressionOf(input, now),
    zone: options.zone ?? "UTC",
    gap: oneOf(options.gap ?? "shift", ["shift", "skip"], "gap"),
    ambiguous: oneOf(options.ambiguous ?? "first", ["first", "last", "both"], "ambiguous"),
    start,
    end,
    anchor: "every" in input ? (momentMs(input.anchor, "anchor") ?? 0) : "in" in input ? now : null,
  };
}

function onlyKey(input: TimingInput): keyof typeof kinds {
  const given = timingKeys.filter((key) => Reflect.get(input, key) !== undefined);
  const [key] = given;
  if (key !== undefined && given.length === 1) return key;
  throw invalid(`a timing needs exactly one of cron, every, at, in, daily; it has ${given.join(" and ") || "none"}`);
}

function expressionOf(input: TimingInput, now: number): string {
  if ("every" in input) return exactDuration(durationMs(input.every, "every", { min: limits.everyMsMin }));
  if ("at" in input) return isoTime(momentMs(futureMs(input.at, "at"), "at") ?? 0);
  if ("in" in input) return isoTime(momentMs(now + durationMs(input.in, "in", { min: 1 }), "in") ?? 0);
  const [what, text] = "cron" in input ? ["cron", input.cron] : ["daily", input.daily];
  if (typeof text !== "string") throw invalid(`${what} is ${quote(text)}; it must be text`);
  return text;
}

/** The exact duration. (`formatDuration` is for people and drops small units.) */
function exactDuration(ms: number): string {
  const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  let rest = ms;
  let text = "";
  for (const [unit, unitMs] of Object.entries(units)) {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    if (count > 0) text += `${count}${unit}`;
  }
  return text;
}

function momentMs(value: TimeInput | undefined, what: string): number | null {
  if (value === undefined) return null;
  const ms = timeMs(value, what);
  if (ms >= earliestMs && ms <= latestMs) return ms;
  throw invalid(`${what} is ${isoTime(ms)}; schedules know the years 1900 to 9999`);
}

function oneOf<Word extends string>(value: Word, words: readonly Word[], what: string): Word {
  if (words.includes(value)) return value;
  throw invalid(`${what} is ${quote(value)}; it must be ${words.map((word) => `"${word}"`).join(" or ")}`);
}
