// An invariant of the book as a question to it: every row that `find` returns is a violation. Rooms list their own;
// doctor asks them all, off the event loop.
import { sql, type Dialect, type Sql } from "./sql.ts";
import type { Store, Tx } from "./store.ts";

export type Check = {
  /** The number of the promise it holds, as in docs/promises.md. */
  readonly promise: string;
  readonly name: string;
  /** `now` is for what is told by its time. */
  find(dialect: Dialect, now: number): Sql;
  /** For what no statement can tell, because it is of this process's own connection. */
  ask?(store: Store): readonly string[];
  /** What to do when it finds something. */
  readonly advice: string;
  /** Puts right what was found, where a rule says how (`daybook mend`). It is given the numbers that `find` names as `seq`, looks at
   *  them again, and says how many it has changed. */
  readonly mend?: (tx: Tx, seqs: readonly number[]) => Promise<number>;
};

const nothing = sql`select 1 as finding where 1 = 0`;
// By name: a cast to regnamespace would read the name as SQL does, in lower case and up to the first quote.
const currentNamespace = sql`(select oid from pg_namespace where nspname = current_schema())`;

export const storageChecks: readonly Check[] = [
  {
    promise: "D1",
    name: "the file is not damaged",
    find: (dialect) =>
      dialect === "sqlite"
        ? sql`select integrity_check as finding from pragma_integrity_check() where integrity_check <> 'ok'`
        : nothing,
    advice: "stop all processes, keep a copy of the file, and restore the newest backup",
  },
  {
    promise: "D1",
    name: "what is acknowledged is in the log and flushed, as the book was opened",
    find: () => nothing,
    ask: (store) => store.amiss?.() ?? [],
    advice: "open the book anew; on a network file system, move it to a disk of this machine",
  },
  {
    promise: "D1",
    name: "no foreign key points at nothing",
    find: (dialect) =>
      dialect === "sqlite"
        ? // A row of a clustered table has no number.
          sql`select "table" || coalesce(' row ' || rowid, '') || ' -> ' || parent as finding from pragma_foreign_key_check()`
        : nothing,
    advice: "restore the newest backup, and report it: daybook should have made this impossible",
  },
  {
    promise: "D1",
    name: "no constraint or index is invalid",
    find: (dialect) =>
      dialect === "sqlite"
        ? nothing
        : sql`select conname as finding from pg_constraint
            where connamespace = ${currentNamespace} and not convalidated
            union all select indexrelid::regclass::text from pg_index join pg_class on pg_class.oid = indexrelid
            where relnamespace = ${currentNamespace} and not indisvalid`,
    advice: "validate the constraint or rebuild the index (reindex)",
  },
];
