// Whole numbers within bounds, refused with the value and the bounds, and counts that end early.
import { invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

export function checkCount(value: number, what: string, min: number, max = 1_000_000): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(`${what} ${quote(value)} is not a whole number from ${min} to ${max}`);
}

/** How many there are. It is counted no further than `limits.countedMax`; `more` says that there are more. */
export type Counted = { readonly count: number; readonly more: boolean };

/** `found` counts one more than the limit, at most. */
export function toCounted(found: number): Counted {
  return { count: Math.min(found, limits.countedMax), more: found > limits.countedMax };
}
