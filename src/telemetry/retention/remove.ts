// One slice of what leaves, in a transaction of its own, with a row that says so.
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, byNumber, greatest } from "../../storage/word.ts";
import { keptRuns } from "../kept-run.ts";
import { lowerMark } from "../rollup/fold.ts";
import { dayMs } from "../rollup/write-rollup.ts";
import type { LiveSeries, OldRun } from "./live-series.ts";

export type Reason = "age" | "size";
export type Gone = { readonly runs: number; readonly logs: number };

/** Removes the runs that may leave, with their lines. */
export async function removeRuns(tx: Tx, tenant: string, found: readonly OldRun[], reason: Reason): Promise<Gone> {
  const ids = found.map(({ id }) => id);
  const kept = await keptRuns(tx, tenant, ids);
  const leaving = found.filter(({ id }) => !kept.has(id));
  if (leaving.length === 0) return { runs: 0, logs: 0 };
  const those = anyOf(
    "text",
    leaving.map(({ id }) => id),
  );
  const some = leaving.some((run) => run.logs > 0);
  const logs = some
    ? await tx.run(sql`delete from daybook_run_log where tenant_id = ${tenant} and run_id ${those}`)
    : 0;
  const seqs = leaving.map(({ seq }) => seq);
  const runs = await tx.run(
    sql`delete from daybook_run ${byNumber} where seq ${anyOf("integer", seqs)} and tenant_id = ${tenant}`,
  );
  await lowerMark(tx);
  const until = leaving.reduce((latest, { started_at: at }) => Math.max(latest, at), 0);
  await account(tx, { tenant, what: "run", reason, removed: runs, until });
  await account(tx, { tenant, what: "log", reason, removed: logs, until });
  return { runs, logs };
}

/** Removes lines of runs that stay. With `series`, these are its next runs, and their lines have all left then. */
export async function removeLogs(
  tx: Tx,
  tenant: string,
  runs: readonly OldRun[],
  series?: LiveSeries,
): Promise<number> {
  const ids = runs.filter(({ pinned }) => pinned === 0).map(({ id }) => id);
  const logs =
    await tx.run(sql`delete from daybook_run_log where seq in (select run_log.seq from daybook_run_log run_log
    where run_log.tenant_id = ${tenant} and run_log.run_id ${anyOf("text", ids)}
      and not exists (select 1 from daybook_run_pin run_pin where run_pin.tenant_id = run_log.tenant_id and run_pin.run_id = run_log.run_id)
    order by run_log.run_id, run_log.seq limit ${limits.retainRowsMax})`);
  const last = runs.at(-1);
  if (last === undefined) return logs;
  if (series !== undefined) {
    await tx.run(sql`update daybook_run_series set logs_gone_seq = ${greatest}(logs_gone_seq, ${last.seq})
      where tenant_id = ${tenant} and name = ${series.name} and kind = 'listener'`);
  }
  await account(tx, { tenant, what: "log", reason: "age", removed: logs, until: last.started_at });
  return logs;
}

export async function account(
  tx: Tx,
  gone: {
    readonly tenant: string;
    readonly what: "run" | "log" | "rollup";
    readonly reason: Reason;
    readonly removed: number;
    readonly until: number;
  },
): Promise<void> {
  if (gone.removed === 0) return;
  await tx.run(sql`insert into daybook_run_eviction as run_eviction (tenant_id, day_at, what, reason, removed, until_at)
    values (${gone.tenant}, ${tx.now - (tx.now % dayMs)}, ${gone.what}, ${gone.reason}, ${gone.removed}, ${gone.until})
    on conflict (tenant_id, day_at, what, reason) do update set removed = run_eviction.removed + excluded.removed,
      until_at = ${greatest}(run_eviction.until_at, excluded.until_at)`);
}
