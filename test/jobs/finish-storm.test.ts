// A finish runs serializable on PostgreSQL, because it holds a user's statements. Whoever loses against another runs again, so
// what the engine itself reads and writes in it must be nothing that two finishes share.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, listener, type Book, type Job, type UserTx } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";

type Storm = {
  readonly finishes: number;
  readonly also?: (tx: UserTx) => Promise<unknown>;
  readonly concurrency?: number;
  readonly enqueue?: (book: Book, charge: Job<object>, finishes: number) => Promise<unknown>;
};

/** Runs jobs that leave an effect with their finish, 100 at a time. Says how often a finish ran again. */
async function runAgainIn(t: TestContext, { finishes, also, concurrency, enqueue = many }: Storm): Promise<number> {
  let tries = 0;
  const charge = job("charge", {
    ...(concurrency === undefined ? {} : { concurrency }),
    run: (_params: object, { finish, job: { id } }) =>
      finish(async (tx) => {
        await tx.sql`insert into charge (job_id) values (${id})`;
        await also?.(tx);
      }),
  });
  const heard = listener("heard", {
    on: "paid",
    ordered: true,
    run: (_paid: unknown, { finish, job: { id } }) =>
      finish((tx) => tx.sql`insert into charge (job_id) values (${id})`.then(() => undefined)),
  });
  const next = job("next", { run: () => undefined });
  const { book } = await openTest(t, "postgres", {
    use: [charge, next, heard],
    fault: (moment, text) =>
      void (moment === "before" && text.startsWith("begin isolation level serializable") && tries++),
  });
  await book.write((tx) => tx.sql`create table charge (job_id text not null)`);
  await enqueue(book, charge, finishes);
  tries = 0;

  const worker = await book.startWorker({ concurrency: 100 });
  await worker.idle();

  const rows = await book.read((tx) => tx.sql<{ job_id: string }>`select job_id from charge`);
  assert.deepEqual([rows.length, new Set(rows.map((row) => row.job_id)).size], [finishes, finishes]);
  assert.deepEqual(await book.doctor(), []);
  return tries - finishes;
}

function many(book: Book, charge: Job<object>, finishes: number): Promise<unknown> {
  return book.jobs.enqueueMany(
    charge,
    Array.from({ length: finishes }, () => ({})),
  );
}

async function withKeys(book: Book, charge: Job<object>, finishes: number): Promise<void> {
  for (let n = 0; n < finishes; n++) await book.jobs.enqueue(charge, {}, { key: `charge ${n}` });
}

function inOneGroup(book: Book, charge: Job<object>, finishes: number): Promise<unknown> {
  return book.groups.create({ mode: "parallel" }, (group) => {
    for (let n = 0; n < finishes; n++) group.add(charge, {});
  });
}

async function asDeliveries(book: Book, _charge: unknown, finishes: number): Promise<void> {
  for (let n = 0; n < finishes; n++) await book.events.publish("paid", { n }, { key: `customer ${n % 30}` });
}

const alone: Readonly<Record<string, Omit<Storm, "finishes">>> = {
  "leave an effect of their own": {},
  "enqueue a job": { also: (tx) => tx.jobs.enqueue("next", {}) },
  "publish an event": { also: (tx) => tx.events.publish("charged", {}) },
  "end jobs with a key": { enqueue: withKeys },
  "end jobs of one group": { enqueue: inOneGroup },
  "end deliveries in order": { enqueue: asDeliveries },
  "end jobs of which 1 may run": { concurrency: 1 },
  "end jobs of which 10 may run": { concurrency: 10 },
  "end jobs of which 100 may run": { concurrency: 100 },
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
