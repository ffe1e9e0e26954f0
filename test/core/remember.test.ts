import assert from "node:assert/strict";
import { test } from "node:test";
import { remember, rememberFor } from "../../src/core/remember.ts";

test("an answer is made once for each key", () => {
  const asked: string[] = [];
  const lengthOf = remember((text: string) => asked.push(text));

  lengthOf("a");
  lengthOf("b");
  lengthOf("a");

  assert.deepEqual(asked, ["a", "b"]);
});

test("of more answers than may be kept the oldest is forgotten", () => {
  const asked: string[] = [];
  const lengthOf = remember((text: string) => asked.push(text), { max: 2 });

  for (const text of ["a", "b", "c", "b", "a"]) lengthOf(text);

  assert.deepEqual(asked, ["a", "b", "c", "a"]);
});

test("what is remembered for an object is its own", () => {
  const first = {};
  const numberOf = rememberFor((key: object) => ({ key }));

  assert.equal(numberOf(first), numberOf(first));
  assert.notEqual(numberOf(first), numberOf({}));
});
