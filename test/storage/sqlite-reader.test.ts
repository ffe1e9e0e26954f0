// The processes that read, and the connection under them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { getPriority } from "node:os";
import { test, type TestContext } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import { openConnection, type Connection } from "../../src/storage/sqlite/connection.ts";
import { createReader, type SqliteReader } from "../../src/storage/sqlite/reader.ts";
import { createReaders } from "../../src/storage/sqlite/readers.ts";
import { render, sql, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { until } from "../cli/until.ts";
import { cleanup, openTestStore } from "../support/open-test.ts";

// About half a second of work for SQLite.
const slow = sql`with recursive number (n) as (select 1 union all select n + 1 from number where n < 2000000)
  select max(n) as n from number`;

const quick = sql`select 1 as one`;

/** Reads a table for ever, so that the WAL cannot begin anew meanwhile. */
const endless = sql`with recursive n (i) as (select 1 union all select i from n)
  select count(*) as n from n join daybook_session on daybook_session.seq > n.i`;

/** Whether somebody reads what is in the WAL. */
function isHeld(connection: Connection): boolean {
  const done = connection.get({ text: "pragma wal_checkpoint(truncate)", params: [] }) as { busy: number };
  return done.busy === 1;
}

/** A second look at the file, with something in the WAL. */
async function watchFile(t: TestContext, store: Store): Promise<Connection> {
  const connection = openConnection(store.threadLocation);
  cleanup(t, () => connection.close());
  await store.write((tx) => tx.run(sql`create table note (id text)`));
  return connection;
}

test("a statement that is ended at its deadline holds the WAL no longer, and takes no other read along", async (t) => {
  const { store } = await openTestStore(t, "sqlite");
  const connection = await watchFile(t, store);
  const others = store.snapshot(async (reader) => {
    await reader.all(sql`select 1`);
    await assert.rejects(store.readHeavy(endless, { msMax: 500 }), { code: "timeout" });
    return reader.all(sql`select 2 as two`);
  });

  assert.deepEqual(await others, [{ two: 2 }]);
  await until(() => !isHeld(connection));
});

test("a statement under way holds the WAL until close() ends it, and then the files beside the book are gone", async (t) => {
  const { store, url } = await openTestStore(t, "sqlite");
  const connection = await watchFile(t, store);
  const refused = assert.rejects(store.readHeavy(endless, { msMax: 3_600_000 }), { code: "closed" });
  await until(async () => {
    await store.write((tx) => tx.run(sql`insert into note values ('more')`));
    return isHeld(connection);
  });

  connection.close();
  await store.close();

  await refused;
  assert.equal(existsSync(`${url}-wal`), false);
});

test("a reader whose program was killed ends, also in the middle of a statement", async (t) => {
  const { store, url } = await openTestStore(t, "sqlite");
  const connection = await watchFile(t, store);
  const program = `const { openStore } = await import(${JSON.stringify(import.meta.resolve("../../src/storage/open-store.ts"))});
    const { migrations } = await import(${JSON.stringify(import.meta.resolve("../../src/open/migrations.ts"))});
    const store = await openStore(${JSON.stringify(url)}, migrations);
    await store.readHeavy({ kind: "sql", strings: [${JSON.stringify(endless.strings[0])}], values: [] }, { msMax: 3600000 });`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "ignore" });
  await until(async () => {
    await store.write((tx) => tx.run(sql`insert into note values ('more')`));
    return isHeld(connection);
  });

  child.kill("SIGKILL");

  await until(() => !isHeld(connection));
});

test("a read that keeps the WAL above its bound is ended, and the WAL is cut back", async (t) => {
  const { store, url } = await openTestStore(t, "sqlite", { durability: "normal" });
  await store.write((tx) => tx.run(sql`create table note (body blob)`));
  const fill = (): Promise<number> =>
    store.write((tx) => tx.run(sql`insert into note values (${new Uint8Array(4_194_304)})`));
  const held = store.snapshot(
    async (reader) => {
      await reader.all(sql`select 1`);
      return new Promise<never>(() => undefined);
    },
    { verb: "book.read", msMax: 3_600_000 },
  );
  const refused = assert.rejects(held, { code: "busy", message: /^book\.read was ended, .* past 64 MB: try again/ });

  while (statSync(`${url}-wal`).size <= limits.walBytesMax) await fill();
  await refused;

  await until(async () => (await fill(), statSync(`${url}-wal`).size <= limits.walBytesMax));
});

test("in memory, who reads, who commits and who reads next do not wait for each other", async (t) => {
  let commits = (): void => undefined;
  const { store } = await openTestStore(t, "sqlite", {
    url: ":memory:",
    clock: manualClock(),
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

test("a long read has a thread of its own, beside the readers of heavy reads", async (t) => {
  const { store } = await openTestStore(t, "sqlite");
  const order: string[] = [];
  await store.readHeavy(sql`select 1`);

  await Promise.all([
    store.readLong(slow).then(() => order.push("long")),
    store.readHeavy(sql`select 1`).then(() => order.push("heavy")),
  ]);

  assert.deepEqual(order, ["heavy", "long"]);
});

test("a read whose reader was ended by somebody else is asked again of another", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const readers = createReaders({ location: url, writable: false }, "process");
  cleanup(t, () => readers.close());
  const { signal } = new AbortController();
  const used = await readers.use("a", signal, async (reader) => (await reader.all(render(slow, "sqlite")), reader));

  const asked = readers.ask("a", signal, (reader) => reader.all(render(slow, "sqlite")));
  await used.kill();

  assert.deepEqual((await asked).rows, [{ n: 2_000_000 }]);
});

test("who cost a reader its life waits for the next one itself, and others keep theirs", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const readers = createReaders({ location: url, writable: false }, "process");
  cleanup(t, () => readers.close());
  const { signal } = new AbortController();
  const readerOf = (tenant: string): Promise<SqliteReader> =>
    readers.use(tenant, signal, async (reader) => (await reader.all(render(sql`select 1`, "sqlite")), reader));
  const quiet = await readerOf("quiet");
  const ended = new AbortController();

  const noisy = readers.use("noisy", ended.signal, async (reader) => {
    ended.abort();
    return reader.all(render(slow, "sqlite"));
  });
  await assert.rejects(noisy);
  const kept = await readerOf("quiet");

  assert.equal(kept === quiet, false, "the idle one was taken by who came first, and ended");
  assert.equal((await readerOf("noisy")) === kept, false);
  assert.equal(await readerOf("other"), await readerOf("other"));
});

/** Readers of a book in a file, and which one serves a tenant's statement. */
async function servedBy(t: TestContext): Promise<(tenant: string, statement: Sql) => Promise<SqliteReader>> {
  const { url } = await openTestStore(t, "sqlite");
  const readers = createReaders({ location: url, writable: false }, "process");
  cleanup(t, () => readers.close());
  const { signal } = new AbortController();
  return (tenant, statement) =>
    readers.use(tenant, signal, async (reader) => (await reader.all(render(statement, "sqlite")), reader));
}

test("a slow reader keeps its low priority to its tenant, until that has asked for quick reads alone", async (t) => {
  const serve = await servedBy(t);
  const slowOne = await serve("noisy", slow);
  const quiet = await serve("quiet", quick);

  assert.equal(slowOne.yielded, true);
  assert.equal(quiet.yielded, false);
  for (let turn = 0; turn < limits.readsPatient; turn++) assert.equal(await serve("noisy", quick), slowOne);
  assert.equal(await serve("noisy", quick), quiet);
});

test("who cost a reader its life gets one that lets others come first", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const readers = createReaders({ location: url, writable: false }, "process");
  cleanup(t, () => readers.close());
  const [deadline, never] = [new AbortController(), new AbortController()];
  const late = readers.use("noisy", deadline.signal, async (reader) => {
    deadline.abort();
    return reader.all(render(quick, "sqlite"));
  });
  await assert.rejects(late);

  const yielded = await readers.use("noisy", never.signal, async (reader) => {
    await reader.all(render(quick, "sqlite"));
    return reader.yielded;
  });

  assert.equal(yielded, true);
});

test("after slow reads of many tenants, no more readers stay than may read at once", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const readers = createReaders({ location: url, writable: false }, "process");
  cleanup(t, () => readers.close());
  const { signal } = new AbortController();
  const readersMax = limits.readsMax + limits.snapshotsMax;
  const used: SqliteReader[] = [];

  for (let tenant = 0; tenant <= readersMax; tenant++) {
    await readers.use(`tenant ${tenant}`, signal, async (reader) => {
      used.push(reader);
      reader.yield();
    });
  }

  assert.deepEqual(
    used.map(({ alive }) => alive),
    [false, ...Array<boolean>(readersMax).fill(true)],
  );
});

test("a snapshot whose reader ends before its first answer gets another one", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const readers = createReaders({ location: url, writable: false }, "process");
  cleanup(t, () => readers.close());
  const { signal } = new AbortController();
  let turns = 0;

  const { rows } = await readers.use("a", signal, async (reader) => {
    const asked = reader.all(render(quick, "sqlite"));
    if (turns++ === 0) void reader.kill();
    return asked;
  });

  assert.deepEqual([rows, turns], [[{ one: 1 }], 2]);
});

if (process.platform === "linux") {
  // A low priority counts among the processes of a session where the system weighs sessions against each other.
  test("a reader is of its program's session, and a slow one has a lower priority there", async (t) => {
    const { store } = await openTestStore(t, "sqlite");
    const session = (pid: number | "self"): string | undefined =>
      readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[3];
    const children = (): number[] =>
      readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").trim().split(" ").map(Number);
    const others = children();

    await store.readHeavy(slow);

    const [reader = 0] = children().filter((pid) => !others.includes(pid));
    assert.equal(session(reader), session("self"));
    assert.ok(getPriority(reader) > getPriority(), "it comes after the program");
  });
}

test("a reader that cannot be started says so, and takes no priority from its program", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const [program, priority] = [process.execPath, getPriority()];
  cleanup(t, () => void (process.execPath = program));
  const reader = createReader({ location: url, writable: false }, "process");
  reader.yield();

  process.execPath = `${url}-no-program`;
  await assert.rejects(reader.all(render(quick, "sqlite")), { code: "unavailable" });

  assert.equal(getPriority(), priority);
});

test("a reader that has closed refuses, and does not start again", async (t) => {
  const { url } = await openTestStore(t, "sqlite");
  const reader = createReader({ location: url, writable: false });
  await reader.all({ text: "select 1", params: [] });

  await reader.close();

  await assert.rejects(reader.all({ text: "select 1", params: [] }), { code: "unavailable" });
  await reader.close();
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
