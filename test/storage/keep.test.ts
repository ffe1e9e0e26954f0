import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeep } from "../../src/core/remember.ts";

test("a value is made once for each name, and two stores share nothing", () => {
  const [one, two] = [createKeep(), createKeep()];
  let made = 0;
  const make = (): { readonly number: number } => ({ number: ++made });

  const first = one("cache", make);

  assert.equal(one("cache", make), first);
  assert.notEqual(one("other", make), first);
  assert.notEqual(two("cache", make), first);
  assert.equal(made, 3);
});

test("a kept undefined is not made again", () => {
  const keep = createKeep();
  let made = 0;

  for (let round = 0; round < 2; round++) keep("nothing", () => void made++);

  assert.equal(made, 1);
});
