import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";

/** Reads a whole number given as an option; which ones are allowed is for the library to say. */
export function wholeNumber(option: string): (text: string) => number {
  return (text) => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value)) return value;
    throw invalid(`${option} ${quote(text)} is not a whole number`);
  };
}
