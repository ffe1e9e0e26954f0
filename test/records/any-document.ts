// Documents and conditions that fast-check draws, small enough that conditions often hit something.
import { fc } from "../support/property.ts";
import type { Condition, Place } from "../../src/records/query/condition.ts";

/** Names with everything that a path could be mistaken for. */
const names = [
  "a",
  "b",
  "a.b",
  'a"b',
  "a'b",
  "a\\b",
  "0",
  "__proto__",
  "é",
  "'; drop table daybook_record; --",
  "$",
  "[0]",
  "",
];

const texts = [
  "",
  "a",
  "A",
  "ab",
  "abc",
  "b%",
  "b_",
  "%",
  "_",
  "\\",
  "é",
  "É",
  "\u{1F600}",
  "\uFFFD",
  "1",
  "true",
  "null",
  '{"a":1}',
  "[1]",
  "it's",
  "ab\u{10FFFF}",
];
const numbers = [
  0,
  1,
  -1,
  2,
  1.5,
  0.1,
  10,
  1e21,
  5e-7,
  2 ** 53,
  2 ** 53 + 2,
  -(2 ** 60),
  123456789012345680000,
  1.7976931348623157e308,
  5e-324,
];

export const anyScalar: fc.Arbitrary<string | number | boolean> = fc.oneof(
  fc.constantFrom(...texts),
  fc.constantFrom(...numbers),
  fc.boolean(),
);

const { value: anyValue } = fc.letrec<{ value: unknown; object: unknown; list: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    { arbitrary: anyScalar, weight: 4 },
    { arbitrary: fc.constant(null), weight: 1 },
    { arbitrary: tie("object"), weight: 2 },
    { arbitrary: tie("list"), weight: 2 },
  ),
  object: fc.array(fc.tuple(fc.constantFrom(...names), tie("value")), { maxLength: 3 }).map(toObject),
  list: fc.array(tie("value"), { maxLength: 3 }),
}));

// JSON.parse, because a literal or an assignment of __proto__ would set a prototype.
function toObject(entries: readonly (readonly [string, unknown])[]): unknown {
  const unique = new Map(entries);
  return JSON.parse(
    `{${[...unique].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`,
  );
}

export const anyFields: fc.Arbitrary<Record<string, unknown>> = fc
  .array(fc.tuple(fc.constantFrom(...names), anyValue), { minLength: 1, maxLength: 4 })
  .map((entries) => toObject(entries) as Record<string, unknown>);

const anyPlace: fc.Arbitrary<Place> = fc
  .array(fc.constantFrom(...names), { minLength: 1, maxLength: 2 })
  .map((path) => ({ side: "value", path }));
const anyItemPlace: fc.Arbitrary<Place> = fc
  .array(fc.constantFrom(...names), { minLength: 0, maxLength: 1 })
  .map((path) => ({ side: "value", path }));

/** Conditions about places that `place` draws. */
function conditionsAbout(place: fc.Arbitrary<Place>, depth: number): fc.Arbitrary<Condition> {
  const text = fc.constantFrom(...texts);
  const ordered = fc.oneof(text, fc.constantFrom(...numbers));
  const leaves: fc.Arbitrary<Condition>[] = [
    fc.record({ op: fc.constantFrom("eq" as const, "ne" as const), at: place, value: anyScalar }),
    fc.record({
      op: fc.constantFrom("lt" as const, "lte" as const, "gt" as const, "gte" as const),
      at: place,
      value: ordered,
    }),
    fc.record({
      op: fc.constantFrom("in" as const, "notIn" as const),
      at: place,
      value: fc.array(anyScalar, { maxLength: 4 }),
    }),
    fc.record({
      op: fc.constantFrom("startsWith" as const, "endsWith" as const, "contains" as const),
      at: place,
      value: text,
    }),
    fc.record({ op: fc.constantFrom("isNull" as const, "isNotNull" as const), at: place }),
  ];
  if (depth === 0) return fc.oneof(...leaves);
  const inner = conditionsAbout(place, depth - 1);
  return fc.oneof(
    ...leaves,
    fc.record({ op: fc.constant("any" as const), at: place, where: conditionsAbout(anyItemPlace, depth - 1) }),
    fc.record({ op: fc.constant("and" as const), of: fc.array(inner, { maxLength: 3 }) }),
    fc.record({ op: fc.constant("or" as const), of: fc.array(inner, { maxLength: 3 }) }),
    fc.record({ op: fc.constant("not" as const), of: inner }),
  );
}

export const anyCondition: fc.Arbitrary<Condition> = conditionsAbout(anyPlace, 2);
export const anyPlainCondition: fc.Arbitrary<Condition> = conditionsAbout(anyPlace, 1);
export const orderNames = names;
