import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/core/limits.ts";

test("every limit is a positive whole number", () => {
  for (const [name, value] of Object.entries(limits)) assert.ok(Number.isSafeInteger(value) && value > 0, name);
});

test("a session outlives many missed beats, and the page in use fits the biggest page", () => {
  assert.ok(limits.sessionTtlMs >= 10 * limits.beatMs);
  assert.ok(limits.pageDefault <= limits.pageMax);
});
