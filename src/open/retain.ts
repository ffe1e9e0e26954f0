// Retention as the book has it: telemetry of live listeners by itself, and what apps' schedules did with its jobs.
import { prune } from "../jobs/prune/prune.ts";
import { scheduleKind } from "../schedules/schedule.ts";
import type { Rooms } from "./rooms.ts";
import { sql } from "../storage/sql.ts";
import { type RetainOptions, type Retained, toPolicy, retainTelemetry } from "../telemetry/retention/retain.ts";

const retainEveryMs = 3_600_000;

/** What a process that works does once a minute besides: fold what another has left, and once an hour let go what is old.
 *  No caller waits for it, and the next one makes up for a failure. */
export function everyMinute(rooms: Pick<Rooms, "store" | "jobs" | "rollUp" | "scheduled">): () => Promise<void> {
  const { store, rollUp, scheduled } = rooms;
  let last = store.clock.monotonic();
  return async () => {
    rollUp.soon();
    const now = store.clock.monotonic();
    if (now - last >= retainEveryMs) {
      last = now;
      void retain(rooms, null).catch(() => undefined);
    }
    await scheduled.writeForNewTenants();
  };
}

/** `jobs` are fires of apps' schedules, removed with their runs and lines. */
export type RetainedAll = Retained & { readonly jobs: number };

/** A null tenant means all of them. */
export async function retain(
  { store, jobs }: Pick<Rooms, "store" | "jobs">,
  tenant: string | null,
  options: RetainOptions = {},
): Promise<RetainedAll> {
  const now = store.time.atLeast();
  const policy = toPolicy(now, tenant, options);
  const done = await retainTelemetry(store, policy);
  const tenants = await store.readHeavy<{ tenant_id: string }>(sql`select distinct tenant_id from daybook_run_series
    where kind = 'schedule' and app <> '' ${tenant === null ? sql`` : sql`and tenant_id = ${tenant}`}`);
  let [fires, slices] = [0, 0];
  for (const { tenant_id: id } of tenants) {
    const pruned = await prune(jobs, id, {
      olderThan: now - policy.runsBy,
      dryRun: policy.dryRun,
      kindOfApps: scheduleKind,
    });
    fires += pruned.jobs;
    slices += pruned.slices;
  }
  return { ...done, jobs: fires, slices: done.slices + slices };
}
