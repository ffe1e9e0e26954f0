import stringify from "safe-stable-stringify";
import { invalid } from "./error.ts";
import { type Misfit, findMisfit, formatPath } from "./json-check.ts";
import { readJson } from "./json-read.ts";
import { limits } from "./limits.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonOptions = {
  /** What the value is to the caller, the first word of the path in messages: `params`, `result`. */
  what?: string;
  /** Measured in bytes of UTF-8, since that is what is stored. */
  bytesMax?: number;
};

// Sorting by UTF-16 code unit is the library's default, and the same as in RFC 8785. It writes -0 as 0.
const write = stringify.configure({ strict: true });

/**
 * Canonical text: keys sorted, no white space, so equal values have equal text and can be compared and hashed.
 * What JSON would silently change (NaN, a Date, a function, a hole in an array) is refused with its path instead. Two
 * changes are allowed because they lose nothing: a property that is `undefined` is left out, and -0 becomes 0.
 */
export function toJson(value: unknown, options: JsonOptions = {}): string {
  const bytesMax = options.bytesMax ?? limits.jsonBytesMax;
  const misfit = findMisfit(value, bytesMax);
  if (misfit !== undefined) throw refusal(misfit, options.what);
  const text = write(value);
  if (text === undefined) throw invalid(`${options.what ?? "value"} changed while it was written as JSON`);
  checkSize(text, bytesMax, options.what);
  return text;
}

/**
 * Reads text from outside, strictly: what two readers could understand differently (a key given twice, an integer
 * that a double cannot hold) is refused. Text that `toJson` wrote needs no such care; `JSON.parse` reads it faster.
 */
export function parseJson(text: string, options: JsonOptions = {}): Json {
  checkSize(text, options.bytesMax ?? limits.jsonBytesMax, options.what);
  const { value, misfit } = readJson(text);
  if (misfit !== undefined) throw refusal(misfit, options.what);
  return value;
}

function checkSize(text: string, bytesMax: number, what = "value"): void {
  // A UTF-16 code unit is at most three bytes, so most texts need no counting.
  if (text.length * 3 <= bytesMax) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) throw tooBig(`${bytes}`, bytesMax, what);
}

function refusal(misfit: Misfit, what = "value"): Error {
  if (misfit.bytes !== undefined) return tooBig(`more than ${misfit.bytes}`, misfit.bytesMax, what);
  const path = formatPath(what, misfit.path);
  const position = misfit.position === undefined ? {} : { position: misfit.position };
  return invalid(`${path} ${misfit.why}`, { details: { path, ...position } });
}

function tooBig(bytes: string, bytesMax: number, what: string): Error {
  const advice = "keep the bulk in a file or a bucket and pass a reference to it";
  return invalid(`${what} is ${bytes} bytes of JSON, over the limit of ${bytesMax}; ${advice}`, {
    details: { path: what, bytesMax },
  });
}
