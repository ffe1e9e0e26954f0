// Brings a SQLite file to the newest schema. Each migration is one transaction, and each looks again after taking the
// write lock, so two processes that open a new book at once do the work once.
import type { Clock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import type { Random } from "../../core/id.ts";
import {
  latestNumber,
  migrationHash,
  migrationTable,
  migrationTexts,
  newerBook,
  notMigrated,
  pendingMigrations,
  type AppliedMigration,
  type Migration,
} from "../migrate.ts";
import { render, sql } from "../sql.ts";
import type { Connection } from "./connection.ts";
import { beginImmediate } from "./share.ts";
import { applicationId, placeTable } from "./place.ts";

type Parts = {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly waitClock: Clock;
  readonly random: Random;
};

/** Applies what is missing and returns the names of what it applied. */
export async function migrateSqlite(
  parts: Parts,
  migrations: readonly Migration[],
  options: { apply: boolean },
): Promise<string[]> {
  const { connection, clock } = parts;
  const done: string[] = [];
  for (;;) {
    const version = userVersion(connection);
    const latest = latestNumber(migrations);
    if (version > latest) throw newerBook(version, latest);
    const [next] = pendingMigrations(migrations, version === 0 ? [] : appliedMigrations(connection), "sqlite");
    if (next === undefined) return done;
    if (!options.apply) throw notMigrated(version, latest);
    await beginImmediate(parts);
    try {
      if (userVersion(connection) === version) {
        applyOne(connection, next, clock.now());
        done.push(next.name);
      }
      connection.exec("commit");
    } catch (error) {
      if (connection.inTransaction) connection.exec("rollback");
      throw error;
    }
  }
}

function applyOne(connection: Connection, migration: Migration, now: number): void {
  connection.script(
    `${render(migrationTable, "sqlite").text}; ${placeTable}; pragma application_id = ${applicationId}`,
  );
  for (const text of migrationTexts(migration, "sqlite")) connection.script(text);
  if (connection.all({ text: "pragma foreign_key_check", params: [] }).length > 0) {
    throw new DaybookError("internal", `migration ${migration.number} (${migration.name}) would break foreign keys`);
  }
  const { number, name } = migration;
  connection.run(
    render(
      sql`insert into daybook_migration (number, name, hash, applied_at)
        values (${number}, ${name}, ${migrationHash(migration, "sqlite")}, ${now})`,
      "sqlite",
    ),
  );
  connection.script(`pragma user_version = ${number}`);
}

function userVersion(connection: Connection): number {
  return (connection.get({ text: "pragma user_version", params: [] }) as { user_version: number }).user_version;
}

export function appliedMigrations(connection: Connection): AppliedMigration[] {
  return connection.all({
    text: "select number, name, hash, applied_at from daybook_migration order by number",
    params: [],
  }) as AppliedMigration[];
}
