import type { CronPattern } from "croner";

/** Which local times an expression names, in a form that is quick to search. */
export type Plan = {
  /** No hour is left out, so the schedule means every real hour and not times of the day. */
  readonly everyHour: boolean;
  /** Bit n stands for month n, January is 1. */
  readonly months: number;
  /** The days of a month of this length that begins on this weekday (Sunday is 0), as bits 1 to 31. */
  days(length: number, firstWeekday: number): number;
  /** The first second of the day at or after this one, or -1. */
  secondFrom(second: number): number;
};

const dayMs = 86_400_000;
// The calendar repeats after 400 years: what is not due by then is never due.
const monthsMax = 4800;
const monthLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/** The first local time of the plan at or after `wall`, a whole second; null when there is none for 400 years. */
export function nextWall(plan: Plan, wall: number): number | null {
  const day = Math.floor(wall / dayMs);
  const second = plan.secondFrom((wall - day * dayMs) / 1000);
  // When this day has no time left, the search begins with the next.
  const found = dayFrom(plan, second < 0 ? day + 1 : day);
  if (found === null) return null;
  return found * dayMs + (found === day ? second : plan.secondFrom(0)) * 1000;
}

/** Days count from 1970. A month is one mask, so a search over years is short. */
function dayFrom(plan: Plan, day: number): number | null {
  const date = new Date(day * dayMs);
  let year = date.getUTCFullYear();
  let month = date.getUTCMonth() + 1;
  let first = day - date.getUTCDate() + 1;
  let allowed = -1 << date.getUTCDate();
  for (let looked = 0; looked <= monthsMax; looked++) {
    const length = monthLength(year, month);
    if ((plan.months & (1 << month)) !== 0) {
      const days = plan.days(length, weekdayOf(first)) & allowed;
      if (days !== 0) return first + 30 - Math.clz32(days & -days);
    }
    first += length;
    allowed = -1;
    month = month === 12 ? 1 : month + 1;
    if (month === 1) year++;
  }
  return null;
}

/** Whether some month of some year has a day for this plan. */
export function everDue(plan: Plan): boolean {
  for (let month = 1; month <= 12; month++) {
    if ((plan.months & (1 << month)) === 0) continue;
    for (let weekday = 0; weekday < 7; weekday++) {
      // A leap year's February can do whatever a common year's can, except be shorter: "the last" is a day in both.
      if (plan.days(monthLength(2000, month), weekday) !== 0) return true;
    }
  }
  return false;
}

function monthLength(year: number, month: number): number {
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return leap ? 29 : (monthLengths[month - 1] ?? 31);
}

function weekdayOf(day: number): number {
  // The first of January 1970 was a Thursday; the remainder of a negative number is negative.
  return (((day + 4) % 7) + 7) % 7;
}

/** The plan of a parsed pattern. Croner's own search is not used, because it goes wrong where a gap ends at midnight. */
export function patternPlan(pattern: CronPattern): Plan {
  const seconds = following(pattern.second);
  const minutes = following(pattern.minute);
  const hours = following(pattern.hour);
  // A month is defined by its length and its first weekday. Masks are made when they are needed.
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

/** Croner counts months from 0; the bits count from 1. */
function maskOf(allowed: readonly number[]): number {
  return allowed.reduce((mask, yes, index) => (yes ? mask | (1 << (index + 1)) : mask), 0);
}

function bitsTo(length: number): number {
  return (-1 >>> (31 - length)) & ~1;
}

/**
 * When both day fields are restricted, a day needs to match only one of them: cron's rule since the beginning.
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
