import type { CronPattern } from "croner";
import type { Plan } from "./plan.ts";

/** The plan of what croner has parsed. Its own search is not used: it goes wrong where a gap ends at midnight. */
export function patternPlan(pattern: CronPattern): Plan {
  const seconds = following(pattern.second);
  const minutes = following(pattern.minute);
  const hours = following(pattern.hour);
  // A month is told by its length and the weekday it begins with; the masks are made when they are asked for.
  const masks = new Map<number, number>();

  return {
    everyHour: pattern.hour.every(Boolean),
    months: maskOf(pattern.month),
    days(length, firstWeekday) {
      const key = length * 7 + firstWeekday;
      const known = masks.get(key);
      if (known !== undefined) return known;
      const mask = monthDays(pattern, length, firstWeekday);
      masks.set(key, mask);
      return mask;
    },
    secondFrom(second) {
      const hour = Math.floor(second / 3600);
      const minute = Math.floor(second / 60) % 60;
      if (hours[hour] === hour) {
        if (minutes[minute] === minute) {
          const found = seconds[second % 60] ?? -1;
          if (found >= 0) return hour * 3600 + minute * 60 + found;
        }
        const found = minutes[minute + 1] ?? -1;
        if (found >= 0) return hour * 3600 + found * 60 + (seconds[0] ?? 0);
      }
      const found = hours[hour === (hours[hour] ?? -1) ? hour + 1 : hour] ?? -1;
      return found < 0 ? -1 : found * 3600 + (minutes[0] ?? 0) * 60 + (seconds[0] ?? 0);
    },
  };
}

/** Every day of one time, in seconds of the day. */
export function dailyPlan(second: number): Plan {
  return {
    everyHour: false,
    months: -1,
    days: (length) => bitsTo(length),
    secondFrom: (from) => (from <= second ? second : -1),
  };
}

/** For each value the first allowed one at or after it, or -1. */
function following(allowed: readonly number[]): readonly number[] {
  const next: number[] = Array.from({ length: allowed.length + 1 }, () => -1);
  for (let value = allowed.length - 1; value >= 0; value--) {
    next[value] = allowed[value] ? value : (next[value + 1] ?? -1);
  }
  return next;
}

/** Croner counts months from 0 here; the bits count from 1. */
function maskOf(allowed: readonly number[]): number {
  return allowed.reduce((mask, yes, index) => (yes ? mask | (1 << (index + 1)) : mask), 0);
}

function bitsTo(length: number): number {
  return (-1 >>> (31 - length)) & ~1;
}

/**
 * When both day fields are restricted, a day needs to fit only one of them; that has been cron's rule for fifty years.
 * A field is unrestricted when it is just "*" or "?".
 */
function monthDays(pattern: CronPattern, length: number, firstWeekday: number): number {
  const byDate = datesOf(pattern, length, firstWeekday);
  const byWeekday = weekdaysOf(pattern, length, firstWeekday);
  const either = !pattern.starDOM && !pattern.starDOW;
  return (either ? byDate | byWeekday : byDate & byWeekday) & bitsTo(length);
}

function datesOf(pattern: CronPattern, length: number, firstWeekday: number): number {
  let mask = maskOf(pattern.day);
  if (pattern.lastDayOfMonth) mask |= 1 << length;
  if (pattern.lastWeekday) mask |= 1 << nearestWeekday(length, length, firstWeekday);
  for (const [index, wanted] of pattern.nearestWeekdays.entries()) {
    if (wanted && index < length) mask |= 1 << nearestWeekday(index + 1, length, firstWeekday);
  }
  return mask;
}

/** Monday to Friday, never in another month: a Saturday the 1st goes on to Monday the 3rd. */
function nearestWeekday(day: number, length: number, firstWeekday: number): number {
  const weekday = (firstWeekday + day - 1) % 7;
  if (weekday === 6) return day === 1 ? 3 : day - 1;
  if (weekday === 0) return day === length ? day - 2 : day + 1;
  return day;
}

/** Croner keeps a mask for each weekday: bits 0 to 4 for the first to the fifth of the month, bit 5 for the last. */
function weekdaysOf(pattern: CronPattern, length: number, firstWeekday: number): number {
  let mask = 0;
  for (let day = 1; day <= length; day++) {
    const wanted = pattern.dayOfWeek[(firstWeekday + day - 1) % 7] ?? 0;
    const nth = 1 << Math.floor((day - 1) / 7);
    const last = day + 7 > length ? 32 : 0;
    if ((wanted & (nth | last)) !== 0) mask |= 1 << day;
  }
  return mask;
}
