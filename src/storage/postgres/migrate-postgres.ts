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
import { quoteName, type Server } from "./connect.ts";

/** Applies what is missing and returns the names of what it applied. */
export async function migratePostgres(
  client: Client,
  server: Server,
  migrations: readonly Migration[],
  options: { apply: boolean; clock: Clock },
): Promise<string[]> {
  const done: string[] = [];
  for (;;) {
    const [next] = await pending(client, server, migrations);
    if (next === undefined) return done;
    if (!options.apply) throw notMigrated(next.number - 1, latestNumber(migrations));
    await client.query("begin");
    try {
      await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`daybook:${server.schema}`]);
      // Whoever held the lock before may have done it.
      const [still] = await pending(client, server, migrations);
      if (still?.number === next.number) {
        await applyOne(client, server, next, options.clock.now());
        done.push(next.name);
      }
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    }
  }
}

async function pending(client: Client, server: Server, migrations: readonly Migration[]): Promise<Migration[]> {
  const { rows } = await client.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = $1",
    [server.schema],
  );
  const tables = new Set(rows.map((row) => row.name));
  if (tables.size > 0 && !tables.has("migration")) {
    throw new DaybookError(
      "incompatible",
      `the schema "${server.schema}" holds tables of another program: choose another with the option "schema"`,
    );
  }
  const applied = tables.has("migration") ? await appliedMigrations(client, server) : [];
  return pendingMigrations(migrations, applied, "postgres");
}

async function applyOne(client: Client, server: Server, migration: Migration, now: number): Promise<void> {
  const { number, name } = migration;
  await client.query(`create schema if not exists ${quoteName(server.schema)}`);
  await client.query(render(migrationTable, "postgres").text);
  for (const text of migrationTexts(migration, "postgres")) await client.query(text);
  await client.query("insert into migration (number, name, hash, applied_at) values ($1, $2, $3, $4)", [
    number,
    name,
    migrationHash(migration, "postgres"),
    now,
  ]);
}

async function appliedMigrations(client: Client, server: Server): Promise<AppliedMigration[]> {
  const { rows } = await client.query<AppliedMigration>(
    `select number, name, hash, applied_at from ${quoteName(server.schema)}.migration order by number`,
  );
  return rows;
}
