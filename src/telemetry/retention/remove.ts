// What retention of telemetry reads and removes: one slice in each transaction, which also records how much left.
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { anyOf, byNumber, greatest, least, seekEach } from "../../storage/word.ts";
import { lowerMark } from "../rollup/roll-up.ts";
import { dayMs, wholeName } from "../rollup/series.ts";
import { keptRuns } from "../run.ts";

/** Removes the runs that may leave, with their lines. */
export async function removeRuns(
  tx: Tx,
  tenant: string,
  found: readonly OldRun[],
  reason: Reason,
): Promise<{ readonly runs: number; readonly logs: number }> {
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
  const made = leaving.map((run) => run.started_at);
  await account(tx, tenant, [
    { what: "run", reason, removed: runs, made },
    { what: "log", reason, removed: logs, made },
  ]);
  return { runs, logs };
}

/** Removes runs whose jobs leave, with their lines. The caller, which removes the jobs, accounts for it. */
export async function removeRunsOfJobs(tx: Tx, tenant: string, ids: readonly string[]): Promise<void> {
  const those = anyOf("text", ids);
  await tx.run(sql`delete from daybook_run_log where tenant_id = ${tenant} and run_id ${those}`);
  await tx.run(sql`delete from daybook_run where tenant_id = ${tenant} and id ${those}`);
  await lowerMark(tx);
}

/** Removes lines of runs that stay. With `series`, the runs are its next ones, and all their lines are gone afterwards. */
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
  const made = runs.map((run) => run.started_at);
  await account(tx, tenant, [{ what: "log", reason: "age", removed: logs, made }]);
  return logs;
}

type Gone = {
  readonly what: Eviction["what"];
  readonly reason: Reason;
  readonly removed: number;
  /** When each of what is gone was made, or the first and the last of it. */
  readonly made: readonly number[];
};

/** Notes what a transaction removed, so that a gap in the history can be accounted for. */
export async function account(tx: Tx, tenant: string, gone: readonly Gone[]): Promise<void> {
  // In one order, because two transactions that met the same days in two would wait for each other.
  for (const { what, reason, removed, made } of gone.toSorted((a, b) => (a.what < b.what ? -1 : 1))) {
    if (removed === 0) continue;
    // Not Math.min(...made): a chain that was tried for months is one bundle, and so many arguments overflow the stack.
    const from = made.reduce((first, at) => Math.min(first, at), Infinity);
    const until = made.reduce((last, at) => Math.max(last, at), 0);
    await tx.run(sql`insert into daybook_eviction as eviction (tenant_id, day_at, what, reason, removed, from_at, until_at, removed_at)
      values (${tenant}, ${tx.now - (tx.now % dayMs)}, ${what}, ${reason}, ${removed}, ${Math.min(from, until)}, ${until}, ${tx.now})
      on conflict (tenant_id, day_at, what, reason) do update set removed = eviction.removed + excluded.removed,
        from_at = ${least}(eviction.from_at, excluded.from_at), until_at = ${greatest}(eviction.until_at, excluded.until_at),
        removed_at = ${greatest}(eviction.removed_at, excluded.removed_at)`);
  }
}

/** A live listener as retention sees it. Its runs are read from the index of registered runs in the order of their numbers, and
 *  rollups tell how far. */
export type LiveSeries = {
  readonly tenant_id: string;
  readonly name: string;
  /** The lines of runs up to this one have left. */
  readonly logs_gone_seq: number;
};

/** The lowest number of the series' runs; null when none is left. */
export async function firstSeq(store: Store, series: LiveSeries): Promise<number | null> {
  const [row] = await store.readHeavy<{ seq: number }>(
    sql`select run.seq from daybook_run run where ${liveRuns(series)} order by run.seq limit 1`,
  );
  return row?.seq ?? null;
}

export type OldRun = {
  readonly seq: number;
  readonly id: string;
  readonly started_at: number;
  readonly logs: number;
  readonly pinned: number;
};

export async function readLiveSeries(store: Store, tenant: string | null): Promise<LiveSeries[]> {
  return store.readHeavy(sql`select tenant_id, name, min(logs_gone_seq) as logs_gone_seq from daybook_run_series
    where kind = 'listener' and name <> ${wholeName} ${tenant === null ? sql`` : sql`and tenant_id = ${tenant}`}
    group by tenant_id, name order by tenant_id, name`);
}

/** No run of the series that started before `by` has a higher number. */
export async function lastSeqBefore(store: Store, series: LiveSeries, by: number): Promise<number> {
  const found = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = 'day'
    and run_rollup.at <= ${by - (by % dayMs)}`;
  const [row] = await store.readHeavy<{ seq: number | null }>(sql`select max(last_seq) as seq
    from daybook_run_series run_series ${seekEach("run_rollup", found)} where run_series.tenant_id = ${series.tenant_id}
      and run_series.name = ${series.name} and run_series.kind = 'listener'`);
  return row?.seq ?? 0;
}

/** Runs of a live listener in the order of their numbers. */
export function liveRuns({ tenant_id: tenant, name }: Pick<LiveSeries, "tenant_id" | "name">): Sql {
  return sql`run.tenant_id = ${tenant} and coalesce(run.registration, run.name) = ${name}
    and (run.job_seq is null or run.registration is not null) and run.job_seq is null and run.kind = 'listener'`;
}

/** Runs with a number above the one and up to the other. */
type Stretch = { readonly after: number; readonly to: number };

const shown = sql`run.seq, run.id, run.started_at,
  (select count(*) from daybook_run_log run_log where run_log.tenant_id = run.tenant_id and run_log.run_id = run.id) as logs,
  (select count(*) from daybook_run_pin run_pin where run_pin.tenant_id = run.tenant_id and run_pin.run_id = run.id) as pinned`;

export async function readOldRuns(
  store: Store,
  series: LiveSeries,
  { after, to, limit }: Stretch & { readonly limit: number },
): Promise<OldRun[]> {
  return store.readHeavy(
    sql`select ${shown} from daybook_run run where ${liveRuns(series)} and run.seq > ${after} and run.seq <= ${to} order by run.seq limit ${limit}`,
  );
}

/** Runs of all live listeners in the order of their numbers, which is their order in the file. Runs of one listener lie far apart,
 *  and removing a slice of those would touch a page for each. */
export async function readOldOfAll(
  store: Store,
  tenant: string | null,
  { after, to, limit, by }: Stretch & { readonly limit: number; readonly by: number | null },
): Promise<(OldRun & Pick<LiveSeries, "tenant_id" | "name">)[]> {
  return store.readHeavy(sql`select run.tenant_id, coalesce(run.registration, run.name) as name, ${shown} from daybook_run run ${byNumber} where run.seq > ${after} and run.seq <= ${to}
    and run.job_seq is null and run.kind = 'listener' ${tenant === null ? sql`` : sql`and run.tenant_id = ${tenant}`}
    ${by === null ? sql`` : sql`and run.started_at < ${by}`} order by run.seq limit ${limit}`);
}

/** Too old, too much, or not among the newest that are kept. */
export type Reason = "age" | "size" | "count";

/** What retention removed on one day. */
export type Eviction = {
  /** The day. */
  readonly at: number;
  readonly what: "decision" | "event" | "job" | "log" | "reservation" | "rollup" | "run";
  readonly reason: Reason;
  readonly removed: number;
  /** When the oldest and the newest of what was removed were made, so that an id that is gone can be accounted for. */
  readonly from: number;
  readonly until: number;
};

export async function readEvictions(store: Store, tenant: string, limit: number): Promise<Eviction[]> {
  return store.readHeavy(sql`select day_at as at, what, reason, removed, from_at as "from", until_at as until from daybook_eviction
    where tenant_id = ${tenant} order by day_at desc, what, reason limit ${limit}`);
}
