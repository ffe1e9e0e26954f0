// Whether anything was ever recorded for what an app registered.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import type { RunOwner } from "./run.ts";

/** Also when its runs have left by retention, as long as their rollups are there. */
export async function hasHistory(store: Store, tenant: string, owner: RunOwner): Promise<boolean> {
  const { app, instance, registration } = owner;
  // Spelt as the index spells it.
  const runs = await store.read(sql`select 1 as one from daybook_run where tenant_id = ${tenant}
    and coalesce(registration, name) = ${registration} and (job_seq is null or registration is not null)
    and app = ${app} and instance = ${instance} limit 1`);
  if (runs.length > 0) return true;
  const series = await store.read(sql`select 1 as one from daybook_run_series where tenant_id = ${tenant}
    and kind in ('job', 'listener', 'schedule', 'direct') and name = ${registration} and app = ${app} and instance = ${instance}
    limit 1`);
  return series.length > 0;
}
