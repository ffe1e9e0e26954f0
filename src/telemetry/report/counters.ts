// What a scrape of metrics wants of telemetry: counters that only grow, whatever retention does.
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { seekEach } from "../../storage/word.ts";
import type { SeriesKey } from "../rollup/read-slice.ts";
import { wholeName } from "../rollup/series.ts";
import { onlyOwn } from "../session.ts";
import { sums, type SumRow } from "./summary.ts";

export type Counter = SumRow & Omit<SeriesKey, "tenant_id">;

export type Gauges = {
  readonly sessions: number;
  /** What sessions could not keep or hear; null to a tenant, because nobody knows whose it was. */
  readonly droppedRuns: number | null;
  readonly droppedLogs: number | null;
  readonly droppedEvents: number | null;
  readonly evicted: number;
  /** Runs that have ended and are not counted yet. */
  readonly unfolded: number;
};

export async function readCounters(store: Store, tenant: string): Promise<Counter[]> {
  return store.readHeavy(sql`select run_series.kind, run_series.name, run_series.app, run_series.instance, ${sums}
    from daybook_run_series run_series ${seekEach("run_rollup", sql`run_rollup.series_seq = run_series.seq and run_rollup.span = 'ever'`)}
    where run_series.tenant_id = ${tenant} and run_series.name <> ${wholeName}
    group by run_series.kind, run_series.name, run_series.app, run_series.instance order by 1, 2, 3, 4`);
}

export async function readGauges(store: Store, tenant: string, seenBy: string | null): Promise<Gauges> {
  const dropped = (column: string): Sql =>
    seenBy === null
      ? sql`(select cast(coalesce(sum(${rawSql(column)}), 0) as bigint) from daybook_session)`
      : sql`cast(null as bigint)`;
  const [row] = await store.readHeavy<Gauges>(sql`select
    (select count(*) from daybook_session session where status = 'running' ${onlyOwn(seenBy)}) as "sessions",
    ${dropped("dropped_runs")} as "droppedRuns", ${dropped("dropped_logs")} as "droppedLogs",
    ${dropped("dropped_events")} as "droppedEvents",
    (select cast(coalesce(sum(removed), 0) as bigint) from daybook_run_eviction where tenant_id = ${tenant}) as "evicted",
    (select count(*) from daybook_run where seq > (select folded_seq from daybook_run_fold)
      ${seenBy === null ? sql`` : sql`and tenant_id = ${seenBy}`}) as "unfolded"`);
  return row ?? { sessions: 0, droppedRuns: 0, droppedLogs: 0, droppedEvents: 0, evicted: 0, unfolded: 0 };
}
