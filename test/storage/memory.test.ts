import assert from "node:assert/strict";
import { test } from "node:test";
import { job, manualClock, open } from "../../src/index.ts";

test("a book in memory looks for no other process, so that a test may move its clock by days", async (t) => {
  const still = manualClock();
  const waits = new Set<number>();
  const after: typeof still.after = (ms, run) => {
    waits.add(ms);
    return still.after(ms, run);
  };
  const greet = job("greet", { run: () => "hello" });
  const book = await open(":memory:", { use: [greet], clock: { ...still, after } });
  t.after(() => book.close());
  const worker = await book.startWorker();

  const { id } = await book.jobs.enqueue(greet);
  await worker.idle();
  await still.advance(60_000);

  assert.equal((await book.jobs.get(id)).status, "completed");
  assert.ok(Math.min(...waits) >= 1000, `it wakes after ${Math.min(...waits)} ms`);
});
