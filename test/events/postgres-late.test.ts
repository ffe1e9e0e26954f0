// What only several transactions at once can show: who commits late loses nothing, and a key's events are in the order of
// their commits.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../src/core/clock.ts";
import { event, listener, manualClock, open, type Book } from "../../src/index.ts";
import { cleanup, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const Said = event<{ n: number }>("talk.said");

/** Two processes' worth of books on one database, and what `l` heard. */
async function openTwo(
  t: TestContext,
  ordered: boolean,
): Promise<{ book: Book; other: Book; heard: number[]; url: string }> {
  const heard: number[] = [];
  const l = listener("l", { on: Said, ordered, run: ({ n }) => void heard.push(n) });
  const { book, url } = await openTest(t, "postgres", { use: [l] });
  // Its clock stands still, so that a transaction of it may be held for as long as the test takes.
  const other = await open(url, { worker: false, clock: manualClock() });
  cleanup(t, () => other.close());
  return { book, other, heard, url };
}

/** A transaction that has published and stays open until it is let go. */
async function publishAndHold(
  book: Book,
  n: number,
  key?: string,
): Promise<{ letGo: () => void; done: Promise<unknown> }> {
  const held = Promise.withResolvers<void>();
  const published = Promise.withResolvers<void>();
  const done = book.write(async (tx) => {
    await tx.events.publish(Said, { n }, key === undefined ? {} : { key });
    published.resolve();
    await held.promise;
  });
  await published.promise;
  return { letGo: held.resolve, done };
}

async function someoneWaits(book: Book, what: "advisory" | "transactionid"): Promise<boolean> {
  const waiting = await book.read(
    (tx) => tx.sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and wait_event = ${what}`,
  );
  return waiting.length > 0;
}

test("postgres: an event that is committed late behind a faster one is heard all the same", async (t) => {
  const { book, other, heard } = await openTwo(t, false);
  const worker = await book.startWorker();

  const late = await publishAndHold(other, 1);
  await book.events.publish(Said, { n: 2 });
  await worker.idle();
  const before = [...heard];
  late.letGo();
  await late.done;
  while (heard.length < 2) await systemClock.sleep(5);

  assert.deepEqual([before, heard], [[2], [2, 1]]);
});

test("postgres: a listener that begins while something is being published waits for it, and misses nothing", async (t) => {
  const { other, url } = await openTwo(t, false);
  const heard = { beginning: [] as number[], now: [] as number[] };
  const use = (["beginning", "now"] as const).map((from) =>
    listener(`from ${from}`, { on: Said, from, run: ({ n }) => void heard[from].push(n) }),
  );
  const late = await publishAndHold(other, 1);

  const registering = open(url, { use });
  while (!(await someoneWaits(other, "advisory"))) await systemClock.nextTurn();
  late.letGo();
  await late.done;
  const book = await registering;
  cleanup(t, () => book.close());
  await book.events.publish(Said, { n: 2 });
  await (await book.startWorker()).idle();

  assert.deepEqual([heard.beginning.toSorted((a, b) => a - b), heard.now], [[1, 2], [2]]);
});

test("postgres: of two publishers of one key the second waits, and order is the order of commits", async (t) => {
  const { book, other, heard } = await openTwo(t, true);
  const worker = await book.startWorker({ concurrency: 4 });

  const first = await publishAndHold(other, 1, "k");
  const elsewhere = await book.events.publish(Said, { n: 10 }, { key: "other" });
  const second = book.write((tx) => tx.events.publish(Said, { n: 2 }, { key: "k" }));
  await worker.idle();
  const before = [...heard];
  first.letGo();
  await Promise.all([first.done, second]);
  while (heard.length < 3) await systemClock.sleep(5);

  assert.deepEqual([before, heard], [[10], [10, 1, 2]]);
  assert.equal(elsewhere.created, true);
  const rows = await book.read(
    (tx) => tx.sql<{ payload: string }>`select payload from daybook_event where key = 'k' order by seq`,
  );
  assert.deepEqual(
    rows.map(({ payload }) => payload),
    ['{"n":1}', '{"n":2}'],
  );
});

test("postgres: a transaction that began before a listener did, and publishes after it, does not miss it", async (t) => {
  const { url } = await openTwo(t, false);
  const heard: number[] = [];
  const old = await open(url, { worker: false, clock: manualClock() });
  cleanup(t, () => old.close());
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let tries = 0;
  const publishing = old.write(async (tx) => {
    tries++;
    await tx.sql`select count(*) from daybook_listener`; // what it sees from here on is what was there now
    begun.resolve();
    await held.promise;
    return tx.events.publish(Said, { n: 1 });
  });
  await begun.promise;

  const late = listener("late", { on: Said, run: ({ n }) => void heard.push(n) });
  const book = await open(url, { use: [late] });
  cleanup(t, () => book.close());
  held.resolve();
  const { deliveries } = await publishing; // its clock stands still, and it is run again all the same
  await (await book.startWorker()).idle();

  assert.deepEqual([tries, deliveries, heard], [2, 2, [1]]);
});

for (const [what, status] of [
  ["begins", "running"],
  ["ends", "completed"],
] as const) {
  test(`postgres: a delivery that ${what} while its listener skips is passed by, and the others are skipped`, async (t) => {
    const { book, other } = await openTwo(t, false);
    await book.listeners.pause("l");
    for (const n of [1, 2, 3]) await book.events.publish(Said, { n });
    const [changed, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const changing = tamper(other, async (tx) => {
      await tx.sql`update daybook_line set waits_for = null, run_id = 'r', status = 'running', started_at = 1, session_seq = 1
        where seq = (select min(seq) from daybook_line where kind = 'delivery')`;
      if (status === "completed") {
        await tx.sql`insert into daybook_run (tenant_id, id, kind, name, job_seq, session_seq, attempt, started_at, ended_at,
            duration_ms, status)
          select tenant_id, 'r', kind, name, seq, 1, 1, 1, 1, 0, 'success' from daybook_job_now where status = 'running'`;
        await tx.sql`delete from daybook_line where status = 'running'`;
      }
      changed.resolve();
      await held.promise;
    });
    await changed.promise;

    const skipping = book.listeners.skip("l");
    while (!(await someoneWaits(other, "transactionid"))) await systemClock.nextTurn();
    held.resolve();
    await changing;

    assert.deepEqual(await skipping, { skipped: 2 });
    const rows = await book.read(
      (tx) =>
        tx.sql<{
          status: string;
          cancel_requested_at: number | null;
        }>`select status, cancel_requested_at from daybook_job_now where kind = 'delivery' order by seq`,
    );
    assert.deepEqual(
      rows.map((row) => [row.status, row.cancel_requested_at]),
      [
        [status, null],
        ["cancelled", null],
        ["cancelled", null],
      ],
    );
  });
}

test("postgres: a skip locks deliveries in order, waiting for the first before it holds a later one", async (t) => {
  const { book, url } = await openTwo(t, false);
  for (const n of [1, 2]) await book.events.publish(Said, { n });
  // As after a retry, which is a newer job than the delivery of the next event.
  await tamper(
    book,
    (tx) => tx.sql`update daybook_line set kind_seq = (select sum(kind_seq) from daybook_line) - kind_seq`,
  );
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query("set search_path to daybook; begin");
  await client.query("select seq from daybook_line order by seq limit 1 for update");

  const skipped = book.listeners.skip("l");
  while (!(await someoneWaits(book, "transactionid"))) await systemClock.nextTurn();
  const free = await client.query("select seq from daybook_line for update skip locked");
  await client.query("rollback");

  assert.equal(free.rowCount, 2);
  assert.deepEqual(await skipped, { skipped: 2 });
});
