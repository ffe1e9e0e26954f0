import assert from "node:assert/strict";
import { test } from "node:test";
import { runPage } from "./snippet.ts";

test("the examples of docs/testing.md are a program that runs", async (t) => {
  assert.equal(await runPage(t, "docs/testing.md"), "all is as it should be\n");
});
