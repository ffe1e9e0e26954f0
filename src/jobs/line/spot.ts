// Numbers for places. Multiples of 100 above zero belong to the rows of that sequence number: a row that is just being
// made, or one that runs and is given back, finds its own free. So nobody is ever moved onto one.
const step = 100;
const half = 50;
// Who is put next to somebody leaves room for a few more.
const atLeast = 25;

/** The number in the middle, next to it when that is somebody's own, or null when there is none between the two. */
export function between(low: number, high: number): number | null {
  const middle = Math.floor((low + high) / 2);
  for (const spot of [middle, middle + 1, middle - 1]) if (spot > low && spot < high && isFree(spot)) return spot;
  return null;
}

/** There is no end of room before the first. */
export function beforeFirst(first: number): number {
  return Math.floor((first - step) / step) * step + half;
}

/** Behind the last, as long as that is before `end`, where new rows will stand. */
export function behindLast(last: number, end: number): number | null {
  const spot = Math.ceil((last + step) / step) * step - half;
  return spot < end ? spot : between(last, end);
}

/** `count` numbers between the two, at even distances, which must be 2 at least. */
export function spread(low: number, high: number, count: number): number[] {
  const distance = (high - low) / (count + 1);
  return Array.from({ length: count }, (_, index) => {
    const spot = low + Math.floor(distance * (index + 1));
    return isFree(spot) ? spot : spot - 1;
  });
}

/** `count` numbers that end before `high`, as far apart as those of new rows. */
export function spreadFromFront(high: number, count: number): number[] {
  const end = Math.floor((high - half - atLeast) / step) * step + half;
  return Array.from({ length: count }, (_, index) => end - (count - 1 - index) * step);
}

function isFree(spot: number): boolean {
  return spot <= 0 || spot % step !== 0;
}
