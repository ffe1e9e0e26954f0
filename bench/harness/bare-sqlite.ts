// What a careful person would write without Daybook: node:sqlite, prepared statements and the very same pragmas, so
// that a ratio shows the price of the queue, the groups and the promises, and nothing else.
import { DatabaseSync } from "node:sqlite";
import type { Durability } from "../../src/storage/sqlite/connection.ts";
import { inLoop, type Load } from "./load.ts";

export const noteTable = "create table note (id integer primary key, body text not null) strict";
export const noteBody = "a line of about forty bytes, like a note";

/** Brings a file to the state of a book that has been in use for a while: its WAL has its full size and is written over
 *  instead of growing, which alone makes each sync a third cheaper. Both sides begin there. */
export const settleWal: readonly string[] = [
  "create table filler (body blob) strict",
  "insert into filler values (zeroblob(45000000))",
  "drop table filler",
];

export function openBare(path: string, durability: Durability): DatabaseSync {
  const db = new DatabaseSync(path);
  db.exec(
    "pragma journal_mode = wal; pragma foreign_keys = on; pragma cache_size = -64000; pragma temp_store = memory",
  );
  db.exec(
    `pragma synchronous = ${durability}; pragma wal_autocheckpoint = 10000; pragma journal_size_limit = 67108864`,
  );
  return db;
}

/** Inserts notes in transactions of `size` rows. */
export function bareBatches(db: DatabaseSync, size: number): Load {
  const begin = db.prepare("begin immediate");
  const insert = db.prepare("insert into note (body) values (?)");
  const commit = db.prepare("commit");
  return inLoop(() => {
    begin.run();
    for (let row = 0; row < size; row++) insert.run(noteBody);
    commit.run();
    return size;
  });
}

/** Inserts notes without saying begin: SQLite makes each statement a transaction. */
export function bareAutocommit(db: DatabaseSync): Load {
  const insert = db.prepare("insert into note (body) values (?)");
  return inLoop(() => {
    insert.run(noteBody);
    return 1;
  });
}
