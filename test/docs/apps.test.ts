import assert from "node:assert/strict";
import { test } from "node:test";
import { runPage } from "./snippet.ts";

test("the examples of docs/apps.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/apps.md");

  assert.deepEqual(printed.trimEnd().split("\n"), ["hall: light on", "running running", "turnOn moving = true home"]);
});
