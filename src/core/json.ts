// JSON that is kept: what it cannot carry is refused with its path, and what is written is canonical.
import stringify from "safe-stable-stringify";
import { invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

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

export function checkSize(text: string, bytesMax: number, what = "value"): void {
  // A UTF-16 code unit is at most three bytes, so most texts need no counting.
  if (text.length * 3 <= bytesMax) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) throw tooBig(`${bytes}`, bytesMax, what);
}

export function refusal(misfit: Misfit, what = "value"): Error {
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

/** Why a value or a text is not JSON we can keep, and where. The path is filled on the way out: innermost first. */
export type Misfit = { readonly path: (string | number)[]; readonly why: string } & (
  | { readonly position?: number; readonly bytes?: undefined }
  | { readonly bytes: number; readonly bytesMax: number }
);

type Walk = { bytes: number; readonly bytesStop: number; readonly bytesMax: number };

// One value reached along many paths is written once per path, so a few shared references can stand for more text
// than memory holds. The walk counts a lower bound and stops well past the limit; up to there, the exact size is told.
const hopelessFactor = 16;

/**
 * Walks a value once, before it is written, and returns the first thing that JSON cannot carry. This is a hot path: no
 * path is built unless there is a misfit, and a cycle is not looked for but met as too much depth.
 */
export function findMisfit(value: unknown, bytesMax: number): Misfit | undefined {
  return check(value, 0, { bytes: 0, bytesStop: bytesMax * hopelessFactor, bytesMax });
}

function check(value: unknown, depth: number, walk: Walk): Misfit | undefined {
  walk.bytes += 1;
  switch (typeof value) {
    case "string":
      walk.bytes += value.length;
      return checkText(value);
    case "number":
      return Number.isFinite(value) ? undefined : misfit(`is ${value}; use null, or leave it out`);
    case "boolean":
      return undefined;
    case "object":
      if (value === null) return undefined;
      if (walk.bytes > walk.bytesStop) return { path: [], why: "", bytes: walk.bytes, bytesMax: walk.bytesMax };
      if (depth >= limits.jsonDepthMax) {
        return misfit(`is nested deeper than ${limits.jsonDepthMax} levels; flatten it, or look for a cycle`);
      }
      return Array.isArray(value) ? checkArray(value, depth, walk) : checkObject(value, depth, walk);
    default:
      return misfit(unfit(value));
  }
}

export function checkText(text: string): Misfit | undefined {
  if (!text.isWellFormed()) return misfit(`has a lone surrogate in ${quote(text)}; clean it with text.toWellFormed()`);
  if (text.includes("\0")) return misfit(`has U+0000 in ${quote(text)}; remove it, databases cannot store it in text`);
  return undefined;
}

function checkArray(array: readonly unknown[], depth: number, walk: Walk): Misfit | undefined {
  if (hasToJson(array)) return misfit("is an array with a toJSON method; call it yourself and pass what it returns");
  for (let index = 0; index < array.length; index++) {
    const item = array[index];
    const found =
      item !== undefined
        ? check(item, depth + 1, walk)
        : misfit(index in array ? "is undefined in an array; use null" : "is a hole in a sparse array; use null");
    if (found !== undefined) return at(index, found);
  }
  return undefined;
}

function checkObject(object: object, depth: number, walk: Walk): Misfit | undefined {
  if (!isPlain(object)) return misfit(foreign(object));
  if (hasToJson(object)) return misfit("is an object with a toJSON method; call it yourself and pass what it returns");
  for (const key of Object.keys(object)) {
    const item = object[key];
    // As in JSON: code that builds objects from optional parts relies on this.
    if (item === undefined) continue;
    walk.bytes += key.length;
    const badKey = checkText(key);
    if (badKey !== undefined) return misfit(`has a key that cannot be kept: it ${badKey.why}`);
    const found = check(item, depth + 1, walk);
    if (found !== undefined) return at(key, found);
  }
  return undefined;
}

function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function unfit(value: unknown): string {
  if (value === undefined) return "is undefined; use null";
  if (typeof value === "bigint") return "is a bigint; pass it as a string, bigint.toString()";
  if (typeof value === "symbol") return "is a symbol; pass a string, symbol.description";
  return `is ${quote(value)}; JSON holds data only, leave it out`;
}

const adviceByClass: Readonly<Record<string, string>> = {
  Date: "pass date.toISOString()",
  Map: "pass Object.fromEntries(map)",
  Set: "pass [...set]",
  URL: "pass url.href",
  RegExp: "pass regexp.source",
  Error: "pass { name, message } of it",
  Buffer: 'pass buffer.toString("base64")',
  Uint8Array: 'pass Buffer.from(bytes).toString("base64")',
  Promise: "await it first",
};

function foreign(object: object): string {
  const name: unknown = (object as { constructor?: { name?: unknown } }).constructor?.name;
  const label = typeof name === "string" && name !== "" ? name.slice(0, 60) : "class instance";
  const advice = Object.hasOwn(adviceByClass, label) ? adviceByClass[label] : "pass a plain object, such as { ...it }";
  return `is a ${label}, which JSON cannot carry; ${advice}`;
}

export function misfit(why: string, position?: number): Misfit {
  return position === undefined ? { path: [], why } : { path: [], why, position };
}

export function at(key: string | number, found: Misfit): Misfit {
  found.path.push(key);
  return found;
}

/** `params.user["first name"].tags[3]` */
export function formatPath(what: string, path: readonly (string | number)[]): string {
  return path.reduceRight<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    return /^[\p{L}_$][\p{L}\p{N}_$]{0,99}$/u.test(key) ? `${text}.${key}` : `${text}[${quote(key)}]`;
  }, what);
}

/** An object with named fields: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object that holds nothing but its own fields, made in any realm: the code under a test runner often lives in another one than
 *  Node's own objects. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, "isPrototypeOf");
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
