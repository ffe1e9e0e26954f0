// The kinds of field that the input of a verb is made of. Each says its JSON Schema, checks a value, and reads one from text: the
// command line, paths and query strings bring text, JSON bodies and tools bring values.
import { durationMs } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { isPlain, toJson } from "../core/json.ts";
import { parseJson } from "../core/parse-json.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { nearest } from "../core/suggest.ts";
import { timeMs } from "../core/time.ts";

export type Schema = { readonly [word: string]: unknown };

export type Field<T = unknown, Maybe extends boolean = boolean> = {
  /** For the compiler alone. */
  readonly "~type"?: T;
  readonly kind: Kind;
  /** It may be left out. */
  readonly maybe: Maybe;
  readonly about: string;
  readonly schema: Schema;
  /** What stands for a value in help: `--at <time>`. */
  readonly metavar: string;
  /** Of a choice: what its contrary means. */
  readonly no?: string;
  /** Throws `invalid` unless the value fits. `what` is the field as its caller calls it: `--limit`, or `limit`. */
  check(value: unknown, what: string): void;
  /** Text that cannot be read stays as it is, so that the check refuses it. */
  fromText(text: string, what: string): unknown;
  /** The texts of an option that was given several times, where they are not a list. */
  fromTexts?(texts: readonly string[], what: string): unknown;
};

type Kind =
  | ("text" | "whole" | "flag" | "choice" | "word" | "json" | "time" | "moment" | "duration")
  | ("rate" | "list" | "headers");

export type Fields = { readonly [name: string]: Field };

type Type<F> = F extends Field<infer T> ? T : never;

/** The input that a verb of these fields is run with. */
export type Given<F extends Fields> = {
  readonly [Name in keyof F as F[Name] extends Field<unknown, false> ? Name : never]: Type<F[Name]>;
} & {
  readonly [Name in keyof F as F[Name] extends Field<unknown, false> ? never : Name]?: Type<F[Name]>;
};

type Made<T> = Omit<Field<T, false>, "maybe" | "fromText"> & Partial<Pick<Field<T, false>, "fromText">>;

export function field<T>(made: Made<T>): Field<T, false> {
  return { fromText: (text) => text, ...made, schema: { ...made.schema, description: made.about }, maybe: false };
}

/** A check by a predicate: what does not hold is refused with the value and what would do. */
function must(what: string, holds: (value: unknown) => boolean): (value: unknown, name: string) => void {
  return (value, name) => {
    if (!holds(value)) throw invalid(`${name} is ${quote(value)}: give ${what}`);
  };
}

/** The same field, whose values must pass one more check. */
export function checked<T>(of: Field<T, false>, more: (value: T, what: string) => unknown): Field<T, false> {
  return {
    ...of,
    check(value, what) {
      of.check(value, what);
      more(value as T, what);
    },
  };
}

/** The same field, which may be left out. */
export function maybe<T>(of: Field<T, false>): Field<T, true> {
  return { ...of, maybe: true };
}

/** A text of so many characters; the library says which of them make a name, a key or an id. */
export function text(
  about: string,
  metavar = "text",
  charactersMax: number = limits.keyBytesMax,
): Field<string, false> {
  return field({
    kind: "text",
    about,
    metavar,
    schema: { type: "string", minLength: 1, maxLength: charactersMax },
    check: must(
      `a text of 1 to ${charactersMax} characters`,
      (value) => typeof value === "string" && value !== "" && hasAtMost(value, charactersMax),
    ),
  });
}

/** A character is one or two units of UTF-16, so most texts need no counting. */
function hasAtMost(value: string, characters: number): boolean {
  return value.length <= characters || (value.length <= 2 * characters && Array.from(value).length <= characters);
}

export function id(of: string): Field<string, false> {
  return text(`the id of the ${of}`, "id");
}

export function whole(about: string, min: number, max = 1_000_000): Field<number, false> {
  return field({
    kind: "whole",
    about,
    metavar: "n",
    schema: { type: "integer", minimum: min, maximum: max },
    check: must(
      `a whole number from ${min} to ${max}`,
      (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
    ),
    fromText: (given) => (/^[+-]?\d{1,15}$/.test(given) ? Number(given) : given),
  });
}

/** Something that is asked for, or not. */
export function flag(about: string): Field<boolean, false> {
  return field({
    kind: "flag",
    about,
    metavar: "",
    schema: { type: "boolean" },
    check: must("true or false", (value) => typeof value === "boolean"),
    fromText: (given) => (given === "true" ? true : given === "false" ? false : given),
  });
}

/** Yes, no, or no matter: left out, it narrows nothing. `no` is what its contrary means. */
export function choice(about: string, no: string): Field<boolean, false> {
  return { ...flag(about), kind: "choice", no };
}

/** A longer list of words would push all descriptions aside. */
const metavarMax = 30;

export function word<const Word extends string>(about: string, words: readonly Word[]): Field<Word, false> {
  return field({
    kind: "word",
    about,
    metavar: words.join("|").length <= metavarMax ? words.join("|") : "word",
    schema: { type: "string", enum: words },
    check(value, what) {
      if (words.some((each) => each === value)) return;
      const near = typeof value === "string" ? nearest(value, words) : undefined;
      const advice = near === undefined ? "give" : `did you mean ${quote(near)}? Give`;
      throw invalid(`${what} is ${quote(value)}: ${advice} one of ${words.join(", ")}`);
    },
  });
}

/** `bytesMax`: of a list of documents, each of which is checked by itself. */
export function json(about: string, { bytesMax }: { readonly bytesMax?: number } = {}): Field<unknown, false> {
  const size = bytesMax === undefined ? {} : { bytesMax };
  return field({
    kind: "json",
    about,
    metavar: "json",
    schema: {},
    check(value, what) {
      if (value === undefined) throw invalid(`${what} is undefined: give JSON`);
      // What is in it the library checks, with its place, when it writes it: to do so twice would hold the loop twice as long.
      if (!Array.isArray(value) && !isPlain(value)) toJson(value, { what, ...size });
    },
    fromText: (given, what) => parseJson(given, { what, ...size }),
  });
}

/** A moment, ISO 8601 with a zone. The library takes the text as it is. */
export function time(about: string): Field<string, false> {
  return field({
    kind: "time",
    about,
    metavar: "time",
    schema: { type: "string", format: "date-time" },
    check(value, what) {
      must('a time in ISO 8601 with a zone, such as "2026-01-31T09:30:00Z"', (each) => typeof each === "string")(
        value,
        what,
      );
      timeMs(value as string, what);
    },
  });
}

export function duration(about: string, { min = 0 } = {}): Field<string, false> {
  return field({
    kind: "duration",
    about,
    metavar: "duration",
    schema: { type: "string", pattern: durationPattern },
    check(value, what) {
      must('a duration such as "30s", "5m", "1h30m" or "7d"', (each) => typeof each === "string")(value, what);
      durationMs(value as string, what, { min });
    },
  });
}

const durationPattern = String.raw`^(?=\d)(\d+w)? ?(\d+d)? ?(\d+h)? ?(\d+m)? ?(\d+s)? ?(\d+ms)?$`;
const isDuration = /^\d+(?:\.\d+)?\s*[a-z]+/i;

/** A moment, or how long ago it was. */
export function moment(about: string): Field<string, false> {
  return field({
    kind: "moment",
    about,
    metavar: "time",
    schema: { type: "string", minLength: 2 },
    check(value, what) {
      must('a time in ISO 8601 with a zone, or how long ago, such as "24h"', (each) => typeof each === "string")(
        value,
        what,
      );
      if (isDuration.test(value as string)) durationMs(value as string, what);
      else timeMs(value as string, what);
    },
  });
}

/** One of these words, or a duration. */
export function wordOrDuration<const Word extends string>(about: string, words: readonly Word[]): Field<string, false> {
  const { schema, check } = duration(about);
  return field<string>({
    kind: "duration",
    about,
    metavar: [...words, "duration"].join("|"),
    schema: { anyOf: [{ type: "string", enum: words }, schema] },
    check(value, what) {
      if (!words.some((each) => each === value)) check(value, what);
    },
  });
}

/** How many in each window of time; `10/1m` as text. */
export function rate(about: string): Field<{ readonly max: number; readonly per: string }, false> {
  return field({
    kind: "rate",
    about,
    metavar: "n/duration",
    schema: {
      type: "object",
      properties: { max: { type: "integer", minimum: 1, maximum: 1_000_000 }, per: duration("").schema },
      required: ["max", "per"],
      additionalProperties: false,
    },
    check(value, what) {
      const { max, per, ...rest } =
        typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
      if (max === undefined || per === undefined || Object.keys(rest).length > 0) {
        throw invalid(
          `${what} is ${quote(value)}: give how many and per how long, such as 10/1m for ten in each minute`,
        );
      }
      whole("", 1).check(max, `the number of ${what}`);
      duration("", { min: 1 }).check(per, `the time of ${what}`);
    },
    fromText(given) {
      const [, max, per] = /^(\d{1,15})\/(.+)$/.exec(given) ?? [];
      return max === undefined ? given : { max: Number(max), per };
    },
  });
}

/** The same field, or `none`, which takes a setting back. */
export function orNone<T>(of: Field<T, false>): Field<T | null, false> {
  return {
    ...of,
    about: `${of.about}, or "none"`,
    schema: { anyOf: [of.schema, { type: "null" }], description: of.about },
    check(value, what) {
      if (value !== null) of.check(value, what);
    },
    fromText: (given, what) => (given === "none" ? null : of.fromText(given, what)),
  };
}

/** Several. `one` is what one of them is called: the option `--tag` is given once for each of the `tags`. */
export function list<T>(of: Field<T, false>, { one = "", max = 100 } = {}): Field<readonly T[], false> {
  return field({
    kind: "list",
    about: of.about,
    metavar: of.kind === "word" ? "list" : of.metavar,
    schema: { type: "array", items: of.schema, maxItems: max, ...(one === "" ? {} : { "x-one": one }) },
    check(value, what) {
      must(`a list of at most ${max}`, (each) => Array.isArray(each) && each.length <= max)(value, what);
      for (const each of value as unknown[]) of.check(each, what);
    },
    // Words have no commas in them, so several may stand in one text.
    fromText: (given, what) =>
      (of.kind === "word" ? given.split(",").map((each) => each.trim()) : [given]).map((each) =>
        of.fromText(each, what),
      ),
  });
}
