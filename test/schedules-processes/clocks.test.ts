import assert from "node:assert/strict";
import { test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { startChild } from "../support/child-process.ts";
import { backends, openTest } from "../support/open-test.ts";

const noon = Date.UTC(2026, 0, 15, 12);
const work = job("work", { run: () => undefined });

for (const backend of backends) {
  test(`${backend}: two processes with clocks 90 s apart fire 30 slots 30 times`, async (t) => {
    const clock = manualClock({ at: noon + 90_000 });
    const { book, url } = await openTest(t, backend, { use: [work], clock });
    await book.schedules.create("minutes", { cron: "* * * * *", job: work, params: {}, overlap: "allow" });
    const processes = [noon, noon + 90_000].map((at) => startChild(t, "fire", [url, String(at)]));
    await Promise.all(processes.map((child) => child.said("ready")));

    for (let step = 1; step < 60; step++) {
      for (const child of processes) child.tell("30000");
      await Promise.all(processes.map((child) => child.saidLines(step + 1)));
    }

    clock.step(59 * 30_000);
    const { items } = await book.schedules.decisions("minutes", { limit: 500 });
    assert.equal(new Set(items.map(({ at }) => at)).size, items.length);
    assert.equal(new Set(items.map(({ jobId }) => jobId)).size, items.length);
    assert.deepEqual([items.length, (await book.jobs.list({ limit: 500 })).items.length], [30, 30]);
    assert.ok(items.every(({ kind }) => kind === "fired"));
    assert.deepEqual(await book.doctor(), []);
  });
}
