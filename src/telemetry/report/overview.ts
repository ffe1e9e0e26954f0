// The book at a glance: all runs of a stretch together, by kind, by app and over time, and the counters that a scrape of metrics
// reads.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { seekEach } from "../../storage/word.ts";
import { dayMs, hourMs, minuteMs, wholeName, type SeriesKey } from "../rollup/series.ts";
import type { Dropped } from "../run-batch.ts";
import { onlyOwn } from "../session.ts";
import { ofSeries, rollupsOf, together, type Scope } from "./scope.ts";
import { sums, tallyOf, type SumRow, type Tally } from "./summary.ts";

export type Overview = Tally & {
  readonly since: number;
  readonly until: number;
  readonly byKind: readonly (Tally & { readonly kind: string })[];
  /** On `book.tenant(id)`, only sessions that run or ran something of that tenant. */
  readonly sessionsRunning: number;
  /** What the sessions of the stretch could not record or hear; null on `book.tenant(id)`, because nothing tells whose it was. */
  readonly dropped: Dropped | null;
};

export type AppSummary = Tally & {
  readonly app: string;
  readonly instances: readonly (Tally & { readonly instance: number })[];
};

export async function readOverview(store: Store, scope: Scope): Promise<Overview> {
  const byKind = await store.readHeavy<SumRow & { kind: string }>(
    sql`select run_series.kind, ${sums} from ${rollupsOf(together(scope))} group by run_series.kind order by run_series.kind`,
  );
  const { since, until } = scope.window;
  const [sessions] = await store.readHeavy<{ running: number; runs: number; logs: number; events: number }>(sql`select
      cast(coalesce(sum(case when status = 'running' then 1 else 0 end), 0) as bigint) as running,
      cast(coalesce(sum(dropped_runs), 0) as bigint) as runs, cast(coalesce(sum(dropped_logs), 0) as bigint) as logs,
      cast(coalesce(sum(dropped_events), 0) as bigint) as events
    from daybook_session session where started_at < ${until} and (stopped_at is null or stopped_at >= ${since})
      ${onlyOwn(scope.seenBy)}`);
  const { running = 0, runs = 0, logs = 0, events = 0 } = sessions ?? {};
  return {
    since,
    until,
    ...tallyOf(addedUp(byKind)),
    byKind: byKind.map((row) => ({ kind: row.kind, ...tallyOf(row) })),
    sessionsRunning: running,
    dropped: scope.seenBy === null ? { runs, logs, events } : null,
  };
}

export async function readApps(store: Store, scope: Scope): Promise<AppSummary[]> {
  const rows = await store.readHeavy<SumRow & { app: string; instance: number }>(sql`select run_series.app,
      run_series.instance, ${sums} from ${rollupsOf(scope)} and run_series.app <> ''
    group by run_series.app, run_series.instance order by run_series.app, run_series.instance`);
  return [...Map.groupBy(rows, ({ app }) => app)].map(([app, own]) => ({
    app,
    ...tallyOf(addedUp(own)),
    instances: own.map((row) => ({ instance: row.instance, ...tallyOf(row) })),
  }));
}

function addedUp(rows: readonly SumRow[]): SumRow {
  const sum: Record<string, number> = {};
  let max: number | null = null;
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) {
      if (typeof value === "number" && column !== "max_ms") sum[column] = (sum[column] ?? 0) + value;
    }
    if (row.max_ms !== null) max = Math.max(max ?? 0, row.max_ms);
  }
  return { ...noRuns, ...sum, max_ms: max };
}

const noRuns = { runs: 0, sum_ms: 0, success: 0, error: 0, cancelled: 0, timed_out: 0, skipped: 0, lost: 0 };

/** The counts of one series since the beginning. They only grow, whatever retention removes. */
export type Counter = SumRow & Omit<SeriesKey, "tenant_id">;

type Gauges = {
  readonly sessions: number;
  /** What sessions could not record or hear; null for a tenant, because nothing tells whose it was. */
  readonly droppedRuns: number | null;
  readonly droppedLogs: number | null;
  readonly droppedEvents: number | null;
  readonly evicted: number;
  /** Ended runs that no rollup counts yet. */
  readonly unfolded: number;
};

export async function readCounters(store: Store, tenant: string): Promise<Counter[]> {
  const ever = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = 'ever'`;
  return store.readHeavy(sql`select run_series.kind, run_series.name, run_series.app, run_series.instance, ${sums}
    from daybook_run_series run_series ${seekEach("run_rollup", ever)}
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
    (select cast(coalesce(sum(removed), 0) as bigint) from daybook_eviction where tenant_id = ${tenant}) as "evicted",
    (select count(*) from daybook_run where seq > (select folded_seq from daybook_run_fold)
      ${seenBy === null ? sql`` : sql`and tenant_id = ${seenBy}`}) as "unfolded"`);
  return row ?? { sessions: 0, droppedRuns: 0, droppedLogs: 0, droppedEvents: 0, evicted: 0, unfolded: 0 };
}

export type BucketSpan = "minute" | "hour" | "day";

export type Bucket = {
  /** When it begins. */
  readonly at: number;
  readonly runs: number;
  readonly errors: number;
  readonly meanMs: number | null;
  readonly maxMs: number | null;
};

const spanMs: Readonly<Record<BucketSpan, number>> = { minute: minuteMs, hour: hourMs, day: dayMs };

/** The span that gives some dozens of buckets, unless the caller chose one. */
export function spanFor({ window: { since, until } }: Scope, by: BucketSpan | undefined): BucketSpan {
  if (by !== undefined && !(by in spanMs)) throw invalid(`by is ${quote(by)}: "minute", "hour" or "day"`);
  const span = by ?? (until - since <= 3 * hourMs ? "minute" : until - since <= 4 * dayMs ? "hour" : "day");
  const count = Math.ceil((until - since) / spanMs[span]);
  if (count <= limits.bucketsMax) return span;
  throw invalid(
    `${count} buckets of a ${span} are more than ${limits.bucketsMax}: give a shorter stretch or larger ones`,
  );
}

/** One bucket for each minute, hour or day, empty ones included. */
export async function readBuckets(store: Store, scope: Scope, span: BucketSpan): Promise<Bucket[]> {
  const { since, until } = scope.window;
  const step = spanMs[span];
  const from = since - (since % step);
  const found = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = ${span} and run_rollup.at >= ${from}
    and run_rollup.at < ${until}`;
  const rows = await store.readHeavy<{ at: number; runs: number; errors: number; sum_ms: number; max_ms: number }>(
    sql`select run_rollup.at, cast(sum(run_rollup.runs) as bigint) as runs, sum(run_rollup.sum_ms) as sum_ms,
      cast(sum(run_rollup.error + run_rollup.timed_out + run_rollup.lost) as bigint) as errors,
      max(run_rollup.max_ms) as max_ms
    from daybook_run_series run_series ${seekEach("run_rollup", found)} where ${ofSeries(together(scope))}
    group by run_rollup.at`,
  );
  const known = new Map(rows.map((row) => [row.at, row]));
  return Array.from({ length: Math.ceil((until - from) / step) }, (_, index) => {
    const at = from + index * step;
    const row = known.get(at);
    if (row === undefined) return { at, runs: 0, errors: 0, meanMs: null, maxMs: null };
    return { at, runs: row.runs, errors: row.errors, meanMs: row.sum_ms / row.runs, maxMs: row.max_ms };
  });
}
