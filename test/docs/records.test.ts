import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { root, runPage, runProgram } from "./snippet.ts";

test("the examples of docs/records.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/records.md");

  const lines = printed.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 5), ["2", "open paid 42", "[ [ 'o-17', 42, 4 ] ] null", "o-17", "1 0"]);
  assert.ok(lines.includes("[ [ 'o-17', 1 ] ]"));
});

test("the example of records tells what was and what is, without a cast", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/records.ts"), testFolder(t));

  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^o-17 was open and is paid\n1 paid order, 40 in all; 1 from Norway\n/);
  assert.doesNotMatch(readFileSync(join(root, "examples/records.ts"), "utf8"), /\bas (?!const)|\bany\b/);
});
