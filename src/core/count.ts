// Whole numbers within bounds, refused with the value and the bounds.
import { invalid } from "./error.ts";
import { quote } from "./quote.ts";

export function checkCount(value: number, what: string, min: number, max = 1_000_000): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(`${what} ${quote(value)} is not a whole number from ${min} to ${max}`);
}
