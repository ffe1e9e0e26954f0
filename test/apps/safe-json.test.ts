// JSON of anything, for people to read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { safeJson } from "../../src/apps/safe-json.ts";
import { fc } from "../support/property.ts";

const none = "<NON_SERIALIZABLE>";

test("keys are sorted, and what has a text gets it", () => {
  const value = { b: new Date(0), a: [new URL("http://a.example/x"), 12n, undefined], c: undefined, 10: 1, 9: 2 };

  assert.equal(safeJson(value), '{"10":1,"9":2,"a":["http://a.example/x","12",null],"b":"1970-01-01T00:00:00.000Z"}');
});

test("parts without JSON are replaced by a placeholder", () => {
  const circle: { name: string; self?: unknown } = { name: "circle" };
  circle.self = circle;
  const shared = { x: 1 };
  const throws = Object.defineProperty({ fine: 1 }, "bad", { enumerable: true, get: () => assert.fail("no") });
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();

  assert.equal(safeJson(circle), `{"name":"circle","self":"${none}"}`);
  assert.equal(safeJson([shared, shared]), '[{"x":1},{"x":1}]');
  assert.equal(safeJson([() => 1, Symbol("s"), new Map(), new (class A {})(), Number.NaN]).split(none).length, 6);
  assert.equal(safeJson({ a: throws, b: revoked.proxy }), `{"a":"${none}","b":"${none}"}`);
  assert.equal(safeJson(new Date(Number.NaN)), '"Invalid Date"');
  for (const lone of [undefined, () => 1, Symbol("s")]) assert.equal(safeJson(lone), `"${none}"`);
});

test("a huge or endlessly deep value is replaced as a whole, quickly", () => {
  const deep: unknown[] = [];
  let inside = deep;
  for (let level = 0; level < 100_000; level++) inside.push((inside = []));

  assert.equal(safeJson("x".repeat(limits.registrationJsonBytesMax)), `"${none}"`);
  assert.equal(safeJson(Array.from({ length: 300_000 })), `"${none}"`);
  assert.ok(safeJson(deep).length < 1000);
});

test("safeJson never throws, returns JSON, and is the same for equal values in any key order", () => {
  const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true });
  fc.assert(
    fc.property(anything, (value) => {
      const text = safeJson(value);
      JSON.parse(text);
      if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
        const turned = Object.fromEntries(Object.entries(value).toReversed());
        assert.equal(safeJson(turned), text);
      }
    }),
  );
});
