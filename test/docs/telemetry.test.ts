import assert from "node:assert/strict";
import { test } from "node:test";
import { runPage } from "./snippet.ts";

test("the examples of docs/telemetry.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/telemetry.md");

  assert.match(printed, /^3 2 critical charge 3 3\ncharge, 2 times: RangeError: no credit for \d+\n$/);
});
