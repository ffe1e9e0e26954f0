// SQLite keeps the text of every statement that made something, so a dump is those texts in a stable order: each table
// with its indexes and triggers, by name, and the views at the end, because they may look at any table.
import { rawSql } from "../src/storage/sql.ts";
import type { Store } from "../src/storage/store.ts";

type Entry = { type: "table" | "index" | "trigger" | "view"; sql: string };

export async function dumpSqlite(store: Store): Promise<string[]> {
  // What has no text was made by SQLite itself, for a primary key or a unique constraint.
  const entries = await store.read<Entry>(
    rawSql(`select type, sql from sqlite_schema
      where sql is not null and name not like 'sqlite\\_%' escape '\\'
      order by type = 'view', tbl_name, case type when 'table' then 1 when 'index' then 2 else 3 end, name`),
  );
  return [...(await marks(store)), ...entries.map(({ sql }) => dedent(sql))];
}

/** The two numbers in the file's header by which a book is told from another database, and from a newer book. */
async function marks(store: Store): Promise<string[]> {
  const [row] = await store.read<{ application_id: number; user_version: number }>(
    rawSql("select application_id, user_version from pragma_application_id(), pragma_user_version()"),
  );
  return [`pragma application_id = ${row?.application_id}`, `pragma user_version = ${row?.user_version}`];
}

/** A text as it was written in a template, without the indentation of the code around it. */
function dedent(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  const depth = Math.min(...rest.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)));
  return [first, ...rest.map((line) => line.slice(depth))].map((line) => line.trimEnd()).join("\n");
}
