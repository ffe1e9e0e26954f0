// Retention of the counts themselves. A series of which nothing is left goes with its last count.
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { lockMark } from "../rollup/fold.ts";
import { account } from "./remove.ts";
import type { Policy } from "./policy.ts";

export async function retainRollups(store: Store, policy: Policy): Promise<{ rollups: number; slices: number }> {
  const series = await store.readHeavy<{
    seq: number;
    tenant_id: string;
  }>(sql`select seq, tenant_id from daybook_run_series
    ${policy.tenant === null ? sql`` : sql`where tenant_id = ${policy.tenant}`} order by seq`);
  let [rollups, slices] = [0, 0];
  for (const { seq, tenant_id: tenant } of series) {
    const old = await store.readHeavy<{ n: number }>(sql`select
      (select count(*) from daybook_run_rollup run_rollup where ${oldRollups(seq, policy.rollupsBy)})
      + (select count(*) from daybook_run_failure where series_seq = ${seq} and at < ${policy.rollupsBy}) as n`);
    let left = old[0]?.n ?? 0;
    if (policy.dryRun) {
      rollups += left;
      if (left > 0) slices++;
    }
    while (left > 0 && !policy.dryRun) {
      const gone = await store.write((tx) => removeSlice(tx, { seq, tenant }, policy.rollupsBy), { tenant });
      rollups += gone;
      slices++;
      left = gone === 0 ? 0 : left - gone;
    }
  }
  return { rollups, slices };
}

// A session's counts go when it ended so long ago.
function oldRollups(series: number, by: number): Sql {
  return sql`series_seq = ${series} and ((span in ('minute', 'hour', 'day') and at < ${by})
    or (span = 'session' and exists (select 1 from daybook_session session where session.seq = run_rollup.at
      and session.stopped_at < ${by})))`;
}

async function removeSlice(tx: Tx, series: { seq: number; tenant: string }, by: number): Promise<number> {
  await lockMark(tx);
  const { seq, tenant } = series;
  const counts = await tx.run(sql`delete from daybook_run_rollup where series_seq = ${seq} and (span, at) in (
    select span, at from daybook_run_rollup run_rollup where ${oldRollups(seq, by)} order by span, at limit ${limits.retainRowsMax})`);
  const failures = await tx.run(sql`delete from daybook_run_failure where series_seq = ${seq} and (at, fingerprint) in (
    select at, fingerprint from daybook_run_failure where series_seq = ${seq} and at < ${by} limit ${limits.retainRowsMax})`);
  const left = await tx.get(sql`select 1 as one from daybook_run_rollup where series_seq = ${seq} and span <> 'ever'
    union all select 1 from daybook_run_failure where series_seq = ${seq} limit 1`);
  if (left === undefined) {
    await tx.run(sql`delete from daybook_run_rollup where series_seq = ${seq}`);
    await tx.run(sql`delete from daybook_run_series where seq = ${seq}`);
  }
  await account(tx, { tenant, what: "rollup", reason: "age", removed: counts + failures, until: by });
  return counts + failures;
}
