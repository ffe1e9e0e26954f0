// A book in one SQLite file: a writer and a point reader on this thread, heavy reads on another.
import { resolve as resolvePath } from "node:path";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { jitter } from "../../core/random.ts";
import type { Migration } from "../migrate.ts";
import { render, type Sql } from "../sql.ts";
import { neverDue, type Stamp, type Store } from "../store.ts";
import type { StoreOptions } from "../open-store.ts";
import { checkBookFile } from "./book-file.ts";
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
  const { clock, ids, random } = options;
  checkSqliteVersion(process.versions.sqlite ?? "0");
  const inMemory = path === ":memory:";
  const location = inMemory ? `file:/daybook-${ids()}?vfs=memdb` : resolvePath(path);
  if (!inMemory && checkBookFile(location) === "new" && options.migrate === false) {
    throw new DaybookError("not_found", `there is no book at ${location}: "daybook migrate" makes one`);
  }
  const writer = openConnection(location, { durability: options.durability ?? "full", fault: options.fault });
  let point: Connection;
  try {
    if (!inMemory) await useWal(writer, options);
    await migrateSqlite({ connection: writer, clock, random }, migrations, { apply: options.migrate !== false });
    point = openConnection(location, { readOnly: true });
  } catch (error) {
    writer.close();
    throw error;
  }

  const heavy = createReaderThread({ location, writable: false });
  const snapshots = createSnapshots(heavy, clock);
  const waker = createWaker(writer, clock);
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
    const until = clock.monotonic() + limits.busyMsMax;
    for (;;) {
      refuseClosed();
      try {
        return point.all(query).map((row) => ({ ...(row as object) })) as R[];
      } catch (error) {
        // Only an in-memory book is ever busy here: its writer holds readers off while its transaction is open.
        if (!isBusy(error) || clock.monotonic() >= until) throw error;
        await clock.sleep(jitter(random, 2));
      }
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
    ids,
    random,
    write: (unit, how = {}) => queue.add(unit, { tenant: how.tenant ?? "default", careful: how.by === "user" }),
    read,
    async readHeavy<R>(statement: Sql) {
      refuseClosed();
      return (await heavy.all(render(statement, "sqlite"))) as R[];
    },
    async readLong<R>(statement: Sql) {
      refuseClosed();
      const own = createReaderThread({ location, writable: true });
      try {
        return (await own.all(render(statement, "sqlite"))) as R[];
      } finally {
        await own.close();
      }
    },
    snapshot: (run) => {
      refuseClosed();
      return snapshots.run(run);
    },
    onWake: (hear) => waker.listen(hear),
    beforeCommit: (run) => void (stamp = run),
    abandon() {
      if (writer.inTransaction) writer.exec("rollback");
    },
    close: () =>
      (closing ??= (async () => {
        await queue.drain();
        waker.close();
        await heavy.close();
        point.close();
        writer.close();
      })()),
  };
}

// Readers and the writer do not block each other in WAL mode. It is written in the file, so this is a no-op later.
async function useWal(writer: Connection, { clock, random }: StoreOptions): Promise<void> {
  const until = clock.monotonic() + limits.busyMsMax;
  for (;;) {
    try {
      writer.get({ text: "pragma journal_mode = wal", params: [] });
      return;
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= until) throw error;
      await clock.sleep(jitter(random, 2));
    }
  }
}
