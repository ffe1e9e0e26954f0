// What can be said about a book as a whole.
import { statSync } from "node:fs";
import { sql, type Dialect } from "./sql.ts";
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
  const applied = await store.readHeavy<{ number: number; name: string; applied_at: number }>(
    sql`select number, name, applied_at from daybook_migration order by number`,
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
    schemaVersion: applied.at(-1)?.number ?? 0,
    bytes: size?.bytes ?? 0,
    walBytes: walBytes(store),
    migrations: applied.map((row) => ({ number: row.number, name: row.name, appliedAt: row.applied_at })),
  };
}

function walBytes({ dialect, location }: Store): number {
  if (dialect === "postgres" || location === ":memory:") return 0;
  return statSync(`${location}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
