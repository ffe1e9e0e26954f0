// Must show 4, in full: four processes on one file for twenty seconds, and what sharing costs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { contend } from "../support/session-contend.ts";

for (const callers of [1, 16, 100]) {
  test(`four processes with ${callers} callers each share one file fairly for 20 s`, async (t) => {
    const before = await contend(t, { processes: 1, ms: 4000, callers });
    const together = await contend(t, { processes: 4, ms: 20_000, callers });
    const after = await contend(t, { processes: 1, ms: 4000, callers });

    assert.deepEqual(together.errors, []);
    assert.ok(together.slowestShare >= 0.5, `the slowest got ${together.slowestShare} of its share`);
    assert.ok(together.oldestBeatMs < 5000, `a heartbeat was ${together.oldestBeatMs} ms old`);
    assert.ok(together.fewestBeats >= 10, `a heart beat ${together.fewestBeats} times in 20 s`);
    // Sharing costs the moments in which the file changes hands, not most of the time.
    const rate = together.unitsPerSecond / Math.min(before.unitsPerSecond, after.unitsPerSecond);
    t.diagnostic(`together ${rate.toFixed(2)} of what one process writes alone`);
    assert.ok(rate >= 0.4, `together they wrote ${rate} of what one process writes alone`);
  });
}

for (const processes of [2, 8]) {
  test(`${processes} processes share one file fairly for 10 s`, async (t) => {
    const report = await contend(t, { processes, ms: 10_000, callers: 16 });

    assert.deepEqual(report.errors, []);
    assert.ok(report.slowestShare >= 0.5, `the slowest got ${report.slowestShare} of its share`);
    assert.ok(report.oldestBeatMs < 5000, `a heartbeat was ${report.oldestBeatMs} ms old`);
  });
}
