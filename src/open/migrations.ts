// The rooms' migrations in the order of their numbers, which is the order in which they are applied.
import type { Migration } from "../storage/migrate.ts";
import { appMigrations } from "../apps/migrations.ts";
import { eventMigrations } from "../events/migrations.ts";
import { jobMigrations } from "../jobs/migrations.ts";
import { callMigrations } from "../calls/migrations.ts";
import { recordMigrations } from "../records/migrations.ts";
import { scheduleMigrations } from "../schedules/migrations.ts";
import { telemetryMigrations } from "../telemetry/migrations.ts";

export const migrations: readonly Migration[] = [
  ...telemetryMigrations,
  ...jobMigrations,
  ...scheduleMigrations,
  ...callMigrations,
  ...eventMigrations,
  ...appMigrations,
  ...recordMigrations,
].sort((a, b) => a.number - b.number);
