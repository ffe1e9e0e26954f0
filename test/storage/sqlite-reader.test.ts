// The thread that reads, and the connection under it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { openConnection } from "../../src/storage/sqlite/connection.ts";
import { createReaderThread } from "../../src/storage/sqlite/reader.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { cleanup, openTestStore } from "../support/open-test.ts";

// About half a second of work for SQLite.
const slow = sql`with recursive number (n) as (select 1 union all select n + 1 from number where n < 2000000)
  select max(n) as n from number`;

/** A store whose snapshot's time is over in the very moment in which it has begun its slow statement. */
async function openHurried(t: TestContext): Promise<{ store: Store; clock: ManualClock; read(): Promise<unknown> }> {
  const clock = manualClock();
  let expire = (): void => undefined;
  const after: typeof clock.after = (ms, run) => {
    if (ms === limits.snapshotMsMax) expire = run;
    return clock.after(ms, run);
  };
  const { store } = await openTestStore(t, "sqlite", { clock: { ...clock, after } });
  const read = (): Promise<unknown> =>
    store.snapshot((reader) => {
      const rows = reader.all(slow);
      expire();
      return rows;
    });
  return { store, clock, read };
}

test("a snapshot whose time is over is answered at once, though its statement still runs", async (t) => {
  const { store, read } = await openHurried(t);
  const order: string[] = [];
  let behind: Promise<unknown> | undefined;

  await assert.rejects(read(), { code: "timeout" }).then(() => {
    order.push("timeout");
    // It is in line behind the slow statement, so it is answered when that is done.
    behind = store.readHeavy(sql`select 1`).then(() => order.push("done"));
  });
  await behind;

  assert.deepEqual(order, ["timeout", "done"]);
});

test("a book is closed while a statement whose snapshot is over still runs", async (t) => {
  const { store, clock, read } = await openHurried(t);
  await assert.rejects(read(), { code: "timeout" });

  const closing = store.close();
  await clock.advance(1000);

  await closing;
});

test("a snapshot that ends leaves the thread to what others read", async (t) => {
  const clock = manualClock();
  const { store } = await openTestStore(t, "sqlite", { clock });
  let others: Promise<unknown> | undefined;

  await store.snapshot(async () => void (others = store.readHeavy(slow)));
  await clock.advance(1000);

  assert.deepEqual(await others, [{ n: 2_000_000 }]);
});

test("in memory, who reads, who commits and who reads next do not wait for each other", async (t) => {
  let commits = (): void => undefined;
  const { store } = await openTestStore(t, "sqlite", {
    ...{ url: ":memory:", clock: manualClock() },
    fault: (moment, text) => void (moment === "before" && text === "commit" && commits()),
  });
  const heavy = (): Promise<unknown> => store.readHeavy(sql`select 2 as n from sqlite_schema limit 1`);
  await heavy(); // it knows the schema from now on
  let others: Promise<unknown> | undefined;

  const one = await store.snapshot(async (reader) => {
    const committing = new Promise<void>((resolve) => (commits = resolve));
    const writing = store.write(async (tx) => void (await tx.run(sql`create table note (id text)`)));
    await committing;
    // The writer waits for this snapshot, and the next reader for the writer, on the thread that is to read here.
    others = Promise.all([writing, heavy()]);
    return reader.all(sql`select 1 as n`);
  });

  assert.deepEqual([one, await others], [[{ n: 1 }], [undefined, [{ n: 2 }]]]);
  // Who found it busy has left no lock behind.
  await store.write((tx) => tx.run(sql`insert into note values ('a')`));
});

test("a slow read does not stop the loop, nor writes and point reads", async (t) => {
  const { store } = await openTestStore(t, "sqlite");
  let done = false;
  const reading = store.readHeavy(slow).then(() => (done = true));
  let rounds = 0;

  while (!done) {
    await store.read(sql`select 1`);
    await store.write((tx) => tx.get(sql`select 1`));
    rounds++;
  }
  await reading;

  assert.ok(rounds > 10, `${rounds} rounds`);
});

test("a long read has a thread of its own, beside the one for heavy reads", async (t) => {
  const { store } = await openTestStore(t, "sqlite");
  const order: string[] = [];
  await store.readHeavy(sql`select 1`);

  await Promise.all([
    store.readLong(slow).then(() => order.push("long")),
    store.readHeavy(sql`select 1`).then(() => order.push("heavy")),
  ]);

  assert.deepEqual(order, ["heavy", "long"]);
});

test("a reader thread that has closed refuses, and does not start again", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const thread = createReaderThread({ location: url, writable: false });
  await thread.all({ text: "select 1", params: [] });

  await thread.close();

  await assert.rejects(thread.all({ text: "select 1", params: [] }), { code: "closed" });
  await thread.close();
});

test("a statement is prepared once, and the oldest is forgotten when there are too many", async (t) => {
  const connection = openConnection(":memory:");
  cleanup(t, () => connection.close());
  const prepare = t.mock.method(connection.db, "prepare");
  const ask = (n: number): unknown => connection.get({ text: `select ${n} as n`, params: [] });

  for (let turn = 0; turn < 3; turn++) ask(0);
  assert.equal(prepare.mock.callCount(), 1);
  for (let n = 1; n <= limits.statementsCachedMax; n++) ask(n);
  const full = prepare.mock.callCount();
  ask(limits.statementsCachedMax);

  assert.equal(prepare.mock.callCount(), full);
  assert.deepEqual({ ...(ask(0) as object) }, { n: 0 });
  assert.equal(prepare.mock.callCount(), full + 1);
});

test("foreign keys are enforced by every connection", async (t) => {
  const { store } = await openTestStore(t, "sqlite");
  const question = sql`select foreign_keys from pragma_foreign_keys()`;

  assert.deepEqual(await store.read(question), [{ foreign_keys: 1 }]);
  assert.deepEqual(await store.readHeavy(question), [{ foreign_keys: 1 }]);
  assert.deepEqual({ ...(await store.write((tx) => tx.get<object>(question))) }, { foreign_keys: 1 });
});
