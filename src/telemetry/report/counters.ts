// What a scrape of metrics wants of telemetry: counters that only grow, whatever retention does.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { seekEach } from "../../storage/word.ts";
import type { SeriesKey } from "../rollup/read-slice.ts";
import { wholeName } from "../rollup/series.ts";
import { sums, type SumRow } from "./summary.ts";

export type Counter = SumRow & Omit<SeriesKey, "tenant_id">;

export type Gauges = {
  readonly sessions: number;
  readonly droppedRuns: number;
  readonly droppedLogs: number;
  readonly droppedEvents: number;
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

export async function readGauges(store: Store, tenant: string): Promise<Gauges> {
  const [row] = await store.readHeavy<Gauges>(sql`select
    (select count(*) from daybook_session where status = 'running') as "sessions",
    (select cast(coalesce(sum(dropped_runs), 0) as bigint) from daybook_session) as "droppedRuns",
    (select cast(coalesce(sum(dropped_logs), 0) as bigint) from daybook_session) as "droppedLogs",
    (select cast(coalesce(sum(dropped_events), 0) as bigint) from daybook_session) as "droppedEvents",
    (select cast(coalesce(sum(removed), 0) as bigint) from daybook_run_eviction where tenant_id = ${tenant}) as "evicted",
    (select count(*) from daybook_run where seq > (select folded_seq from daybook_run_fold)) as "unfolded"`);
  return row ?? { sessions: 0, droppedRuns: 0, droppedLogs: 0, droppedEvents: 0, evicted: 0, unfolded: 0 };
}
