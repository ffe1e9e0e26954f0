// What can be said about a book as a whole.
import { sql, type Dialect } from "./sql.ts";
import { logBytes } from "./sqlite/book-file.ts";
import type { Store } from "./store.ts";

export type BookInfo = {
  readonly location: string;
  readonly dialect: Dialect;
  /** The engine's own version. */
  readonly engine: string;
  readonly schema: string | null;
  readonly schemaVersion: number;
  readonly bytes: number;
  readonly walBytes: number;
  readonly migrations: readonly { readonly number: number; readonly name: string; readonly appliedAt: number }[];
};

export async function readInfo(store: Store): Promise<BookInfo> {
  const migrations = await store.readHeavy<BookInfo["migrations"][number]>(
    sql`select number, name, applied_at as "appliedAt" from daybook_migration order by number`,
  );
  const [size] = await store.readHeavy<{ engine: string; bytes: number }>(
    store.dialect === "sqlite"
      ? sql`select sqlite_version() as engine, page_count * page_size as bytes
          from pragma_page_count(), pragma_page_size()`
      : // PostgreSQL has no file of its own for a schema; the sum of its tables and indexes is the honest figure.
        sql`select current_setting('server_version') as engine, cast(coalesce(sum(pg_total_relation_size(oid)), 0)
          as bigint) as bytes from pg_class where relkind in ('r', 'm')
          and relnamespace = (select oid from pg_namespace where nspname = ${store.schema ?? "daybook"})`,
  );
  return {
    location: store.location,
    dialect: store.dialect,
    engine: size?.engine ?? "",
    schema: store.schema ?? null,
    schemaVersion: migrations.at(-1)?.number ?? 0,
    bytes: size?.bytes ?? 0,
    walBytes: store.dialect === "postgres" || store.location === ":memory:" ? 0 : logBytes(store.location),
    migrations,
  };
}
