import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { root, runPage, runProgram } from "./snippet.ts";

test("the examples of docs/calls.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/calls.md");

  assert.deepEqual(printed.trimEnd().split("\n"), [
    ...["succeeded 200 POST /reserve?token=[redacted] was done"],
    ...["http://127.0.0.1:80/reserve?token=[redacted] [redacted]", "time cancelled", "1"],
  ]);
});

test("the example of a webhook is sent twice and succeeds", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/webhook.ts"), testFolder(t));

  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    ...["request 1: signed true", "request 2: signed true", "succeeded after 2 attempts: thank you"],
  ]);
});
