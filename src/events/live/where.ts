// Predicates: which events of its topics a listener acts on. They can be combined, and each describes itself in words, so that
// a list of listeners explains itself.
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import type { LiveEvent } from "../event.ts";

/** What a predicate can see besides the payload. */
export type Seen = {
  readonly event: LiveEvent;
  /** The previous event of this topic that the listener heard, whether or not it acted on it. */
  readonly previous: LiveEvent | null;
};

export type Predicate<Payload = unknown> = {
  readonly kind: "predicate";
  test(payload: Payload, seen: Seen): boolean;
  describe(): string;
  /** It looks at the event before. */
  readonly compares?: boolean;
};

/** A predicate, or a function, whose name describes it. */
export type Where<Payload = unknown> = Predicate<Payload> | ((payload: Payload, seen: Seen) => boolean);

/** Ready-made predicates. A path is a dotted name inside the payload (`state.level`, `items.0`); `""` is the payload.
 *
 *  ```ts
 *  const hot = where.all(where.equals("room", "kitchen"), where.above("celsius", 30));
 *  console.log(hot.describe()); // room = "kitchen" and celsius > 30
 *  ``` */
export const where = {
  /** The value is there and the same JSON. */
  equals(path: string, value: unknown): Predicate {
    const [read, named] = reader(path);
    const wanted = shown(value);
    return predicate((payload) => samePart(read(payload), value), `${named} = ${wanted}`);
  },
  oneOf(path: string, values: readonly unknown[]): Predicate {
    const [read, named] = reader(path);
    if (!Array.isArray(values) || values.length === 0)
      throw invalid(`where.oneOf(${quote(path)}) has no values to match`);
    const list = values.map(shown).join(", ");
    return predicate((payload) => values.some((value) => samePart(read(payload), value)), `${named} is one of ${list}`);
  },
  /** The value is a number greater than this one. */
  above(path: string, bound: number): Predicate {
    return compared(path, ">", bound, (value) => value > bound);
  },
  below(path: string, bound: number): Predicate {
    return compared(path, "<", bound, (value) => value < bound);
  },
  /** There is a value, and it is not null. */
  exists(path: string): Predicate {
    const [read, named] = reader(path);
    return predicate((payload) => read(payload) != null, `${named} is there`);
  },
  /** The value is not what it was in the event before. The first event heard counts as changed, unless `from` is given. */
  changed(path: string, options: { readonly from?: unknown; readonly to?: unknown } = {}): Predicate {
    refuseUnknown(options, ["from", "to"], "where.changed");
    const [read, named] = reader(path);
    const words = [`${named} changed`];
    if ("from" in options) words.push(`from ${shown(options.from)}`);
    if ("to" in options) words.push(`to ${shown(options.to)}`);
    const test: Predicate["test"] = (payload, { previous }) => {
      const now = read(payload);
      if ("to" in options && !samePart(now, options.to)) return false;
      if (previous === null) return !("from" in options);
      const before = read(previous.payload);
      return !samePart(now, before) && (!("from" in options) || samePart(before, options.from));
    };
    return predicate(test, words.join(" "), true);
  },
  all<Payload = unknown>(...parts: readonly Where<Payload>[]): Predicate<Payload> {
    const { each, words, compares } = several("all", parts, " and ");
    return predicate((payload, seen) => each.every((part) => ask(part, payload, seen)), words, compares);
  },
  any<Payload = unknown>(...parts: readonly Where<Payload>[]): Predicate<Payload> {
    const { each, words, compares } = several("any", parts, " or ");
    return predicate((payload, seen) => each.some((part) => ask(part, payload, seen)), words, compares);
  },
  not<Payload = unknown>(part: Where<Payload>): Predicate<Payload> {
    const inner = asPredicate(part);
    const words = `not (${inner.describe()})`;
    return predicate((payload, seen) => !ask(inner, payload, seen), words, inner.compares);
  },
} as const;

/** Asks a predicate, which must answer true or false: a promise would count as true. */
export function ask<Payload>(part: Predicate<Payload>, payload: Payload, seen: Seen): boolean {
  const answer: unknown = part.test(payload, seen);
  if (typeof answer === "boolean") return answer;
  if (answer instanceof Promise) answer.catch(() => undefined);
  const found = answer instanceof Promise ? "a promise" : quote(answer);
  throw invalid(`the predicate ${quote(part.describe())} answered ${found}; it must answer true or false, at once`);
}

function asPredicate<Payload>(part: Where<Payload>): Predicate<Payload> {
  if (typeof part === "function") return predicate(part, nameOf(part));
  if (typeof part === "object" && part !== null && part.kind === "predicate" && typeof part.test === "function")
    return part;
  throw invalid(`${quote(part)} is not a predicate: use where.equals(…) and its like, or a function`);
}

// An inline function has no name, or the option's; its source text describes it instead.
function nameOf(test: (...given: never[]) => boolean): string {
  return test.name === "" || test.name === "where" ? cut(String(test).replaceAll(/\s+/g, " ")) : test.name;
}

function predicate<Payload>(test: Predicate<Payload>["test"], text: string, compares = false): Predicate<Payload> {
  return { kind: "predicate", test, describe: () => text, compares };
}

function reader(path: string): [read: (payload: unknown) => unknown, named: string] {
  if (typeof path !== "string") throw invalid(`path ${quote(path)} must be a string, such as "state.level"`);
  if (path === "") return [(payload) => payload, "payload"];
  const segments = path.split(".");
  if (segments.includes("") || segments.length > limits.jsonDepthMax) {
    throw invalid(`path ${quote(path)} is not 1 to ${limits.jsonDepthMax} names with one dot between them`);
  }
  return [(payload) => valueAt(payload, segments), path];
}

function compared(path: string, sign: string, bound: number, holds: (value: number) => boolean): Predicate {
  const [read, named] = reader(path);
  if (typeof bound !== "number" || Number.isNaN(bound))
    throw invalid(`${quote(bound)} is not a number to compare with`);
  return predicate((payload) => {
    const value = read(payload);
    return typeof value === "number" && holds(value);
  }, `${named} ${sign} ${bound}`);
}

/** The parts as predicates, and how they read together. */
function several<Payload>(verb: string, parts: readonly Where<Payload>[], word: string) {
  if (parts.length === 0) throw invalid(`where.${verb}() has no predicates; give it at least one`);
  const each = parts.map(asPredicate);
  const [first = "", ...others] = each.map((part) => part.describe());
  const bracketed = (text: string): string => (/ and | or /.test(text) ? `(${text})` : text);
  const words = others.length === 0 ? first : [first, ...others].map(bracketed).join(word);
  return { each, words, compares: each.some((part) => part.compares === true) };
}

const shownLengthMax = 60;

function shown(value: unknown): string {
  return cut(toJson(value, { what: "where" }));
}

function cut(text: string): string {
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text;
}

/** The value at a path of the payload's own properties; undefined when there is none. */
function valueAt(payload: unknown, path: readonly string[]): unknown {
  let value = payload;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** Whether two values are the same JSON. A missing value equals only a missing value. */
function samePart(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  return toJson(a) === toJson(b);
}
