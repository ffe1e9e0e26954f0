import assert from "node:assert/strict";
import { test } from "node:test";
import {
  choice,
  duration,
  flag,
  json,
  list,
  maybe,
  moment,
  orNone,
  rate,
  text,
  time,
  whole,
  word,
  wordOrDuration,
} from "../../src/verbs/field.ts";
import { headers } from "../../src/verbs/shared-fields.ts";
import type { Field, Schema } from "../../src/verbs/field.ts";

const kinds: Readonly<Record<string, Field>> = {
  text: text("a", "a", 5),
  whole: whole("a", -3, 500),
  flag: flag("a"),
  choice: choice("a", "b"),
  word: word("a", ["keep", "replace"]),
  json: json("a"),
  time: time("a"),
  moment: moment("a"),
  duration: duration("a"),
  wordOrDuration: wordOrDuration("a", ["queued", "done"]),
  rate: rate("a"),
  orNone: orNone(whole("a", 1, 5)),
  list: list(word("a", ["keep", "replace"]), { max: 2 }),
  maybe: maybe(text("a")),
  headers: headers("a", 1),
};

const values: readonly unknown[] = [
  ...[
    "",
    "a",
    "keep",
    "abcdef",
    "12345",
    "ünïcö",
    "🎉🎉🎉🎉🎉",
    "🎉🎉🎉🎉🎉🎉",
    "5m",
    "1h30m",
    "1h 30m",
    "30m1h",
    "m",
    "5",
    "-5s",
    "queued",
  ],
  ...["2026-01-31T09:30:00Z", "2026-02-30T09:30:00Z", "2026-01-31", "tomorrow", "24h"],
  ...[0, 1, -3, -4, 500, 501, 1.5, 1e21, true, false, null],
  ...[[], ["keep"], ["keep", "other"], ["keep", "keep", "keep"], [1], {}, { max: 1, per: "1m" }, { max: 0, per: "1m" }],
  ...[{ accept: "text/plain" }, { accept: 1 }, { accept: "a", "x-b": "c" }],
  ...[{ max: 1, per: "soon" }, { max: 1 }, { max: 1, per: "1m", more: 1 }],
];

for (const [name, field] of Object.entries(kinds)) {
  test(`what the check of a ${name} takes, its schema takes`, () => {
    const taken = values.filter((value) => accepts(field, value));

    for (const value of taken) assert.ok(fits(value, field.schema), `${name} takes ${JSON.stringify(value)}`);
    // A pattern says what a duration looks like, not how long it may be; a day that does not exist looks like one that does.
    const looser = ["time", "moment", "json"].includes(name);
    const refused = values.filter((value) => !accepts(field, value) && fits(value, field.schema));
    if (!looser) assert.deepEqual(refused, [], `the schema of ${name} takes what its check refuses`);
    assert.ok(taken.length > 0);
  });
}

test("text is read as its field wants it, and what cannot be read is left to the check", () => {
  const read = (field: Field, given: string): unknown => field.fromText(given, "--a");

  assert.deepEqual(
    [read(whole("a", 0), "12"), read(whole("a", -5), "-5"), read(whole("a", 0), "1e3"), read(whole("a", 0), "0x10")],
    [12, -5, "1e3", "0x10"],
  );
  assert.deepEqual(read(list(word("a", ["x", "y"])), "x, y"), ["x", "y"]);
  assert.deepEqual(read(list(text("a")), "x, y"), ["x, y"]);
  assert.deepEqual(read(rate("a"), "10/1m"), { max: 10, per: "1m" });
  assert.equal(read(rate("a"), "10"), "10");
  assert.equal(read(orNone(whole("a", 0)), "none"), null);
  assert.deepEqual(read(json("a"), '{"a": 1}'), { a: 1 });
  assert.throws(() => read(json("a"), "{a"), /--a is not valid JSON/);
});

test("headers are read from lines, and a line that is refused does not show its value", () => {
  const field = headers("a", 5);
  const read = (...lines: string[]): unknown => field.fromTexts?.(lines, "--header");

  assert.deepEqual(read("accept: text/plain", "x-a:b:c"), { accept: "text/plain", "x-a": "b:c" });
  assert.throws(() => read("no-colon-but-a-token"), /--header "no-colon-b"… is not "name: value"/);
  assert.throws(() => read("a: 1", "a: 2"), /--header has "a" twice/);
  for (const value of [new Headers({ a: "b" }), new Map([["a", "b"]]), Promise.resolve({ a: "b" })]) {
    assert.throws(() => field.check(value, "headers"), { code: "invalid" });
  }
  assert.throws(
    () => field.check({ authorization: { secret: 1 } }, "headers"),
    /the header "authorization" of headers/,
  );
});

function accepts(field: Field, value: unknown): boolean {
  try {
    field.check(value, "a");
    return true;
  } catch (error) {
    assert.equal((error as { code?: string }).code, "invalid", `a bare ${String(error)}`);
    return false;
  }
}

/** As much of JSON Schema as the fields use. */
function fits(value: unknown, schema: Schema): boolean {
  const {
    anyOf,
    enum: words,
    type,
    pattern,
    minLength = 0,
    maxLength = Infinity,
    minimum = -Infinity,
    maximum = Infinity,
  } = schema as Record<string, unknown> & {
    minLength?: number;
    maxLength?: number;
    minimum?: number;
    maximum?: number;
  };
  if (Array.isArray(anyOf)) return anyOf.some((each: Schema) => fits(value, each));
  if (Array.isArray(words) && !words.includes(value)) return false;
  switch (type) {
    case undefined:
      return true;
    case "null":
      return value === null;
    case "boolean":
      return typeof value === "boolean";
    case "integer":
      return Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum;
    case "string": {
      const characters = typeof value === "string" ? Array.from(value).length : -1;
      const isText = typeof value === "string" && characters >= minLength && characters <= maxLength;
      return isText && (typeof pattern !== "string" || new RegExp(pattern, "u").test(value));
    }
    case "array": {
      const { items, maxItems } = schema as { items: Schema; maxItems: number };
      return Array.isArray(value) && value.length <= maxItems && value.every((each) => fits(each, items));
    }
    case "object": {
      const {
        properties = {},
        required = [],
        additionalProperties,
        maxProperties = Infinity,
      } = schema as {
        properties?: Record<string, Schema>;
        required?: string[];
        additionalProperties: Schema | false;
        maxProperties?: number;
      };
      if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
      const isKnown = ([name, each]: [string, unknown]): boolean => {
        const known = Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
        return known !== undefined && known !== false && fits(each, known);
      };
      const entries = Object.entries(value);
      return (
        entries.length <= maxProperties &&
        entries.every(isKnown) &&
        required.every((name) => Object.hasOwn(value, name))
      );
    }
    default:
      return assert.fail(`the test knows no type ${String(type)}`);
  }
}
