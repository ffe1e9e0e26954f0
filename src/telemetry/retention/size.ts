// The size budget. What the rows of live runs and their lines take is estimated from the newest of them: neither engine says
// what rows take, and a file, or a table on PostgreSQL, does not shrink when rows leave.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import type { Policy } from "./policy.ts";

const sampleMax = 1000;
// What a row costs besides its texts: numbers, ids, headers and the entries of indexes.
const rowBytes = 300;

/** Up to which run all live ones must leave; null when they fit. `leaving` of them will leave by their age. */
export async function planForSize(
  store: Store,
  { tenant, bytesMax, dryRun }: Policy,
  leaving: number,
): Promise<{ readonly to: number } | null> {
  const own = tenant === null ? sql`` : sql`and run.tenant_id = ${tenant}`;
  const live = sql`(run.job_seq is null or run.registration is not null) and run.job_seq is null ${own}`;
  const [size] = await store.readLong<{ runs: number; run_bytes: number | null; line_bytes: number | null }>(sql`select
    (select count(*) from daybook_run run where ${live}) as runs,
    (select avg(length(coalesce(error_message, '')) + length(coalesce(error_trace, ''))) from (
      select error_message, error_trace from daybook_run run where ${live} order by seq desc limit ${sampleMax}) as newest) as run_bytes,
    (select sum(length(run_log.message) + length(coalesce(run_log.fields, '')) + ${rowBytes})
      / max(newest.runs) from (select id, tenant_id, count(*) over () as runs from daybook_run run where ${live} order by seq desc
        limit ${sampleMax}) as newest
      join daybook_run_log run_log on run_log.tenant_id = newest.tenant_id and run_log.run_id = newest.id) as line_bytes`);
  // In a dry run those that leave by age are still there.
  const runs = (size?.runs ?? 0) - (dryRun ? leaving : 0);
  const each = rowBytes + Number(size?.run_bytes ?? 0) + Number(size?.line_bytes ?? 0);
  const surplus = runs - Math.floor(bytesMax / each);
  if (runs === 0 || surplus <= 0) return null;
  const [last] = await store.readLong<{ seq: number }>(sql`select seq from daybook_run run where ${live}
    order by seq limit 1 offset ${(dryRun ? leaving : 0) + surplus - 1}`);
  return last === undefined ? null : { to: last.seq };
}
