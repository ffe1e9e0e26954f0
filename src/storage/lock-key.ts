// PostgreSQL: the numbers of advisory locks. They are of the whole database, so each carries the book that it belongs to: two
// books in one database never wait for each other. Functions are named with their schema and given the very types that they
// take, so that no function of the same name in another schema fits better and is run instead.
import { rawSql, sql, type Sql } from "./sql.ts";
import type { Tx } from "./store.ts";

/** The number of the lock that stands for a name in this book, as SQL about the text `name`. */
export function lockKey(name: string): string {
  return `pg_catalog.hashtextextended(pg_catalog.current_schema()::text || ':'::text || (${name})::text, 0::bigint)`;
}

const [begin, end] = lockKey("?").split("?").map(rawSql) as [Sql, Sql];

/** The same of a name that is at hand. */
export function lockKeyOf(name: string): Sql {
  return sql`${begin}${name}${end}`;
}

/** Locks names until the transaction ends, so that nobody decides by what another is about to change. SQLite's only writer needs
 *  none. On PostgreSQL it is a statement of its own, because a statement's snapshot is older than its locks; the order keeps
 *  two from waiting for each other. */
export async function lockNames(tx: Tx, names: readonly string[]): Promise<void> {
  if (tx.dialect === "sqlite" || names.length === 0) return;
  const ordered = JSON.stringify([...new Set(names)].sort());
  await tx.all(sql`select pg_catalog.pg_advisory_xact_lock(${rawSql(lockKey("value"))})
    from jsonb_array_elements_text(${ordered}::jsonb) with ordinality order by ordinality`);
}

/** Locks those names that nobody else has locked, and returns the others. Whoever claims waits for no limit: it holds those of
 *  the jobs it has just settled, and two that wait for each other's would never end. */
export async function tryNames(tx: Tx, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (tx.dialect === "sqlite" || names.length === 0) return new Set();
  const wanted = JSON.stringify([...new Set(names)]);
  const busy = await tx.all<{ value: string }>(sql`select value from jsonb_array_elements_text(${wanted}::jsonb)
    where not pg_catalog.pg_try_advisory_xact_lock(${rawSql(lockKey("value"))})`);
  return new Set(busy.map((row) => row.value));
}
