// The live listeners of a book as retention sees them: each by its name, with the runs that are old enough to look at. The
// index of registered runs is walked in the order of their numbers, and rollups say how far.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { byNumber, seekEach } from "../../storage/word.ts";
import { wholeName } from "../rollup/series.ts";
import { dayMs } from "../rollup/write-rollup.ts";

export type LiveSeries = {
  readonly tenant_id: string;
  readonly name: string;
  /** The lines of runs up to this one have left. */
  readonly logs_gone_seq: number;
};

/** No run of the series that is still there has a lower number; null when none is. */
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

/** No run of the series that started before `by` has a higher number than this. */
export async function lastSeqBefore(store: Store, series: LiveSeries, by: number): Promise<number> {
  const found = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = 'day'
    and run_rollup.at <= ${by - (by % dayMs)}`;
  const [row] = await store.readHeavy<{ seq: number | null }>(sql`select max(last_seq) as seq
    from daybook_run_series run_series ${seekEach("run_rollup", found)} where run_series.tenant_id = ${series.tenant_id}
      and run_series.name = ${series.name} and run_series.kind = 'listener'`);
  return row?.seq ?? 0;
}

/** Runs of a live listener in the order of their numbers. */
export function liveRuns({ tenant_id: tenant, name }: LiveSeries): Sql {
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

/** Runs of all live listeners in the order of their numbers, which is how they lie in the file: those of one listener lie far
 *  apart, and to remove a slice of them would touch a page for each. */
export async function readOldOfAll(
  store: Store,
  tenant: string | null,
  { after, to, limit, by }: Stretch & { readonly limit: number; readonly by: number | null },
): Promise<(OldRun & { tenant_id: string })[]> {
  return store.readHeavy(sql`select run.tenant_id, ${shown} from daybook_run run ${byNumber} where run.seq > ${after} and run.seq <= ${to}
    and run.job_seq is null and run.kind = 'listener' ${tenant === null ? sql`` : sql`and run.tenant_id = ${tenant}`}
    ${by === null ? sql`` : sql`and run.started_at < ${by}`} order by run.seq limit ${limit}`);
}
