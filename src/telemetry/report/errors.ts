// Errors that look alike, as one group each, the latest first. A group keeps its name after its runs have left.
import type { Page } from "../../core/page.ts";
import { shapePage } from "../../storage/shape.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Row, Store } from "../../storage/store.ts";
import { anyOf, indexedBy, rowSet, seekEach } from "../../storage/word.ts";
import { minuteMs, seriesKey } from "../rollup/series.ts";
import type { RunStatus } from "../run.ts";
import { ofSeries, type Scope } from "./scope.ts";
import type { RunSummary } from "./summary.ts";

export type ErrorGroup = Pick<RunSummary, "kind" | "name" | "app"> & {
  /** The same for errors of one type whose messages differ only in numbers, ids and quoted values. */
  readonly fingerprint: string;
  readonly runs: number;
  readonly firstAt: number;
  /** The latest of them; all fields are of one run. */
  readonly last: LastError;
};

export type LastError = {
  readonly runId: string;
  readonly at: number;
  readonly status: RunStatus;
  readonly type: string;
  readonly message: string;
};

/** Selects a `LastError` from `daybook_run_failure` under this alias, as fields that begin with `into`. */
function lastError(alias: string, into = ""): Sql {
  return rawSql(`${alias}.last_run_id as "${into}runId", ${alias}.last_at as "${into}at",
    ${alias}.last_status as "${into}status", ${alias}.error_type as "${into}type", ${alias}.error_message as "${into}message"`);
}

export async function readErrors(
  store: Store,
  scope: Scope,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<Page<ErrorGroup>> {
  const { since, until } = scope.window;
  const found = sql`run_failure.series_seq = run_series.seq and run_failure.at >= ${since} and run_failure.at < ${until}`;
  // The groups are counted first, so that the last error is read for one page of them only.
  const page = await store.readPage<Row>(sql`select run_series.kind, run_series.name,
      nullif(run_series.app, '') as "app.key", run_series.instance as "app.instance", alike.fingerprint, alike.runs,
      alike.first_at as "firstAt", alike.last_seq as ".seq", ${lastError("last", "last.")}
    from (select run_failure.series_seq, run_failure.fingerprint, cast(sum(run_failure.runs) as bigint) as runs,
        min(run_failure.first_at) as first_at, max(run_failure.last_seq) as last_seq
      from daybook_run_series run_series ${seekEach("run_failure", found)} where ${ofSeries(scope)}
      group by run_failure.series_seq, run_failure.fingerprint having max(run_failure.last_seq) < ${before}
      order by max(run_failure.last_seq) desc limit ${limit + 1}) as alike
    join daybook_run_series run_series on run_series.seq = alike.series_seq
    join daybook_run_failure as last ${indexedBy("run_failures_by_last")}
      on last.series_seq = alike.series_seq and last.last_seq = alike.last_seq
    order by last.last_seq desc`);
  return shapePage(page, limit);
}

/** A series, and the number of its last run in the stretch. */
export type SeriesEnd = { readonly seq: number; readonly last_seq: number };

/** The last error of each series in the stretch. */
export async function lastErrors(
  store: Store,
  scope: Scope,
  series: readonly SeriesEnd[],
): Promise<Map<number, LastError>> {
  if (series.length === 0) return new Map();
  const [piece] = scope.pieces;
  const rows = await store.readHeavy<LastError & { series: number }>(
    piece?.span === "session" ? lastOfSession(scope, series, piece.from_at) : lastOfWindow(scope, series),
  );
  return new Map(rows.map(({ series: seq, ...last }) => [seq, last]));
}

// Walks each series' failures back from its last run in the stretch, whose number the rollups know.
function lastOfWindow({ window: { since, until } }: Scope, series: readonly SeriesEnd[]): Sql {
  const ends = rowSet("v", { seq: "integer", last_seq: "integer" }, series);
  return sql`select run_failure.series_seq as series, ${lastError("run_failure")}
    from ${ends} cross join daybook_run_failure run_failure ${indexedBy("run_failures_by_last")}
    where run_failure.series_seq = v.seq and run_failure.last_seq = (select last.last_seq from daybook_run_failure as last
      where last.series_seq = v.seq and last.last_seq <= v.last_seq
        and last.at >= ${since - (since % minuteMs)} and last.at < ${until} order by last.last_seq desc limit 1)`;
}

// Failures are not counted by session, so this reads the runs themselves, once for all series: the last failed run of each
// between the session's first and last number.
function lastOfSession({ tenant }: Scope, series: readonly SeriesEnd[], session: number): Sql {
  const seqs = series.map(({ seq }) => seq);
  const own = sql`series_seq ${anyOf("integer", seqs)} and span = 'session' and at = ${session}`;
  return sql`select run_series.seq as series, run.id as "runId", run.started_at as "at", run.status as "status",
      coalesce(run.error_type, 'Error') as "type", coalesce(run.error_message, '') as "message"
    from (select max(seq) as seq, ${seriesKey}
      from daybook_run where tenant_id = ${tenant} and status in ('error', 'timed_out', 'lost') and status <> 'success'
        and seq >= (select min(first_seq) from daybook_run_rollup where ${own})
        and seq <= (select max(last_seq) from daybook_run_rollup where ${own}) and session_seq = ${session}
      group by 2, 3, 4, 5, 6) as failed
    cross join daybook_run run cross join daybook_run_series run_series
    where run.seq = failed.seq and run_series.tenant_id = failed.tenant_id and run_series.kind = failed.kind
      and run_series.name = failed.name and run_series.app = failed.app and run_series.instance = failed.instance`;
}
