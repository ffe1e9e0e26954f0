// The last error of each series in a stretch. All that is told of it is of one run.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf, indexedBy, rowSet } from "../../storage/word.ts";
import type { RunStatus } from "../run.ts";
import { minuteMs } from "../rollup/read-slice.ts";
import type { Scope } from "./scope.ts";

export type LastError = {
  readonly runId: string;
  readonly at: number;
  readonly status: RunStatus;
  readonly type: string;
  readonly message: string;
};

/** A series, and the number of its last run in the stretch. */
export type SeriesEnd = { readonly seq: number; readonly last_seq: number };

const columns = { seq: "integer", last_seq: "integer" } as const;

type Row = {
  series_seq: number;
  last_at: number;
  last_run_id: string;
  last_status: RunStatus;
  error_type: string;
  error_message: string;
};

export async function lastErrors(
  store: Store,
  scope: Scope,
  series: readonly SeriesEnd[],
): Promise<Map<number, LastError>> {
  if (series.length === 0) return new Map();
  const [piece] = scope.pieces;
  const statement =
    piece?.span === "session"
      ? ofSession(
          scope,
          series.map(({ seq }) => seq),
          piece.from_at,
        )
      : ofWindow(scope, series);
  const rows = await store.readHeavy<Row>(statement);
  return new Map(
    rows.map((row) => [
      row.series_seq,
      {
        ...{ runId: row.last_run_id, at: row.last_at, status: row.last_status },
        ...{ type: row.error_type, message: row.error_message },
      },
    ]),
  );
}

// Of each series the failures are walked from its last one on: up to its last run of that stretch, which is the number that the
// rollups know.
function ofWindow({ window: { since, until } }: Scope, series: readonly SeriesEnd[]): Sql {
  return sql`select run_failure.* from ${rowSet("v", columns, series)} cross join daybook_run_failure run_failure ${indexedBy("run_failures_by_last")}
    where run_failure.series_seq = v.seq and run_failure.last_seq = (select last.last_seq from daybook_run_failure as last
      where last.series_seq = v.seq and last.last_seq <= v.last_seq
        and last.at >= ${since - (since % minuteMs)} and last.at < ${until} order by last.last_seq desc limit 1)`;
}

// Failures are not counted by session, so the runs themselves are asked, once for all series: the last that failed of each,
// between the session's first number and its last.
function ofSession({ tenant }: Scope, series: readonly number[], session: number): Sql {
  const own = sql`series_seq ${anyOf("integer", series)} and span = 'session' and at = ${session}`;
  return sql`select run_series.seq as series_seq, run.started_at as last_at, run.id as last_run_id, run.status as last_status,
      coalesce(run.error_type, 'Error') as error_type, coalesce(run.error_message, '') as error_message
    from (select max(seq) as seq, kind, coalesce(registration, name) as name, coalesce(app, '') as app,
        coalesce(instance, -1) as instance
      from daybook_run where tenant_id = ${tenant} and status in ('error', 'timed_out', 'lost') and status <> 'success'
        and seq >= (select min(first_seq) from daybook_run_rollup where ${own})
        and seq <= (select max(last_seq) from daybook_run_rollup where ${own}) and session_seq = ${session}
      group by 2, 3, 4, 5) as failed
    cross join daybook_run run cross join daybook_run_series run_series
    where run.seq = failed.seq and run_series.tenant_id = ${tenant} and run_series.kind = failed.kind
      and run_series.name = failed.name and run_series.app = failed.app and run_series.instance = failed.instance`;
}
