// A book in one SQLite file: a writer and a point reader on this thread, heavy reads on another.
import { statSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { jitter } from "../../core/random.ts";
import { latestNumber, newerBook, notMigrated, type Migration } from "../migrate.ts";
import { render, type Sql } from "../sql.ts";
import { closedRead, createReadTurns } from "../read-turns.ts";
import { readingNow, type Reading } from "../reading.ts";
import { neverDue, type Reader, type Some, type Stamp, type Store } from "../store.ts";
import { createUnderWay } from "../under-way.ts";
import type { StoreOptions } from "../open-store.ts";
import { inspectBookFile } from "./book-file.ts";
import { checkSqliteVersion, openConnection, type Connection } from "./connection.ts";
import { migrateSqlite } from "./migrate-sqlite.ts";
import { createReader } from "./reader.ts";
import { createReaders } from "./readers.ts";
import { readSnapshot } from "./snapshot.ts";
import { isBusy } from "./sqlite-error.ts";
import { createWalBound } from "./wal-bound.ts";
import { createWaker } from "./waker.ts";
import { createWriteQueue } from "./write-queue.ts";

export async function openSqlite(
  path: string,
  migrations: readonly Migration[],
  options: StoreOptions,
): Promise<Store> {
  const { clock, ids, random } = options;
  checkSqliteVersion(process.versions.sqlite ?? "0");
  const inMemory = path === ":memory:";
  const location = inMemory ? `file:/daybook-${ids()}?vfs=memdb` : resolvePath(path);
  if (!inMemory) await patiently(options, () => refuseUnfit(location, migrations, options));
  const { durability = "full", fault } = options;
  const writer = await patiently(options, () => openConnection(location, { durability, fault }));
  let point: Connection;
  try {
    if (!inMemory) await patiently(options, () => useWal(writer));
    await migrateSqlite({ connection: writer, clock, random }, migrations, { apply: options.migrate !== false });
    point = await patiently(options, () => openConnection(location, { readOnly: true }));
  } catch (error) {
    writer.close();
    throw error;
  }

  const readers = createReaders({ location, writable: false }, inMemory ? "thread" : "process");
  const turns = createReadTurns({ atOnce: limits.readsMax, perTenant: limits.readsPerTenant });
  const snapshots = createReadTurns({ atOnce: limits.snapshotsMax, perTenant: limits.snapshotsPerTenant });
  const wal = createWalBound(() => !inMemory && fileBytes(`${location}-wal`) > limits.walBytesMax, [turns, snapshots]);
  const underWay = createUnderWay();
  const waker = createWaker(writer, clock, { alone: inMemory });
  let stamp: Stamp = neverDue;
  let lastNow = 0;
  const queue = createWriteQueue({
    connection: writer,
    clock,
    ids,
    random,
    nextNow: () => (lastNow = Math.max(lastNow, clock.now())),
    stamp: () => stamp,
    woken: (channels) => waker.tell(channels),
  });
  let closing: Promise<void> | undefined;

  async function read<R>(statement: Sql): Promise<R[]> {
    const query = render(statement, "sqlite");
    // Only an in-memory book is ever busy here: its writer holds readers off while its transaction is open, in real time.
    return patiently({ clock: systemClock, random }, () => {
      refuseClosed();
      return point.all(query).map((row) => ({ ...(row as object) })) as R[];
    });
  }
  async function readSome<R>(
    statement: Sql,
    bytesMax: number | undefined,
    who: Partial<Reading> = {},
  ): Promise<Some<R>> {
    const query = render(statement, "sqlite");
    const reading = readingNow(who);
    return turns.run(reading, async (signal) => {
      await wal.pass();
      wal.watch();
      return (await readers.ask(reading.tenant, signal, query, bytesMax)) as Some<R>;
    });
  }
  async function readsLong<T>(run: (reader: Reader) => Promise<T>): Promise<T> {
    const own = createReader({ location, writable: true });
    try {
      const all = async <R>(statement: Sql): Promise<R[]> => (await own.all(render(statement, "sqlite"))).rows as R[];
      return await run({
        dialect: "sqlite",
        all,
        page: async (statement) => ({ rows: await all(statement), more: false }),
      });
    } finally {
      await own.close();
    }
  }
  function refuseClosed(): void {
    if (closing !== undefined) throw closedRead();
  }

  return {
    dialect: "sqlite",
    location: inMemory ? ":memory:" : location,
    threadLocation: location,
    clock,
    ids,
    random,
    write: (unit, how = {}) => queue.add(unit, { tenant: how.tenant ?? "default", careful: how.by === "user" }),
    read,
    readHeavy: async <R>(statement: Sql, who?: Partial<Reading>) => (await readSome<R>(statement, undefined, who)).rows,
    readPage: (statement, who) => readSome(statement, limits.pageBytesMax, who),
    async readLong<R>(statement: Sql) {
      refuseClosed();
      return underWay.track(readsLong((reader) => reader.all<R>(statement)));
    },
    async readsLong(run) {
      refuseClosed();
      return underWay.track(readsLong(run));
    },
    async snapshot(run, who) {
      const reading = readingNow(who);
      return snapshots.run(reading, async (signal) => {
        await wal.pass();
        wal.watch();
        return readers.use(reading.tenant, signal, (reader) => readSnapshot(reader, run));
      });
    },
    onWake: (hear) => waker.listen(hear),
    beforeCommit: (run) => void (stamp = run),
    abandon() {
      if (writer.inTransaction) writer.exec("rollback");
    },
    close: () =>
      (closing ??= (async () => {
        turns.close();
        snapshots.close();
        await Promise.all([queue.drain(), underWay.settled()]);
        waker.close();
        await readers.close();
        point.close();
        writer.close();
      })()),
  };
}

// Before anything is opened for writing: a book that is refused must not change, not even its journal mode.
function refuseUnfit(location: string, migrations: readonly Migration[], { migrate }: StoreOptions): void {
  const { kind, version } = inspectBookFile(location);
  const latest = latestNumber(migrations);
  if (kind === "new" && migrate === false) {
    throw new DaybookError("not_found", `there is no book at ${location}: "daybook migrate" makes one`);
  }
  if (version > latest) throw newerBook(version, latest);
  if (version < latest && migrate === false) throw notMigrated(version, latest);
}

function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

// Readers and the writer do not block each other in WAL mode. It is written in the file, so this is a no-op later.
function useWal(writer: Connection): void {
  writer.get({ text: "pragma journal_mode = wal", params: [] });
}

// Who begins or ends using a file while nobody else does holds it for a moment, and whoever comes just then finds it busy.
async function patiently<T>({ clock, random }: Pick<StoreOptions, "clock" | "random">, run: () => T): Promise<T> {
  const until = clock.monotonic() + limits.busyMsMax;
  for (;;) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= until) throw error;
      await clock.sleep(jitter(random, 2));
    }
  }
}
