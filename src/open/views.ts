// The rooms' views, each behind those that it reads. A book has them when somebody asks: docs/origins.md.
import { appViews } from "../apps/migrations.ts";
import { callViews } from "../calls/migrations.ts";
import { eventViews } from "../events/seed-views.ts";
import { jobViews } from "../jobs/seed-views.ts";
import { recordViews } from "../records/migrations.ts";
import { scheduleViews } from "../schedules/seed-views.ts";
import type { View } from "../storage/view.ts";
import { telemetryViews } from "../telemetry/migrations.ts";

export const views: readonly View[] = [
  ...telemetryViews,
  ...recordViews,
  ...jobViews,
  ...scheduleViews,
  ...eventViews,
  ...callViews,
  ...appViews,
];
