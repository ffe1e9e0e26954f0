// A book in one SQLite file: a writer and a point reader on this thread, heavy reads in processes that can be ended.
import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { createIds, systemRandom } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import { latestNumber, newerBook, notMigrated, pendingMigrations, type Migration } from "../migrate.ts";
import { render, type Sql } from "../sql.ts";
import { closedRead, createReadTurns } from "../read-turns.ts";
import { readingNow, type Reading } from "../reading.ts";
import {
  createUnderWay,
  endedReader,
  neverDue,
  type EngineStore,
  type Reader,
  type Some,
  turnOf,
  type Stamp,
} from "../store.ts";
import type { EngineParts, StoreOptions } from "../open-store.ts";
import { hasLog, inspectBookFile, logBytes, unchanging, withItsLog, type BookFile } from "./book-file.ts";
import { checkSqliteVersion, keptWrongly, openConnection, type Connection, type Durability } from "./connection.ts";
import { migrateSqlite } from "./migrate-sqlite.ts";
import { moveIn, placeOf, readPlace, realPathOf, refuseInUse, usedElsewhere } from "./place.ts";
import { createReader, mayStartProcesses, type SqliteReader } from "./reader.ts";
import { createReaders } from "./readers.ts";
import { isBusy, isDenied } from "./sqlite-error.ts";
import { createWalBound } from "./wal-bound.ts";
import { createWaker, patiently } from "./share.ts";
import { createWriteQueue } from "./write-queue.ts";

export async function openSqlite(
  path: string,
  migrations: readonly Migration[],
  options: EngineParts,
): Promise<EngineStore> {
  checkSqliteVersion(process.versions.sqlite ?? "0");
  const inMemory = path === ":memory:";
  const file = inMemory ? memoryLocation() : realPathOf(path);
  const { writer, location } =
    options.readOnly === true && !inMemory
      ? await openToLook(file, migrations, options)
      : { writer: await openWriter(file, migrations, { ...options, inMemory }), location: file };
  let point: Connection;
  try {
    point = await patiently(options, () => openConnection(location, { readOnly: true }));
  } catch (error) {
    writer.close();
    throw error;
  }

  const readers = createReaders({ location, writable: false }, inMemory || !mayStartProcesses() ? "thread" : "process");
  const turns = createReadTurns({ atOnce: limits.readsMax, perTenant: limits.readsPerTenant });
  const snapshots = createReadTurns({ atOnce: limits.snapshotsMax, perTenant: limits.snapshotsPerTenant });
  let longReads = 0;
  const walBytes = (): number => (inMemory ? 0 : logBytes(file));
  const wal = createWalBound(walBytes, [turns, snapshots], () => longReads === 0);
  const underWay = createUnderWay();
  const waker = createWaker(writer, options.waitClock, { alone: inMemory });
  let stamp: Stamp = neverDue;
  const queue = createWriteQueue({
    ...options,
    connection: writer,
    stamp: () => stamp,
    woken: (channels) => waker.tell(channels),
  });
  let closing: Promise<void> | undefined;

  async function read<R>(statement: Sql): Promise<R[]> {
    const query = render(statement, "sqlite");
    // Only an in-memory book is ever busy here: its writer holds readers off while its transaction is open.
    return patiently(options, () => {
      refuseClosed();
      return point.all(query) as R[];
    });
  }
  async function readSome<R>(
    statement: Sql,
    bytesMax: number | undefined,
    who: Partial<Reading> = {},
  ): Promise<Some<R>> {
    const query = render(statement, "sqlite");
    const reading = readingNow(who);
    await wal.pass();
    return turns.run(reading, async (signal, has) => {
      wal.watch();
      const answer = await readers.ask(reading.tenant, signal, (reader) => {
        has(reader);
        return reader.all(query, bytesMax);
      });
      return answer as Some<R>;
    });
  }
  async function readsLong<T>(run: (reader: Reader) => Promise<T>): Promise<T> {
    const own = createReader({ location, writable: true });
    longReads++;
    try {
      const all = async <R>(statement: Sql): Promise<R[]> => (await own.all(render(statement, "sqlite"))).rows as R[];
      return await run({
        dialect: "sqlite",
        all,
        page: async (statement) => ({ rows: await all(statement), more: false }),
      });
    } finally {
      longReads--;
      await own.close();
    }
  }
  function refuseClosed(): void {
    if (closing !== undefined) throw closedRead();
  }

  return {
    dialect: "sqlite",
    location: inMemory ? ":memory:" : file,
    threadLocation: location,
    write: (unit, how = {}) =>
      queue.add(unit, { tenant: how.tenant ?? "default", turn: turnOf(how), careful: how.by === "user" }),
    begunEnded: () => queue.begunEnded(),
    read,
    readHeavy: async <R>(statement: Sql, who?: Partial<Reading>) => (await readSome<R>(statement, undefined, who)).rows,
    readPage: (statement, who) => readSome(statement, limits.pageBytesMax, who),
    async readsLong(run) {
      refuseClosed();
      return underWay.track(readsLong(run));
    },
    async snapshot(run, who) {
      const reading = readingNow(who);
      await wal.pass();
      return snapshots.run(reading, async (signal, has) => {
        wal.watch();
        return readers.use(reading.tenant, signal, (reader) => {
          has(reader);
          return readSnapshot(reader, run);
        });
      });
    },
    onWake: (hear) => waker.listen(hear),
    beforeCommit: (run) => void (stamp = run),
    amiss: () => (inMemory || options.readOnly === true ? [] : keptWrongly(writer, options.durability)),
    unref: () => undefined,
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
        // The last connection moves the log into the file when it may write. A store that only looked leaves a log that others have begun since.
        if (options.readOnly === true && hasLog(file)) writer.close();
        point.close();
        writer.close();
      })()),
  };
}

type Opened = {
  readonly writer: Connection;
  /** What its readers open. */
  readonly location: string;
};

/** Opens the file for looking, which changes nothing, whether it may be written or not. A log is read as it is and never moved into
 *  the file: it may be all that a killed process has left. A file without one is opened as usual, because only that also sees what others write
 *  from now on; where nothing can be made beside it, it is looked at as one that does not change. */
async function openToLook(file: string, migrations: readonly Migration[], options: StoreOptions): Promise<Opened> {
  await settleIn(file, migrations, options);
  if (!hasLog(file) && mayWrite(file)) {
    try {
      return { writer: await patiently(options, () => openConnection(file)), location: file };
    } catch (error) {
      if (!isDenied(error)) throw error;
    }
  }
  const location = hasLog(file) ? withItsLog(file) : unchanging(file);
  try {
    return { writer: await patiently(options, () => openConnection(location, { readOnly: true })), location };
  } catch (error) {
    // Its last user may have closed the book since we looked, and the log is gone.
    if (isDenied(error) && !hasLog(file) && location !== unchanging(file)) return openToLook(file, migrations, options);
    throw error;
  }
}

/** The connection that writes. From here on the file is in use, so no other process can begin to use it under another name. */
async function openWriter(
  location: string,
  migrations: readonly Migration[],
  options: StoreOptions & { readonly inMemory: boolean },
): Promise<Connection> {
  const { clock, waitClock, random, durability, fault, inMemory } = options;
  for (;;) {
    if (!inMemory) await settleIn(location, migrations, options);
    const connection = await patiently(options, () => openConnection(location, { durability, fault }));
    try {
      if (!inMemory) await patiently(options, () => useWal(connection, location, durability));
      // Another process may have moved in elsewhere since we looked. Now that the file is open, none can.
      if (inMemory || readPlace(connection) === placeOf(location)) {
        const apply = options.migrate !== false;
        await migrateSqlite({ connection, clock, waitClock, random }, migrations, { apply });
        return connection;
      }
    } catch (error) {
      connection.close();
      throw error;
    }
    connection.close();
  }
}

/** Sees to it that the file may be opened, and that no other process has it open under another name. */
async function settleIn(location: string, migrations: readonly Migration[], options: StoreOptions): Promise<void> {
  let comesFrom: string | null = null;
  try {
    await patiently(options, () => {
      const { place } = refuseUnfit(location, migrations, options);
      const here = placeOf(location);
      comesFrom = place === here ? null : place;
      if (place === here) return;
      if (options.readOnly !== true) moveIn(location, here);
      else if (place !== null && !hasLog(location)) refuseInUse(location);
    });
  } catch (error) {
    throw comesFrom !== null && isBusy(error) ? usedElsewhere(location, error) : error;
  }
}

// Before anything is opened for writing: a book that is refused must not change, not even its journal mode.
function refuseUnfit(location: string, migrations: readonly Migration[], { migrate }: StoreOptions): BookFile {
  const found = inspectBookFile(location);
  const { kind, version, applied } = found;
  const latest = latestNumber(migrations);
  if (kind === "new" && migrate === false) {
    throw new DaybookError("not_found", `there is no book at ${location}: "daybook migrate" makes one`);
  }
  if (version > latest) throw newerBook(version, latest);
  if (pendingMigrations(migrations, applied, "sqlite").length > 0 && migrate === false) {
    throw notMigrated(version, latest);
  }
  return found;
}

/** Whether this process may write the file and make others beside it. One that is not there is another's to refuse. */
function mayWrite(location: string): boolean {
  if (!existsSync(location)) return true;
  try {
    for (const path of [location, dirname(location)]) accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

// Of no seed and no clock of the user's: two books of one name would be one book, and tests seed them alike.
const memoryName = createIds(systemClock, systemRandom);

function memoryLocation(): string {
  return `file:/daybook-${memoryName()}?vfs=memdb`;
}

// Readers and the writer do not block each other in WAL mode. It is written in the file, so this is a no-op later.
function useWal(writer: Connection, location: string, durability: Durability | undefined): void {
  writer.get({ text: "pragma journal_mode = wal", params: [] });
  const wrong = keptWrongly(writer, durability);
  if (wrong.length === 0) return;
  throw new DaybookError(
    "incompatible",
    `${location} cannot keep what is acknowledged (${wrong.join("; ")}): put the book on a disk of this machine`,
  );
}

/** Several reads of one moment, on a reader that nothing else uses meanwhile. */
async function readSnapshot<T>(reader: SqliteReader, read: (reader: Reader) => Promise<T>): Promise<T> {
  let open = true;
  await reader.begin();
  try {
    const some = async <R>(statement: Sql, bytesMax?: number): Promise<Some<R>> => {
      if (!open) throw endedReader();
      return (await reader.all(render(statement, "sqlite"), bytesMax)) as Some<R>;
    };
    return await read({
      dialect: "sqlite",
      all: async <R>(statement: Sql) => (await some<R>(statement)).rows,
      page: (statement) => some(statement, limits.pageBytesMax),
    });
  } finally {
    open = false;
    if (reader.alive) await reader.end().catch(() => void reader.kill());
  }
}
