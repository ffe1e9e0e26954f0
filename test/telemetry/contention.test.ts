import assert from "node:assert/strict";
import { test } from "node:test";
import { contend } from "../support/session-contend.ts";

test("four processes that write to one file at once all get their share, and their hearts beat", async (t) => {
  const report = await contend(t, { processes: 4, ms: 4000, callers: 16 });

  assert.deepEqual(report.errors, []);
  assert.ok(report.slowestShare >= 0.5, `the slowest got ${report.slowestShare} of its share`);
  assert.ok(report.fewestBeats >= 2, `a heart beat ${report.fewestBeats} times in 4 s`);
});
