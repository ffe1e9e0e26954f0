import assert from "node:assert/strict";
import { test } from "node:test";
import { runPage } from "./snippet.ts";

test("the examples of docs/sql.md are a program that runs", async (t) => {
  assert.equal(await runPage(t, "docs/sql.md"), "[ 'a', 'c' ]\nnothing left\n");
});
