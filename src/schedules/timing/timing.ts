import { durationMs, formatDuration, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { remember } from "../../core/remember.ts";
import { refuseUnknown, checkWord } from "../../core/suggest.ts";
import { isoTime, futureMs, timeMs, type TimeInput } from "../../core/time.ts";
import { parseCron } from "./cron.ts";
import { dailyPlan, type Plan } from "./plan.ts";
import { earliestMs, latestMs, spanOf, nextSlot, slotAt, type Slot, type Span, type ClockChanges } from "./slot.ts";
import { zoneOf, type Zone } from "./zone.ts";

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
  const { starts_at: start, ends_at: end, gap } = timing.stored;
  if (timing.next((start ?? earliestMs) - 1) === null) {
    const bounds = [start === null ? "" : ` from ${isoTime(start)}`, end === null ? "" : ` before ${isoTime(end)}`];
    throw invalid(`${quote(timing.expression)} (${timing.zone}) is never due${bounds.join("")}; change start or end`);
  }
  // With `skip`, a time that falls into the clock change may be left out every year.
  const mayBeLeftOut = gap === "skip" && end === null && timing.kind === "cron";
  if (mayBeLeftOut && timing.next(Math.max(start ?? 0, rulesSettledMs)) === null) {
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
  const { kind, gap, ambiguous, starts_at, ends_at, anchor_at } = stored;
  const first = starts_at === null ? -Infinity : starts_at - 1;
  const end = ends_at ?? Infinity;

  function next(after: number): Slot | null {
    const slot = ticks.next(Math.max(after, first, earliestMs - 1));
    return slot === null || slot.at >= end || slot.at > latestMs ? null : slot;
  }
  const normal = { kind, expression: ticks.expression, zone: zone.name };
  return {
    ...normal,
    words: `${ticks.words} (${zone.name})`,
    stored: { ...normal, gap, ambiguous, starts_at, ends_at, anchor_at },
    next,
    span: (after, until, most) => spanOf(next, after, until, most),
  };
}

/** What decides when a schedule is due, but for its start and its end. */
type TicksKey = Omit<StoredTiming, "starts_at" | "ends_at">;

const ticksOfKey = remember((key: string) => createTicks(JSON.parse(key) as TicksKey), { max: 10_000 });

function ticksOf({ kind, expression, zone, gap, ambiguous, anchor_at }: StoredTiming): Ticks {
  return ticksOfKey(JSON.stringify({ kind, expression, zone, gap, ambiguous, anchor_at } satisfies TicksKey));
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
  /** An IANA name such as "Europe/Madrid". Default: that of the app or the book, or else UTC. */
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
  readonly starts_at: number | null;
  readonly ends_at: number | null;
  /** What `every` counts from; for `in`, the moment at which it was written. */
  readonly anchor_at: number | null;
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
    gap: checkWord(options.gap ?? "shift", ["shift", "skip"], "gap"),
    ambiguous: checkWord(options.ambiguous ?? "first", ["first", "last", "both"], "ambiguous"),
    starts_at: start,
    ends_at: end,
    anchor_at: "every" in input ? (momentMs(input.anchor, "anchor") ?? 0) : "in" in input ? now : null,
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

/** A timing without its start and end. */
type Ticks = {
  readonly expression: string;
  readonly words: string;
  next(after: number): Slot | null;
};

function createTicks(stored: TicksKey): Ticks {
  const zone = zoneOf(stored.zone);
  switch (stored.kind) {
    case "cron":
      return planTicks(planOfCron(stored.expression), zone, stored);
    case "daily":
      return planTicks(planOfDay(stored.expression), zone, stored);
    case "every":
      return everyTicks(stored.expression, stored.anchor_at ?? 0, zone);
    case "once":
      return onceTicks(stored.expression, zone);
  }
}

type Planned = { readonly expression: string; readonly words: string; readonly plan: Plan };

function planTicks({ plan, ...named }: Planned, zone: Zone, changes: ClockChanges): Ticks {
  return { ...named, next: (after) => nextSlot(plan, zone, changes, after) };
}

function planOfCron(given: string): Planned {
  const { expression, fields, plan } = parseCron(given);
  return { expression, words: cronWords(expression, fields), plan };
}

function planOfDay(given: string): Planned {
  const parts = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(given);
  if (parts === null) {
    throw invalid(
      `daily is ${quote(given)}; it must be a time of day from "00:00" to "23:59", or with seconds such as "07:00:30"`,
    );
  }
  const [hour, minute, second] = [Number(parts[1]), Number(parts[2]), Number(parts[3] ?? 0)];
  const expression = second === 0 ? given.slice(0, 5) : given;
  const plan = dailyPlan(hour * 3600 + minute * 60 + second);
  return { expression, words: `every day at ${expression}`, plan };
}

/** Counts from the anchor and not from the last slot, so errors do not add up. Clock changes do not matter. */
function everyTicks(every: string, anchor: number, zone: Zone): Ticks {
  const ms = durationMs(every, "every", { min: limits.everyMsMin });
  return {
    expression: every,
    words: `every ${formatDuration(ms)}`,
    next: (after) => slotAt(zone, anchor + (Math.floor((after - anchor) / ms) + 1) * ms),
  };
}

function onceTicks(given: string, zone: Zone): Ticks {
  const at = timeMs(given, "at");
  const slot = slotAt(zone, at);
  return { expression: given, words: `once at ${slot.local}`, next: (after) => (after < at ? slot : null) };
}

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const shortNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** An expression in words, if it has a common shape; otherwise the expression itself. */
function cronWords(expression: string, fields: readonly string[]): string {
  const [second = "", minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const when = timeWords(second, minute, hour);
  const days = month === "*" ? dayWords(day, weekday) : undefined;
  if (when === undefined || days === undefined) return `cron ${expression}`;
  return days === "every day" && when.startsWith(", ") ? when.slice(2) : `${days}${when}`;
}

function timeWords(second: string, minute: string, hour: string): string | undefined {
  if (second !== "0") return second === "*" && minute === "*" && hour === "*" ? ", every second" : undefined;
  if (hour === "*") {
    if (minute === "*") return ", every minute";
    if (minute.startsWith("*/")) return `, every ${minute.slice(2)} minutes of the hour`;
    return isNumber(minute) ? `, every hour at minute ${minute}` : undefined;
  }
  return isNumber(hour) && isNumber(minute) ? ` at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}` : undefined;
}

function dayWords(day: string, weekday: string): string | undefined {
  const anyDay = day === "*" || day === "?";
  const anyWeekday = weekday === "*" || weekday === "?";
  if (anyDay && anyWeekday) return "every day";
  if (anyDay && (weekday === "1-5" || weekday === "MON-FRI")) return "Monday to Friday";
  if (anyDay) return weekdayName(weekday);
  if (!anyWeekday) return undefined;
  if (day === "L") return "on the last day of each month";
  return isNumber(day) ? `on day ${day} of each month` : undefined;
}

function weekdayName(text: string): string | undefined {
  const index = isNumber(text) ? Number(text) % 7 : shortNames.indexOf(text);
  const name = weekdays[index];
  return name === undefined ? undefined : `every ${name}`;
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}
