// A finish runs serializable on PostgreSQL, because it holds a user's statements. Whoever loses against another runs again, so
// what the engine itself reads and writes in it must be nothing that two finishes share.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, type UserTx } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";

type Storm = { readonly finishes: number; readonly also?: (tx: UserTx) => Promise<unknown> };

/** Runs jobs that leave an effect with their finish, 100 at a time. Says how often a finish ran again. */
async function runAgainIn(t: TestContext, { finishes, also }: Storm): Promise<number> {
  let tries = 0;
  const charge = job("charge", {
    run: (_params, { finish, job: { id } }) =>
      finish(async (tx) => {
        await tx.sql`insert into charge (job_id) values (${id})`;
        await also?.(tx);
      }),
  });
  const next = job("next", { run: () => undefined });
  const { book } = await openTest(t, "postgres", {
    use: [charge, next],
    fault: (moment, text) =>
      void (moment === "before" && text.startsWith("begin isolation level serializable") && tries++),
  });
  await book.write((tx) => tx.sql`create table charge (job_id text not null)`);
  await book.jobs.enqueueMany(
    charge,
    Array.from({ length: finishes }, () => ({})),
  );
  tries = 0;

  const worker = await book.startWorker({ concurrency: 100 });
  await worker.idle();

  const rows = await book.read((tx) => tx.sql<{ job_id: string }>`select job_id from charge`);
  assert.deepEqual([rows.length, new Set(rows.map((row) => row.job_id)).size], [finishes, finishes]);
  assert.deepEqual(await book.doctor(), []);
  return tries - finishes;
}

const alone: Readonly<Record<string, Omit<Storm, "finishes">>> = {
  "leave an effect of their own": {},
  "enqueue a job": { also: (tx) => tx.jobs.enqueue("next", {}) },
  "publish an event": { also: (tx) => tx.events.publish("charged", {}) },
};

for (const [what, storm] of Object.entries(alone)) {
  test(`of 300 finishes that ${what}, 100 at a time, fewer than one in ten runs again`, async (t) => {
    const again = await runAgainIn(t, { finishes: 300, ...storm });

    t.diagnostic(`${again} ran again`);
    assert.ok(again < 30, `${again} of 300 ran again`);
  });
}

test("finishes that read what the others write do run again, and each is kept once", async (t) => {
  const again = await runAgainIn(t, { finishes: 50, also: (tx) => tx.sql`select count(*) from charge` });

  assert.ok(again > 0, "none ran again, so the tests above would not see it");
});
