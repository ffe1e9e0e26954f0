// How the runs of each series went in a stretch of time: how many, how they ended, how long they took, the last error.
import { cutPage, type Page } from "../../core/page.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { type BucketColumn, type SeriesKey, appOf, bucketColumns, percentile } from "../rollup/series.ts";
import { addedColumns } from "../rollup/write.ts";
import { runStatuses, type RunStatus } from "../run.ts";
import { lastErrors, type LastError, type SeriesEnd } from "./errors.ts";
import { rollupsOf, type Scope } from "./scope.ts";

/** By the share of runs that did not fail: all of them, at least 95 %, at least 90 %, or fewer. */
export type Health = "excellent" | "good" | "warning" | "critical";

export type Tally = {
  readonly runs: number;
  readonly byStatus: Readonly<Record<RunStatus, number>>;
  /** Runs that ended in an error, timed out or were lost. */
  readonly errors: number;
  /** The share of the other runs; null without runs. */
  readonly successRate: number | null;
  readonly health: Health | null;
  /** Percentiles come from buckets, each twice as wide as the one before. Null without runs. */
  readonly durationMs: Durations | null;
};

type Durations = {
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
};

export type RunSummary = Tally & {
  readonly kind: string;
  readonly name: string;
  readonly app: { readonly key: string; readonly instance: number } | null;
  /** Of the last run that failed in the stretch. */
  readonly lastError: LastError | null;
};

export type SumRow = { readonly max_ms: number | null } & Readonly<
  Record<"runs" | "sum_ms" | RunStatus | BucketColumn, number>
>;

/** The sums of all columns that can be added, and the longest duration. PostgreSQL's sum of integers is no integer, hence the
 *  cast. */
export const sums = rawSql(
  [
    ...addedColumns.map((name) =>
      name === "sum_ms"
        ? "coalesce(sum(run_rollup.sum_ms), 0) as sum_ms"
        : `cast(coalesce(sum(run_rollup.${name}), 0) as bigint) as ${name}`,
    ),
    "max(run_rollup.max_ms) as max_ms",
  ].join(", "),
);

export async function summarise(
  store: Store,
  scope: Scope,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<Page<RunSummary>> {
  const rows = await store.readHeavy<SumRow & SeriesKey & SeriesEnd>(sql`select run_series.seq, run_series.kind,
      run_series.name, run_series.app, run_series.instance, max(run_rollup.last_seq) as last_seq, ${sums}
    from ${rollupsOf(scope)} and run_series.seq > ${after}
    group by run_series.seq, run_series.kind, run_series.name, run_series.app, run_series.instance
    order by run_series.seq limit ${limit + 1}`);
  const failed = rows.slice(0, limit).filter((row) => tallyOf(row).errors > 0);
  const errors = await lastErrors(store, scope, failed);
  const toSummary = (row: (typeof rows)[number]): RunSummary => ({
    kind: row.kind,
    name: row.name,
    app: appOf(row),
    ...tallyOf(row),
    lastError: errors.get(row.seq) ?? null,
  });
  return cutPage(rows, limit, ({ seq }) => seq, toSummary);
}

export function tallyOf(row: SumRow): Tally {
  const { runs } = row;
  const byStatus = Object.fromEntries(runStatuses.map((status) => [status, row[status]])) as Record<RunStatus, number>;
  const errors = byStatus.error + byStatus.timed_out + byStatus.lost;
  const successRate = runs === 0 ? null : (runs - errors) / runs;
  return { runs, byStatus, errors, successRate, health: healthOf(successRate), durationMs: durationsOf(row) };
}

function healthOf(rate: number | null): Health | null {
  if (rate === null) return null;
  if (rate === 1) return "excellent";
  return rate >= 0.95 ? "good" : rate >= 0.9 ? "warning" : "critical";
}

function durationsOf(row: SumRow): Durations | null {
  const { runs, sum_ms: sumMs, max_ms: max } = row;
  if (runs === 0 || max === null) return null;
  const counts = bucketColumns.map((column) => row[column] ?? 0);
  const at = (p: number): number => percentile(counts, max, p) ?? 0;
  return { mean: sumMs / runs, p50: at(0.5), p95: at(0.95), p99: at(0.99), max };
}
