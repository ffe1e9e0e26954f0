// A book in one SQLite file: a writer and a point reader on this thread, heavy reads on another.
import { statSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { createIds } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import { jitter, systemRandom } from "../../core/random.ts";
import { createSteadyTime } from "../../core/steady-time.ts";
import { latestNumber, newerBook, notMigrated, type Migration } from "../migrate.ts";
import { render, type Sql } from "../sql.ts";
import { neverDue, type Reader, type Stamp, type Store } from "../store.ts";
import { createUnderWay } from "../under-way.ts";
import type { StoreOptions } from "../open-store.ts";
import { inspectBookFile } from "./book-file.ts";
import { checkSqliteVersion, openConnection, type Connection } from "./connection.ts";
import { migrateSqlite } from "./migrate-sqlite.ts";
import { createReaderThread } from "./reader.ts";
import { createSnapshots } from "./snapshot.ts";
import { isBusy } from "./sqlite-error.ts";
import { createWaker } from "./waker.ts";
import { createWriteQueue } from "./write-queue.ts";

export async function openSqlite(
  path: string,
  migrations: readonly Migration[],
  options: StoreOptions,
): Promise<Store> {
  const { clock, waitClock, ids, random } = options;
  checkSqliteVersion(process.versions.sqlite ?? "0");
  const inMemory = path === ":memory:";
  const location = inMemory ? memoryLocation() : resolvePath(path);
  if (!inMemory) await patiently(options, () => refuseUnfit(location, migrations, options));
  const { durability = "full", fault } = options;
  const writer = await patiently(options, () => openConnection(location, { durability, fault }));
  let point: Connection;
  try {
    if (!inMemory) await patiently(options, () => useWal(writer));
    await migrateSqlite({ connection: writer, clock, waitClock, random }, migrations, {
      apply: options.migrate !== false,
    });
    point = await patiently(options, () => openConnection(location, { readOnly: true }));
  } catch (error) {
    writer.close();
    throw error;
  }

  const heavy = createReaderThread({ location, writable: false });
  const snapshots = createSnapshots(
    heavy,
    { clock, waitClock },
    () => !inMemory && fileBytes(`${location}-wal`) > limits.walBytesMax,
  );
  const underWay = createUnderWay();
  const waker = createWaker(writer, waitClock, { alone: inMemory });
  let stamp: Stamp = neverDue;
  const time = createSteadyTime(clock);
  const queue = createWriteQueue({
    connection: writer,
    clock,
    waitClock,
    ids,
    random,
    nextNow: () => time.now(),
    stamp: () => stamp,
    woken: (channels) => waker.tell(channels),
  });
  let closing: Promise<void> | undefined;

  async function read<R>(statement: Sql): Promise<R[]> {
    const query = render(statement, "sqlite");
    // Only an in-memory book is ever busy here: its writer holds readers off while its transaction is open.
    return patiently(options, () => {
      refuseClosed();
      return point.all(query).map((row) => ({ ...(row as object) })) as R[];
    });
  }
  async function readsLong<T>(run: (reader: Reader) => Promise<T>): Promise<T> {
    const own = createReaderThread({ location, writable: true });
    try {
      return await run({
        dialect: "sqlite",
        all: async <R>(statement: Sql) => (await own.all(render(statement, "sqlite"))) as R[],
      });
    } finally {
      await own.close();
    }
  }
  function refuseClosed(): void {
    if (closing !== undefined) throw new DaybookError("closed", "the book is closed: open it again to read");
  }

  return {
    dialect: "sqlite",
    location: inMemory ? ":memory:" : location,
    threadLocation: location,
    clock,
    waitClock,
    time,
    ids,
    random,
    write: (unit, how = {}) => queue.add(unit, { tenant: how.tenant ?? "default", careful: how.by === "user" }),
    read,
    async readHeavy<R>(statement: Sql) {
      refuseClosed();
      return underWay.track(heavy.all(render(statement, "sqlite"))) as Promise<R[]>;
    },
    async readLong<R>(statement: Sql) {
      refuseClosed();
      return underWay.track(readsLong((reader) => reader.all<R>(statement)));
    },
    async readsLong(run) {
      refuseClosed();
      return underWay.track(readsLong(run));
    },
    async snapshot(run) {
      refuseClosed();
      return underWay.track(snapshots.run(run));
    },
    onWake: (hear) => waker.listen(hear),
    beforeCommit: (run) => void (stamp = run),
    abandon() {
      if (writer.inTransaction) writer.exec("rollback");
    },
    close: () =>
      (closing ??= (async () => {
        await Promise.all([queue.drain(), underWay.settled()]);
        waker.close();
        await heavy.close();
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

// Of no seed and no clock of the user's: two books of one name would be one book, and tests seed them alike.
const memoryName = createIds(systemClock, systemRandom);

function memoryLocation(): string {
  return `file:/daybook-${memoryName()}?vfs=memdb`;
}

function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

// Readers and the writer do not block each other in WAL mode. It is written in the file, so this is a no-op later.
function useWal(writer: Connection): void {
  writer.get({ text: "pragma journal_mode = wal", params: [] });
}

// Who begins or ends using a file while nobody else does holds it for a moment, and whoever comes just then finds it busy.
async function patiently<T>({ waitClock: clock, random }: StoreOptions, run: () => T): Promise<T> {
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
