import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { fc } from "../support/property.ts";
import { limits } from "../../src/core/limits.ts";
import { toJson } from "../../src/core/json.ts";
import { parseJson } from "../../src/core/parse-json.ts";

const text = fc.string({ unit: "grapheme" }).map((value) => value.replaceAll("\0", ""));
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("json"), { maxLength: 5 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom("__proto__", "constructor", "toString", "0", "length")), tie("json")),
  ),
}));

test("what is written reads back equal", () => {
  fc.assert(
    fc.property(json, (value) => {
      const written = toJson(value);
      assert.equal(toJson(parseJson(written)), written);
      assert.deepEqual(parseJson(written), JSON.parse(JSON.stringify(value)));
      assert.deepEqual(JSON.parse(written), parseJson(written));
    }),
    { numRuns: 1000 },
  );
});

test("the order in which keys were added does not matter", () => {
  fc.assert(
    fc.property(fc.dictionary(text, json), (object) => {
      const entries = Object.entries(object);
      assert.equal(toJson(Object.fromEntries(entries.toReversed())), toJson(Object.fromEntries(entries)));
    }),
  );
  assert.equal(
    toJson({ b: 1, a: [true, null], 10: "x", 9: "y", é: 0, Z: {} }),
    '{"10":"x","9":"y","Z":{},"a":[true,null],"b":1,"é":0}',
  );
});

test("strict reading accepts exactly what JSON.parse accepts, apart from our own rules", () => {
  const soup = fc.array(
    fc.constantFrom(
      ...'{}[]",:0123456789.-+eE\\utfnrals \t\n\u0001é'.split(""),
      "true",
      "null",
      '"a"',
      '"b":',
      "\\u00e9",
    ),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        soup.map((parts) => parts.join("")),
        json.map((value) => JSON.stringify(value, null, 1).slice(0, -1)),
      ),
      (input) => {
        const native = attempt(() => JSON.parse(input) as unknown);
        const ours = attempt(() => parseJson(input));
        // What breaks a rule of ours before it breaks the grammar is told of the first.
        if ("error" in native) return assert.notEqual(ours.error, undefined, "accepted");
        if (ours.error === undefined) return assert.deepEqual(ours.value, normalZero(native.value));
        return assert.doesNotMatch(ours.error.message, /is not valid JSON/);
      },
    ),
    { numRuns: 5000 },
  );
});

function attempt(run: () => unknown): { value?: unknown; error?: Error } {
  try {
    return { value: run() };
  } catch (error) {
    return { error: error as Error };
  }
}

function normalZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

class Money {
  readonly cents = 5;
}

test("what JSON would change or drop is refused with its path and advice", () => {
  const cases: [unknown, RegExp][] = [
    [{ user: { tags: ["a", "b", "c", Number.NaN] } }, /^params\.user\.tags\[3\] is NaN; use null/],
    [{ a: -Infinity }, /^params\.a is -Infinity/],
    [undefined, /^params is undefined; use null/],
    [[1, undefined], /^params\[1\] is undefined in an array; use null/],
    [[1, , 3], /^params\[1\] is a hole in a sparse array/], // eslint-disable-line no-sparse-arrays
    [{ f: () => 1 }, /^params\.f is a function/],
    [{ s: Symbol("x") }, /^params\.s is a symbol/],
    [{ n: 5n }, /^params\.n is a bigint; pass it as a string/],
    [{ "first name": "\ud800" }, /^params\["first name"\] has a lone surrogate in "\\ud800"/],
    [{ a: { "\udc00": 1 } }, /^params\.a has a key that cannot be kept: it has a lone surrogate/],
    ["a\0b", /^params has U\+0000 in "a\\u0000b"/],
    [{ "a\0": 1 }, /^params has a key that cannot be kept: it has U\+0000/],
    [{ when: new Date(0) }, /^params\.when is a Date, .*toISOString\(\)/],
    [new Map(), /^params is a Map, .*Object\.fromEntries/],
    [new Set(), /^params is a Set/],
    [[new URL("http://x")], /^params\[0\] is a URL, .*url\.href/],
    [{ b: Buffer.from("x") }, /^params\.b is a Buffer, .*base64/],
    [new Error("x"), /^params is a Error/],
    [Promise.resolve(), /await it first/],
    [new Money(), /^params is a Money, .*plain object/],
    [new (class {})(), /^params is a class instance/],
    [Object("text"), /^params is a String/],
    [Object.create({ inherited: 1 }), /^params is a Object/],
    [{ toJSON: () => 1 }, /^params is an object with a toJSON method/],
    [Object.assign([], { toJSON: () => 1 }), /^params is an array with a toJSON method/],
  ];
  for (const [value, message] of cases) {
    assert.throws(() => toJson(value, { what: "params" }), { code: "invalid", message }, String(message));
  }
});

test("an undefined property is left out and -0 becomes 0", () => {
  assert.equal(toJson({ a: undefined, b: 1 }), '{"b":1}');
  assert.equal(toJson({ a: undefined }), "{}");
  assert.equal(toJson([-0]), "[0]");
  assert.ok(Object.is(parseJson("-0"), 0));
});

test("objects without a prototype and of another realm are plain", () => {
  const bare = Object.assign(Object.create(null) as object, { b: 1, a: 2 });

  assert.equal(toJson(bare), '{"a":2,"b":1}');
  assert.equal(toJson(runInNewContext("({ b: [1], a: {} })")), '{"a":{},"b":[1]}');
});

test("a value that appears twice is written twice, a cycle is refused", () => {
  const shared = { x: 1 };
  assert.equal(toJson([shared, shared]), '[{"x":1},{"x":1}]');
  const cycle: Record<string, unknown> = {};
  cycle["self"] = { again: cycle };

  assert.throws(() => toJson(cycle), { code: "invalid", message: /^value\.self\.again\..* deeper than 64 levels/ });
});

test("64 levels are allowed and 65 are not, in both directions", () => {
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

  assert.equal(toJson(JSON.parse(nested(64))), nested(64));
  assert.equal(JSON.stringify(parseJson(nested(64))), nested(64));
  assert.throws(() => toJson(JSON.parse(nested(65))), { code: "invalid", message: /deeper than 64 levels/ });
  assert.throws(() => parseJson(nested(65)), { code: "invalid", message: /deeper than 64 levels/ });
  assert.throws(() => parseJson("[".repeat(500_000)), { code: "invalid", message: /deeper than 64 levels/ });
});

test("a value over the limit is refused with both sizes, measured in UTF-8", () => {
  assert.equal(toJson("éé", { bytesMax: 6 }), '"éé"');
  assert.throws(() => toJson("ééé", { what: "result", bytesMax: 6 }), {
    code: "invalid",
    message: /^result is 8 bytes of JSON, over the limit of 6; /,
  });
  assert.throws(() => parseJson('"ééé"', { bytesMax: 6 }), /is 8 bytes of JSON, over the limit of 6/);
  assert.throws(() => toJson("x".repeat(2 ** 20)), /is 1048578 bytes of JSON, over the limit of 1048576/);
});

test("shared references that stand for endless text are refused quickly", () => {
  let bomb: unknown = "lol";
  for (let i = 0; i < 60; i++) bomb = [bomb, bomb];
  const long = "x".repeat(1_000_000);

  assert.throws(() => toJson(bomb), { code: "invalid", message: /^value has more than 50000 fields, lists and obj/ });
  assert.throws(() => toJson(Array(30_000).fill(long)), {
    code: "invalid",
    message: /is more than \d+ bytes of JSON, over the limit of 1048576/,
  });
});

test("a document of too many fields, lists and objects is refused in both directions, and plain values are not counted", () => {
  const most = limits.jsonPartsMax;
  const fields = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, 1]));
  const lists = (count: number): object[] => Array.from({ length: count }, () => []);
  const numbers = Array<number>(10 * most).fill(1);

  assert.equal(Object.keys(parseJson(toJson(fields(most - 1))) as object).length, most - 1);
  assert.equal((parseJson(toJson(lists(most - 1))) as unknown[]).length, most - 1);
  assert.equal((parseJson(toJson(numbers)) as unknown[]).length, 10 * most);
  for (const value of [fields(most), lists(most)]) {
    const refused = { code: "invalid", details: { path: "params", partsMax: most } };
    assert.throws(() => toJson(value, { what: "params" }), refused);
    assert.throws(() => parseJson(JSON.stringify(value), { what: "params" }), refused);
  }
  // A text that may be larger may have as many more.
  assert.ok(toJson(fields(most), { bytesMax: 2 * limits.jsonBytesMax }).length > most);
});

test("malformed text is refused with the position", () => {
  const cases: [string, RegExp][] = [
    ["", /^body is not valid JSON: the text ends too early \(position 0\)/],
    ["abc", /"a" is unexpected \(position 0\)/],
    ['{"a":1,}', /"}" is unexpected \(position 7\)/],
    ["[1 2]", /"2" is unexpected \(position 3\)/],
    ["[1,", /the text ends too early \(position 3\)/],
    ["01", /"1" is unexpected \(position 1\)/],
    ["nul", /"n" is unexpected \(position 0\)/],
    ["{a:1}", /"a" is unexpected \(position 1\)/],
    ['{"a" 1}', /"1" is unexpected \(position 5\)/],
    ['"a\nb"', /"\\n" is unexpected \(position 2\)/],
    ['"a\\x"', /"\\\\" is unexpected \(position 2\)/],
    ['"abc', /the text ends too early \(position 4\)/],
    ["\ufeff1", /is unexpected \(position 0\)/],
    ["[1]]", /"]" is unexpected \(position 3\)/],
  ];
  for (const [input, message] of cases) {
    assert.throws(() => parseJson(input, { what: "body" }), { code: "invalid", message }, input);
  }
  assert.throws(() => parseJson('{"a":[1,}'), { details: { path: "value.a[1]", position: 8 } });
});

test("a duplicate key is refused with its path", () => {
  assert.throws(() => parseJson('{"a":[{"b":1,"\\u0062":2}]}', { what: "body" }), {
    code: "invalid",
    message: "body.a[0].b is given twice; keep one of the two (position 13)",
  });
  assert.throws(() => parseJson('{"__proto__":1,"__proto__":2}'), /is given twice/);
});

test("a number that would change is refused", () => {
  for (const literal of [
    "9007199254740993",
    "-9007199254740993",
    "123456789012345678901234",
    "1e999",
    "-1e999",
    "1e-999",
  ]) {
    assert.throws(() => parseJson(`{"id":${literal}}`), {
      code: "invalid",
      message: /^value\.id is the number .* as a string/,
    });
  }
  for (const literal of [
    "9007199254740992",
    "123456789012345680000",
    "1180591620717411303424",
    "1e23",
    "0.1",
    "0e5",
    "-0.0",
    "1E2",
  ]) {
    assert.equal(parseJson(literal), Number(literal) + 0);
  }
});

test("escapes that cannot be stored are refused", () => {
  assert.equal(parseJson('"\\ud83d\\udc0e"'), "🐎");
  assert.throws(() => parseJson('["\\ud83d"]'), { code: "invalid", message: /^value\[0\] has a lone surrogate/ });
  assert.throws(() => parseJson('["a\\u0000"]'), { code: "invalid", message: /^value\[0\] has U\+0000/ });
  assert.throws(() => parseJson('{"\\udc0e":1}'), { code: "invalid", message: /has a lone surrogate/ });
});

test("__proto__ is an ordinary key", () => {
  const value = parseJson('{"__proto__":{"admin":true}}') as Record<string, unknown>;

  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(value["admin"], undefined);
  assert.deepEqual(Object.keys(value), ["__proto__"]);
  assert.equal(toJson(value), '{"__proto__":{"admin":true}}');
});

test("a text of many megabytes is read when its limit allows it", () => {
  const big = JSON.stringify(["x".repeat(2 ** 22), "\n".repeat(2 ** 21)]);

  assert.equal(toJson(parseJson(big, { bytesMax: 2 ** 24 }), { bytesMax: 2 ** 24 }), big);
});
