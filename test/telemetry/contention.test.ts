import assert from "node:assert/strict";
import { test } from "node:test";
import { contend } from "../support/session-contend.ts";

test("four processes that write to one file at once all get their share, and their sessions beat", async (t) => {
  const report = await contend(t, { processes: 4, ms: 4000, callers: 16 });

  assert.deepEqual(report.errors, []);
  // How even they are is up to the machine too, and measured by the proof: here nobody goes hungry.
  assert.ok(report.slowestShare >= 0.2, `the slowest got ${report.slowestShare} of its share`);
  assert.ok(report.fewestBeats >= 2, `a heart beat ${report.fewestBeats} times in 4 s`);
});
