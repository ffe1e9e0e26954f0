// A claim waits for nobody. What another transaction holds it passes by, and nobody tells when that one lets it go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { sql } from "../../src/storage/sql.ts";
import { openTest } from "../support/open-test.ts";
import { openEngine } from "./open-engine.ts";

const single = job("single", { concurrency: 1, run: () => undefined });
const plain = job("plain", { run: () => undefined });

for (const [how, undone] of [
  ["was given another priority", false],
  ["was to be given another priority, which was undone", true],
] as const) {
  test(`postgres: a job that ${how} while a worker looked is found when it looks again`, async (t) => {
    // It stands still, so that no sweep comes to help.
    const clock = manualClock();
    const { book } = await openTest(t, "postgres", { clock, use: [plain] });
    const { id } = await book.jobs.enqueue(plain);
    const [held, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = book.write(async (tx) => {
      await tx.jobs.prioritise(id, 5);
      held.resolve();
      await gate.promise;
      if (undone) throw new Error("undone");
    });
    await held.promise;
    const worker = await book.startWorker();
    await worker.idle();

    gate.resolve();
    await (undone ? assert.rejects(holding, /undone/) : holding);
    await worker.idle();

    await clock.advance(1000);
    while ((await book.jobs.get(id)).status !== "completed") await clock.nextTurn();
  });
}

test("postgres: who begins to wait for a job lets it in when a slot that became free passed it by", async (t) => {
  const at = await openEngine(t, "postgres", { use: [single] });
  const [, second] = await at.jobs.enqueueMany(single, [{}, {}]);
  const [running] = await at.claim(2);
  const [held, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = at.store.write(async (tx) => {
    await tx.all(sql`select seq from daybook_line where status = 'waiting' for update`);
    held.resolve();
    await gate.promise;
  });
  await held.promise;
  await at.end(running as ClaimedJob, { status: "success" });
  gate.resolve();
  await holding;
  assert.deepEqual(await at.claim(2), []);

  const result = at.jobs.result(second?.id ?? "");
  let claimed: readonly ClaimedJob[] = [];
  while (claimed.length === 0) claimed = await at.claim(2);

  await at.end(claimed[0] as ClaimedJob, { status: "success", result: "1" });
  assert.equal(await result, 1);
});
