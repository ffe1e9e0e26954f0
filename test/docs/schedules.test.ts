import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { root, runPage, runProgram } from "./snippet.ts";

test("the examples of docs/schedules.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/schedules.md");

  const lines = printed.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 4), [
    ...["2026-03-29T02:30:00 2026-03-28T21:00:00 gap", "2026-03-30T02:30:00 2026-03-29T20:30:00 null"],
    ...["true queued", "manual true"],
  ]);
  assert.match(lines[4] ?? "", /^false It is not due at 2026-03-29T12:34:00\.000Z: every day at 07:00/);
  assert.ok(lines.includes("poll manual 0"));
});

test("the example of a schedule fires three slots and is over", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/schedule.ts"), testFolder(t));

  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(lines[0] ?? "", /^the next slot is \d\d\.000Z$/);
  assert.deepEqual(lines.slice(1), [
    ...[1, 2, 3].map((count) => `beat ${count} for a slot of "every-second", decided as fired`),
    ...["3 decisions, and it is over", "It ran: the slot was fired on time."],
  ]);
});
