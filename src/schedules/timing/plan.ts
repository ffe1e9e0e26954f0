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
// The calendar repeats itself after 400 years: what does not come by then never comes.
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

/** Days are counted from 1970. Whole months are looked at as one mask, so a search of years is short. */
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
