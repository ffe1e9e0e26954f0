// Whole numbers within bounds, refused with the value and the bounds.
import { invalid } from "./error.ts";

export function checkCount(value: number, what: string, min: number, max = 1_000_000): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(`${what} ${String(value)} is not a whole number from ${min} to ${max}`);
}
