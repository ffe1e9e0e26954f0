// Reads JSON from outside, more strictly than JSON.parse.
import {
  at,
  checkSize,
  checkText,
  misfit,
  partsMaxOf,
  refusal,
  tooMany,
  type Json,
  type JsonOptions,
  type Misfit,
} from "./json.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

/**
 * Reads text from outside, strictly: what two readers could understand differently (a key given twice, an integer
 * that a double cannot hold) is refused. Text that `toJson` wrote needs no such care; `JSON.parse` reads it faster.
 */
export function parseJson(text: string, options: JsonOptions = {}): Json {
  const bytesMax = options.bytesMax ?? limits.jsonBytesMax;
  checkSize(text, bytesMax, options.what);
  const { value, misfit } = readJson(text, partsMaxOf(bytesMax));
  if (misfit !== undefined) throw refusal(misfit, options.what);
  return value;
}

type Reading = {
  readonly text: string;
  position: number;
  parts: number;
  readonly partsMax: number;
  misfit: Misfit | undefined;
};

/**
 * Reads JSON text by RFC 8259 and our stricter rules. JSON.parse is faster, but it keeps the last of two equal keys,
 * rounds big integers, and leaves the position out of some of its messages, so its answer would need this walk anyway.
 */
function readJson(text: string, partsMax: number): { value: Json; misfit?: Misfit } {
  const reading: Reading = { text, position: 0, parts: 0, partsMax, misfit: undefined };
  skipSpace(reading);
  const value = readValue(reading, 0);
  skipSpace(reading);
  if (reading.misfit === undefined && reading.position < text.length) malformed(reading);
  return reading.misfit === undefined ? { value } : { value, misfit: reading.misfit };
}

/** Reads one value. After a misfit the result means nothing, and every caller returns at once. */
function readValue(reading: Reading, depth: number): Json {
  const char = reading.text[reading.position];
  if (char === "{" || char === "[") {
    if (depth >= limits.jsonDepthMax) return fail(reading, `is nested deeper than ${limits.jsonDepthMax} levels`);
    if (++reading.parts > reading.partsMax) return tooFine(reading);
    return char === "{" ? readObject(reading, depth) : readArray(reading, depth);
  }
  if (char === '"') return readString(reading);
  if (char === "t") return readWord(reading, "true", true);
  if (char === "f") return readWord(reading, "false", false);
  if (char === "n") return readWord(reading, "null", null);
  return readNumber(reading);
}

function readObject(reading: Reading, depth: number): Json {
  const object: { [key: string]: Json } = {};
  if (opensEmpty(reading, "}")) return object;
  do {
    skipSpace(reading);
    const keyPosition = reading.position;
    if (reading.text[keyPosition] !== '"') return malformed(reading);
    const key = readString(reading);
    if (reading.misfit !== undefined) return null;
    if (++reading.parts > reading.partsMax) return tooFine(reading);
    if (Object.hasOwn(object, key)) {
      reading.misfit = at(key, misfit(`is given twice; keep one of the two (position ${keyPosition})`, keyPosition));
      return null;
    }
    skipSpace(reading);
    if (!take(reading, ":")) return malformed(reading);
    skipSpace(reading);
    const value = readValue(reading, depth + 1);
    if (reading.misfit !== undefined) return within(reading, key);
    // Plain assignment of this one key would change the prototype instead.
    if (key === "__proto__") Object.defineProperty(object, key, { value, ...ordinary });
    else object[key] = value;
    skipSpace(reading);
  } while (take(reading, ","));
  return take(reading, "}") ? object : malformed(reading);
}

const ordinary = { writable: true, enumerable: true, configurable: true } as const;

function readArray(reading: Reading, depth: number): Json {
  const array: Json[] = [];
  if (opensEmpty(reading, "]")) return array;
  do {
    skipSpace(reading);
    const value = readValue(reading, depth + 1);
    if (reading.misfit !== undefined) return within(reading, array.length);
    array.push(value);
    skipSpace(reading);
  } while (take(reading, ","));
  return take(reading, "]") ? array : malformed(reading);
}

const plainPattern = /[^"\\\u0000-\u001f]*/y;
const escapePattern = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

function readString(reading: Reading): string {
  const { text, position: start } = reading;
  let end = matchEnd(plainPattern, text, start + 1);
  // Most strings have no escapes and are cut out of the text as they are.
  const escaped = text[end] === "\\";
  while (text[end] === "\\") {
    const next = matchEnd(escapePattern, text, end);
    if (next < 0) break;
    end = matchEnd(plainPattern, text, next);
  }
  if (text[end] !== '"') {
    malformed(reading, end);
    return "";
  }
  reading.position = end + 1;
  const value = escaped ? (JSON.parse(text.slice(start, end + 1)) as string) : text.slice(start + 1, end);
  const bad = checkText(value);
  if (bad !== undefined) fail(reading, bad.why, start);
  return value;
}

const numberPattern = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;

function readNumber(reading: Reading): Json {
  const start = reading.position;
  const end = matchEnd(numberPattern, reading.text, start);
  if (end < 0) return malformed(reading);
  const literal = reading.text.slice(start, end);
  const value = Number(literal);
  if (!survives(literal, value)) {
    const advice = "pass it as a string if every digit matters";
    return fail(reading, `is the number ${literal.slice(0, 60)}, which a double holds as ${value}; ${advice}`);
  }
  reading.position = end;
  // As `toJson` writes it: the two zeros are one value.
  return value === 0 ? 0 : value;
}

/** Every reader rounds fractions, and is expected to; an integer that changes is an id or an amount gone wrong. */
function survives(literal: string, value: number): boolean {
  if (!Number.isFinite(value)) return false;
  if (value === 0) return !/^[^eE]*[1-9]/.test(literal);
  if (Number.isSafeInteger(value) || !/^-?[0-9]+$/.test(literal)) return true;
  return String(value) === literal || BigInt(literal) === BigInt(value);
}

function readWord(reading: Reading, word: string, value: Json): Json {
  if (!reading.text.startsWith(word, reading.position)) return malformed(reading);
  reading.position += word.length;
  return value;
}

function opensEmpty(reading: Reading, close: string): boolean {
  reading.position += 1;
  skipSpace(reading);
  return take(reading, close);
}

function take(reading: Reading, char: string): boolean {
  if (reading.text[reading.position] !== char) return false;
  reading.position += 1;
  return true;
}

function skipSpace(reading: Reading): void {
  for (;;) {
    const code = reading.text.charCodeAt(reading.position);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    reading.position += 1;
  }
}

function matchEnd(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

function within(reading: Reading, key: string | number): null {
  if (reading.misfit !== undefined) at(key, reading.misfit);
  return null;
}

function malformed(reading: Reading, position = reading.position): null {
  const found = reading.text[position];
  const seen = found === undefined ? "the text ends too early" : `${quote(found)} is unexpected`;
  return fail(reading, `is not valid JSON: ${seen}`, position);
}

function tooFine(reading: Reading): null {
  reading.misfit = tooMany(reading);
  return null;
}

function fail(reading: Reading, why: string, position = reading.position): null {
  reading.misfit = misfit(`${why} (position ${position})`, position);
  return null;
}
