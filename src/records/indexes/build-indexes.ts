// Builds the indexes that definitions declare and the book lacks. An index is about a path and serves every type with such a
// field. On SQLite a thread of its own builds it while writers wait; on PostgreSQL writers do not wait.
import { dirname } from "node:path";
import type { Keep } from "../../core/remember.ts";
import { openSideWriter } from "../../storage/thread.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import { bytesInUse, refuseFullDisk } from "../../storage/sqlite/book-file.ts";
import type { Store } from "../../storage/store.ts";
import type { AnyRecordType } from "../define/definition.ts";
import type { RecordRoom } from "../room.ts";
import { indexesOf, triggerSuffixes, type Built } from "./declared-index.ts";

/** The definitions whose indexes were built when this book was opened. */
function builtIn(keep: Keep): { definitions: ReadonlyMap<string, AnyRecordType> } {
  return keep("built indexes", () => ({ definitions: new Map() }));
}

/** The definition of this name whose indexes the book has. No statement may name an index of another. */
export function builtDefinition(keep: Keep, name: string): AnyRecordType | undefined {
  return builtIn(keep).definitions.get(name);
}

export async function buildIndexes({ store, definitions }: RecordRoom): Promise<void> {
  const declared = [...definitions.values()].flatMap((type) => indexesOf(store.dialect, type));
  const wanted = new Map(declared.map((index) => [index.name, index]));
  if (wanted.size > 0) await buildMissing(store, [...wanted.values()]);
  builtIn(store.keep).definitions = definitions;
}

async function buildMissing(store: Store, wanted: readonly Built[]): Promise<void> {
  const present = await presentIndexes(store);
  const missing = wanted.filter(({ name }) => !present.has(name));
  if (missing.length > 0 && store.dialect === "sqlite" && store.location !== ":memory:") {
    // An index takes less than a quarter of what it covers, and is in the WAL before it is in the file.
    refuseFullDisk(dirname(store.location), "an index", (await bytesInUse(store)) / 2);
  }
  for (const index of missing) await build(store, index);
  // Without statistics the planner does not prefer a new index to the ones it knows.
  const tables = missing.map(({ table }) => table).filter((table) => table !== "record_words");
  for (const table of new Set(tables)) await runApart(store, `analyze daybook_${table}`);
}

async function presentIndexes(store: Store): Promise<Set<string>> {
  const rows = await store.read<{ name: string }>(
    store.dialect === "sqlite"
      ? sql`select name from sqlite_schema where type = 'index' and tbl_name in ('daybook_record', 'daybook_record_version', 'daybook_record_item', 'daybook_record_type')`
      : sql`select relname as name from pg_class join pg_index on indexrelid = pg_class.oid
          where relnamespace = (select oid from pg_namespace where nspname = current_schema()) and indisvalid`,
  );
  return new Set(rows.map(({ name }) => name));
}

// When two processes open a book at the same time, both build the index; one of them fails and finds it there.
async function build(store: Store, { name, texts, others }: Built): Promise<void> {
  try {
    if (others !== undefined) await dropOldWords(store, name, others);
    for (const text of texts) await runApart(store, text);
  } catch (error) {
    if (!(await presentIndexes(store)).has(name)) throw error;
  }
}

/** Keeps the words of one other program, such as the one that this one is about to replace; each set costs every write of the type. */
async function dropOldWords(store: Store, name: string, others: string): Promise<void> {
  const begin = `daybook_${others}`;
  const found = await store.read<{
    name: string;
  }>(sql`select substr(name, ${"daybook_".length + 1}) as name from sqlite_schema
    where type = 'table' and substr(name, 1, ${begin.length}) = ${begin} and length(name) = ${`daybook_${name}`.length}
      and name <> ${`daybook_${name}`} order by rowid desc`);
  for (const old of found.slice(1)) {
    for (const suffix of triggerSuffixes) await runApart(store, `drop trigger if exists ${old.name}_${suffix}`);
    await runApart(store, `drop index if exists ${old.name}`);
    await runApart(store, `drop table if exists daybook_${old.name}`);
  }
}

// On SQLite in a thread; on PostgreSQL on a connection of its own and outside of transactions, as `concurrently` demands.
async function runApart(store: Store, text: string): Promise<void> {
  if (store.dialect === "sqlite") {
    await store.readLong(rawSql(text));
    return;
  }
  const writer = await openSideWriter({ dialect: "postgres", location: store.threadLocation, schema: store.schema });
  try {
    await writer.run(rawSql(text));
  } finally {
    await writer.close();
  }
}
