// The last error of each series in a stretch. All that is told of it is of one run.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
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
  series: readonly number[],
): Promise<Map<number, LastError>> {
  if (series.length === 0) return new Map();
  const [piece] = scope.pieces;
  const statement = piece?.span === "session" ? ofSession(scope, series, piece.from_at) : ofWindow(scope, series);
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

function ofWindow({ window: { since, until } }: Scope, series: readonly number[]): Sql {
  return sql`select * from (
      select run_failure.*, row_number() over (partition by series_seq order by last_seq desc) as place
      from run_failure where series_seq ${anyOf("integer", series)}
        and at >= ${since - (since % minuteMs)} and at < ${until}) as failure
    where place = 1`;
}

// Failures are not counted by session, so the runs themselves are asked: the failed ones between the session's numbers.
function ofSession({ tenant }: Scope, series: readonly number[], session: number): Sql {
  return sql`select * from (
      select run_series.seq as series_seq, run.started_at as last_at, run.id as last_run_id, run.status as last_status,
        coalesce(run.error_type, 'Error') as error_type, coalesce(run.error_message, '') as error_message,
        row_number() over (partition by run_series.seq order by run.seq desc) as place
      from run_series cross join run_rollup cross join run
      where run_series.seq ${anyOf("integer", series)} and run_rollup.series_seq = run_series.seq
        and run_rollup.span = 'session' and run_rollup.at = ${session} and run.tenant_id = ${tenant}
        and run.status in ('error', 'timed_out', 'lost') and run.status <> 'success'
        and run.seq >= run_rollup.first_seq and run.seq <= run_rollup.last_seq and run.session_seq = ${session}
        and run.kind = run_series.kind and coalesce(run.registration, run.name) = run_series.name
        and coalesce(run.app, '') = run_series.app and coalesce(run.instance, -1) = run_series.instance) as failure
    where place = 1`;
}
