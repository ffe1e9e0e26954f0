import { durationMs, formatDuration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { timeMs } from "../../core/time.ts";
import { parseCron } from "./cron.ts";
import { dailyPlan, type Plan } from "./plan.ts";
import { type ClockChanges, nextSlot, type Slot, slotAt } from "./slot.ts";
import type { TicksKey } from "./timing.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** A timing without its start and end. */
export type Ticks = {
  readonly expression: string;
  readonly words: string;
  next(after: number): Slot | null;
};

export function createTicks(stored: TicksKey): Ticks {
  const zone = zoneOf(stored.zone);
  switch (stored.kind) {
    case "cron":
      return cronTicks(stored.expression, zone, stored);
    case "daily":
      return dailyTicks(stored.expression, zone, stored);
    case "every":
      return everyTicks(stored.expression, stored.anchor ?? 0, zone);
    case "once":
      return onceTicks(stored.expression, zone);
  }
}

function cronTicks(given: string, zone: Zone, changes: ClockChanges): Ticks {
  const { expression, fields, plan } = parseCron(given);
  return planTicks({ expression, words: cronWords(expression, fields) }, plan, zone, changes);
}

function dailyTicks(given: string, zone: Zone, changes: ClockChanges): Ticks {
  const parts = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(given);
  if (parts === null) {
    throw invalid(
      `daily is ${quote(given)}; it must be a time of day from "00:00" to "23:59", or with seconds such as "07:00:30"`,
    );
  }
  const [hour, minute, second] = [Number(parts[1]), Number(parts[2]), Number(parts[3] ?? 0)];
  const expression = second === 0 ? given.slice(0, 5) : given;
  const plan = dailyPlan(hour * 3600 + minute * 60 + second);
  return planTicks({ expression, words: `every day at ${expression}` }, plan, zone, changes);
}

type Named = Pick<Ticks, "expression" | "words">;

function planTicks(named: Named, plan: Plan, zone: Zone, changes: ClockChanges): Ticks {
  return { ...named, next: (after) => nextSlot(plan, zone, changes, after) };
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
