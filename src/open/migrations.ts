// What the rooms put into the schema: their tables, and the views that a book has on request.
import type { Migration } from "../storage/migrate.ts";
import { accessMigrations } from "../access/migrations.ts";
import { appMigrations, appViews } from "../apps/migrations.ts";
import { eventMigrations, eventViews } from "../events/migrations.ts";
import { jobMigrations } from "../jobs/migrations.ts";
import { callMigrations, callViews } from "../calls/migrations.ts";
import { recordMigrations, recordViews } from "../records/migrations.ts";
import { scheduleMigrations, scheduleViews } from "../schedules/migrations.ts";
import { telemetryMigrations, telemetryViews } from "../telemetry/migrations.ts";
import { jobViews } from "../jobs/seed-views.ts";
import type { View } from "../storage/view.ts";

/** In the order of their numbers, which is the order in which they are applied. */
export const migrations: readonly Migration[] = [
  ...telemetryMigrations,
  ...jobMigrations,
  ...scheduleMigrations,
  ...callMigrations,
  ...eventMigrations,
  ...appMigrations,
  ...recordMigrations,
  ...accessMigrations,
].sort((a, b) => a.number - b.number);

/** Each behind those that it reads. A book has them when its opener asks: docs/origins.md. */
export const views: readonly View[] = [
  ...telemetryViews,
  ...recordViews,
  ...jobViews,
  ...scheduleViews,
  ...eventViews,
  ...callViews,
  ...appViews,
];
