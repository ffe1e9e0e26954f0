// Migrations: numbered, forward only, one transaction each, recorded with a hash. A room owns its migrations and the
// front door hands storage the whole list; what is here is the same for both engines.
import { createHash } from "node:crypto";
import { DaybookError } from "../core/error.ts";
import { integer, strict } from "./word.ts";
import { render, sql, type Dialect, type Sql } from "./sql.ts";

export type Migration = {
  readonly number: number;
  readonly name: string;
  /** The statements, in order. Dialect words make one text serve both engines. */
  readonly up: readonly Sql[];
};

export type AppliedMigration = { number: number; name: string; hash: string; applied_at: number };

export const migrationTable: Sql = sql`create table if not exists daybook_migration (
  number ${integer} primary key,
  name text not null,
  hash text not null,
  applied_at ${integer} not null
)${strict}`;

export function migrationTexts(migration: Migration, dialect: Dialect): string[] {
  return migration.up.map((statement) => render(statement, dialect).text);
}

export function migrationHash(migration: Migration, dialect: Dialect): string {
  return createHash("sha256").update(migrationTexts(migration, dialect).join(";\n")).digest("hex");
}

/** The number a book has when all of `migrations` are applied. */
export function latestNumber(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.number ?? 0;
}

/** The migrations that are still to do, after checking that what was applied is what this version knows. */
export function pendingMigrations(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
  dialect: Dialect,
): Migration[] {
  const newest = applied.at(-1);
  if (newest !== undefined && newest.number > latestNumber(migrations)) {
    throw newerBook(newest.number, latestNumber(migrations));
  }
  for (const row of applied) {
    const known = migrations.find((migration) => migration.number === row.number);
    if (known === undefined || migrationHash(known, dialect) !== row.hash) {
      throw new DaybookError(
        "incompatible",
        `migration ${row.number} (${row.name}) of this book is not the one this version of daybook knows: ` +
          "the book was made by another build. Open it with that build, or restore a backup",
        { details: { number: row.number, name: row.name } },
      );
    }
  }
  const done = new Set(applied.map((row) => row.number));
  return migrations.filter((migration) => !done.has(migration.number));
}

export function newerBook(found: number, known: number): DaybookError {
  return new DaybookError(
    "incompatible",
    `the book has schema version ${found} and this daybook knows up to ${known}: install a newer daybook`,
    { details: { found, known } },
  );
}

export function notMigrated(found: number, known: number): DaybookError {
  return new DaybookError(
    "incompatible",
    `the book has schema version ${found} and this daybook needs ${known}: run "daybook migrate" first`,
    { details: { found, known } },
  );
}
