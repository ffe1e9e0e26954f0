// PostgreSQL: the numbers of advisory locks. They are of the whole database, so each carries the book that it belongs to: two
// books in one database never wait for each other. Functions are named with their schema and given the very types that they
// take, so that no function of the same name in another schema fits better and is run instead.
import { rawSql, sql, type Sql } from "./sql.ts";

/** The number of the lock that stands for a name in this book, as SQL about the text `name`. */
export function lockKey(name: string): string {
  return `pg_catalog.hashtextextended(pg_catalog.current_schema()::text || ':'::text || (${name})::text, 0::bigint)`;
}

const [begin, end] = lockKey("?").split("?").map(rawSql) as [Sql, Sql];

/** The same of a name that is at hand. */
export function lockKeyOf(name: string): Sql {
  return sql`${begin}${name}${end}`;
}
