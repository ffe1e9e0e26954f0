// Brings a PostgreSQL schema to the newest version. An advisory lock makes processes that start together take turns.
import type { Client } from "pg";
import type { Clock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import {
  latestNumber,
  migrationHash,
  migrationTable,
  migrationTexts,
  notMigrated,
  pendingMigrations,
  type AppliedMigration,
  type Migration,
} from "../migrate.ts";
import { render } from "../sql.ts";
import { quoteName, redactUrl, type Server } from "./connect.ts";

/** Applies what is missing. */
export async function migratePostgres(
  client: Client,
  server: Server,
  migrations: readonly Migration[],
  options: { apply: boolean; clock: Clock },
): Promise<void> {
  for (;;) {
    const [next] = await pending(client, server, migrations);
    if (next === undefined) return;
    if (!options.apply && next.number === migrations[0]?.number) throw noBook(server);
    if (!options.apply) throw notMigrated(next.number - 1, latestNumber(migrations));
    await client.query("begin");
    try {
      // By the name of the schema, which may not be there yet.
      await client.query("select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0::bigint))", [
        `${server.schema}:migrate`,
      ]);
      // The process that held the lock before may have done it.
      const [still] = await pending(client, server, migrations);
      if (still?.number === next.number) await applyOne(client, server, next, options.clock.now());
      await client.query("commit");
    } catch (error) {
      await client.query("rollback").catch(() => undefined); // what failed first says more
      throw error;
    }
  }
}

async function pending(client: Client, server: Server, migrations: readonly Migration[]): Promise<Migration[]> {
  const { rows } = await client.query<{ name: string; ours: boolean }>(
    // Other programs too have a table of that name; only ours has a hash and the time. Not from information_schema, whose views of all
    // the columns cost the server more than all else that opens a book.
    `select found.relname as name, found.relname = 'daybook_migration' and (select count(*) from pg_catalog.pg_attribute named
        where named.attrelid = found.oid and named.attname in ('number', 'name', 'hash', 'applied_at')) = 4 as ours
      from pg_catalog.pg_class found join pg_catalog.pg_namespace space on space.oid = found.relnamespace
      where space.nspname = $1 and found.relkind in ('r', 'p', 'v', 'f')`,
    [server.schema],
  );
  const isBook = rows.some((row) => row.ours);
  if (rows.length > 0 && !isBook) {
    throw new DaybookError(
      "incompatible",
      `the schema "${server.schema}" holds tables of another program: choose another with the option "schema"`,
    );
  }
  const applied = isBook ? await appliedMigrations(client, server) : [];
  return pendingMigrations(migrations, applied, "postgres");
}

function noBook(server: Server): DaybookError {
  const where = `the schema "${server.schema}" of ${redactUrl(server.url)}`;
  return new DaybookError("not_found", `there is no book in ${where}: "daybook migrate" makes one`);
}

async function applyOne(client: Client, server: Server, migration: Migration, now: number): Promise<void> {
  const { number, name } = migration;
  await client.query(`create schema if not exists ${quoteName(server.schema)}`);
  await client.query(render(migrationTable, "postgres").text);
  for (const text of migrationTexts(migration, "postgres")) await client.query(text);
  await client.query("insert into daybook_migration (number, name, hash, applied_at) values ($1, $2, $3, $4)", [
    number,
    name,
    migrationHash(migration, "postgres"),
    now,
  ]);
}

async function appliedMigrations(client: Client, server: Server): Promise<AppliedMigration[]> {
  const { rows } = await client.query<AppliedMigration>(
    `select number, name, hash, applied_at from ${quoteName(server.schema)}.daybook_migration order by number`,
  );
  return rows;
}
