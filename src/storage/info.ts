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
  const [about] = await store.readHeavy<{ engine: string }>(
    store.dialect === "sqlite"
      ? sql`select sqlite_version() as engine`
      : sql`select current_setting('server_version') as engine`,
  );
  return {
    location: store.location,
    dialect: store.dialect,
    engine: about?.engine ?? "",
    schema: store.schema ?? null,
    schemaVersion: migrations.at(-1)?.number ?? 0,
    ...(await readSize(store)),
    migrations,
  };
}

export type BookSize = Pick<BookInfo, "bytes" | "walBytes">;

export async function readSize(store: Store): Promise<BookSize> {
  const [size] = await store.readHeavy<{ bytes: number }>(
    store.dialect === "sqlite"
      ? sql`select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()`
      : // PostgreSQL has no file of its own for a schema; the sum of its tables and indexes is the honest figure.
        sql`select cast(coalesce(sum(pg_total_relation_size(oid)), 0) as bigint) as bytes from pg_class
          where relkind in ('r', 'm') and relnamespace = (select oid from pg_namespace where nspname = ${store.schema ?? "daybook"})`,
  );
  const isFile = store.dialect === "sqlite" && store.location !== ":memory:";
  return { bytes: size?.bytes ?? 0, walBytes: isFile ? logBytes(store.location) : 0 };
}
