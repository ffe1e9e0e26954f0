// JSON that is kept: what it cannot carry is refused with its path, and what is written is canonical.
import { invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonOptions = {
  /** What the value is to the caller, the first word of the path in messages: `params`, `result`. */
  what?: string;
  /** Measured in bytes of UTF-8, since that is what is stored. A larger text may have as many more fields. */
  bytesMax?: number;
};

/**
 * Canonical text: keys sorted, no white space, so equal values have equal text and can be compared and hashed.
 * What JSON would silently change (NaN, a Date, a function, a hole in an array) is refused with its path instead. Two
 * changes are allowed because they lose nothing: a property that is `undefined` is left out, and -0 becomes 0.
 */
export function toJson(value: unknown, options: JsonOptions = {}): string {
  const bytesMax = options.bytesMax ?? limits.jsonBytesMax;
  const [bytesStop, partsMax] = [bytesMax * hopelessFactor, partsMaxOf(bytesMax)];
  const writing: Writing = { bytes: 0, bytesStop, bytesMax, parts: 0, partsMax, misfit: undefined };
  const text = write(writing, value, 0);
  if (writing.misfit !== undefined) throw refusal(writing.misfit, options.what);
  checkSize(text, bytesMax, options.what);
  return text;
}

export function checkSize(text: string, bytesMax: number, what = "value"): void {
  // A UTF-16 code unit is at most three bytes, so most texts need no counting.
  if (text.length * 3 <= bytesMax) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) throw tooBig(`${bytes}`, bytesMax, what);
}

export function partsMaxOf(bytesMax: number): number {
  return limits.jsonPartsMax * Math.max(1, bytesMax / limits.jsonBytesMax);
}

export function refusal(misfit: Misfit, what = "value"): Error {
  if (misfit.bytes !== undefined) return tooBig(`more than ${misfit.bytes}`, misfit.bytesMax, what);
  if (misfit.partsMax !== undefined) return tooFine(misfit.partsMax, what);
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

function tooFine(partsMax: number, what: string): Error {
  const advice = "keep it in several documents or in records, or pass a reference to it";
  return invalid(`${what} has more than ${partsMax} fields, lists and objects; ${advice}`, {
    details: { path: what, partsMax },
  });
}

/** Why a value or a text is not JSON we can keep, and where. The path is filled on the way out: innermost first. */
export type Misfit = { readonly path: (string | number)[]; readonly why: string } & (
  | { readonly position?: number; readonly bytes?: undefined; readonly partsMax?: undefined }
  | { readonly bytes: number; readonly bytesMax: number }
  | { readonly bytes?: undefined; readonly partsMax: number }
);

type Writing = {
  bytes: number;
  readonly bytesStop: number;
  readonly bytesMax: number;
  parts: number;
  readonly partsMax: number;
  misfit: Misfit | undefined;
};

// One value reached along many paths is written once per path, so a few shared references can stand for more text
// than memory holds. The walk counts a lower bound and stops well past the limit; up to there, the exact size is told.
const hopelessFactor = 16;

/** Checks and writes a value in one pass: this is a hot path, and a document of many fields holds the loop meanwhile. After a misfit
 *  the text means nothing, and every caller returns at once. A cycle is not looked for but met as too much depth. */
function write(writing: Writing, value: unknown, depth: number): string {
  writing.bytes += 1;
  if (writing.bytes > writing.bytesStop) {
    return fail(writing, { path: [], why: "", bytes: writing.bytes, bytesMax: writing.bytesMax });
  }
  switch (typeof value) {
    case "string":
      return writeText(writing, value);
    case "number":
      return Number.isFinite(value) ? `${value}` : fail(writing, misfit(`is ${value}; use null, or leave it out`));
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      if (++writing.parts > writing.partsMax) return fail(writing, tooMany(writing));
      if (depth >= limits.jsonDepthMax) {
        return fail(
          writing,
          misfit(`is nested deeper than ${limits.jsonDepthMax} levels; flatten it, or look for a cycle`),
        );
      }
      return Array.isArray(value) ? writeArray(writing, value, depth) : writeObject(writing, value, depth);
    default:
      return fail(writing, misfit(unfit(value)));
  }
}

function fail(writing: Writing, found: Misfit): string {
  writing.misfit = found;
  return "";
}

// What JSON writes otherwise than it is. Longer texts are left to the engine, which looks at several characters at a time.
const escaped = /["\\\u0000-\u001f]/;
const shortText = 100;

function writeText(writing: Writing, text: string): string {
  writing.bytes += text.length;
  const bad = checkText(text);
  if (bad !== undefined) return fail(writing, bad);
  return text.length <= shortText && !escaped.test(text) ? `"${text}"` : JSON.stringify(text);
}

export function checkText(text: string): Misfit | undefined {
  if (!text.isWellFormed()) return misfit(`has a lone surrogate in ${quote(text)}; clean it with text.toWellFormed()`);
  if (text.includes("\0")) return misfit(`has U+0000 in ${quote(text)}; remove it, databases cannot store it in text`);
  return undefined;
}

function writeArray(writing: Writing, array: readonly unknown[], depth: number): string {
  if (hasToJson(array)) {
    return fail(writing, misfit("is an array with a toJSON method; call it yourself and pass what it returns"));
  }
  let text = "[";
  for (let index = 0; index < array.length; index++) {
    const item = array[index];
    if (index > 0) text += ",";
    if (item !== undefined) text += write(writing, item, depth + 1);
    else
      fail(
        writing,
        misfit(index in array ? "is undefined in an array; use null" : "is a hole in a sparse array; use null"),
      );
    if (writing.misfit !== undefined) return fail(writing, at(index, writing.misfit));
  }
  return `${text}]`;
}

function writeObject(writing: Writing, object: object, depth: number): string {
  if (!isPlain(object)) return fail(writing, misfit(foreign(object)));
  if (hasToJson(object)) {
    return fail(writing, misfit("is an object with a toJSON method; call it yourself and pass what it returns"));
  }
  let text = "";
  for (const key of sortedKeys(object)) {
    const item = object[key];
    // As in JSON: code that builds objects from optional parts relies on this.
    if (item === undefined) continue;
    if (++writing.parts > writing.partsMax) return fail(writing, tooMany(writing));
    const name = writeText(writing, key);
    if (writing.misfit !== undefined) {
      return fail(writing, misfit(`has a key that cannot be kept: it ${writing.misfit.why}`));
    }
    const written = write(writing, item, depth + 1);
    if (writing.misfit !== undefined) return fail(writing, at(key, writing.misfit));
    text += text === "" ? `${name}:${written}` : `,${name}:${written}`;
  }
  return `{${text}}`;
}

/** By UTF-16 code unit, as RFC 8785 does. Most objects are small, or were written in this order. */
function sortedKeys(object: object): string[] {
  const keys = Object.keys(object);
  for (let index = 1; index < keys.length; index++) {
    if ((keys[index - 1] as string) > (keys[index] as string)) return keys.sort();
  }
  return keys;
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

/** Of the whole document, wherever it was noticed. */
export function tooMany({ partsMax }: { readonly partsMax: number }): Misfit {
  return { path: [], why: "", partsMax };
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
