import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff } from "../../src/verbs/work/templates.ts";
import { orNone } from "../../src/verbs/field.ts";

const waits = backoff("the waits");

test("a backoff is read from text as a list of waits, or as a formula", () => {
  for (const [text, expected] of [
    ["10s,1m, 10m", ["10s", "1m", "10m"]],
    ["5s", ["5s"]],
    ['{"base": "2s", "factor": 3}', { base: "2s", factor: 3 }],
  ] as const) {
    const read = waits.fromText(text, "--backoff");

    assert.deepEqual(read, expected);
    assert.doesNotThrow(() => waits.check(read, "--backoff"));
  }
  assert.equal(orNone(waits).fromText("none", "--backoff"), null);
});

test("a backoff that is no list of durations and no formula is refused", () => {
  const bad = [[], ["soon"], "5s", 5, true, null, { base: "soon", factor: 0 }, { bse: "1s" }, { spread: 2 }, new Map()];

  for (const value of bad) {
    assert.throws(() => waits.check(value, "--backoff"), { code: "invalid" }, JSON.stringify(value));
  }
  assert.throws(() => waits.fromText("{", "--backoff"), /--backoff is not valid JSON/);
});
