// Errors that look alike as one, the one that happened last first. They are known by name also when their runs have left.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { cutPage, type Page } from "./page.ts";
import { ofSeries, type Scope } from "./scope.ts";
import { appOf, type RunSummary } from "./summary.ts";
import type { LastError } from "./last-error.ts";

export type ErrorGroup = Pick<RunSummary, "kind" | "name" | "app"> & {
  /** The same for errors of one type whose messages differ in numbers, ids and quoted values only. */
  readonly fingerprint: string;
  readonly runs: number;
  readonly firstAt: number;
  /** The last of them; all of it of one run. */
  readonly last: LastError;
};

type Row = {
  kind: string;
  name: string;
  app: string;
  instance: number;
  fingerprint: string;
  runs: number;
  first_at: number;
  last_at: number;
  last_seq: number;
  last_run_id: string;
  last_status: LastError["status"];
  error_type: string;
  error_message: string;
};

export async function readErrors(
  store: Store,
  scope: Scope,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<Page<ErrorGroup>> {
  const { since, until } = scope.window;
  const rows = await store.readHeavy<Row>(sql`select run_series.kind, run_series.name, run_series.app,
      run_series.instance, failure.fingerprint, failure.all_runs as runs, failure.very_first_at as first_at,
      failure.last_at, failure.last_seq, failure.last_run_id, failure.last_status, failure.error_type,
      failure.error_message
    from (select run_failure.*, cast(sum(run_failure.runs) over same as bigint) as all_runs,
        min(run_failure.first_at) over same as very_first_at,
        row_number() over (partition by run_failure.series_seq, run_failure.fingerprint
          order by run_failure.last_seq desc) as place
      from run_series cross join run_failure
      where ${ofSeries(scope)} and run_failure.series_seq = run_series.seq
        and run_failure.at >= ${since} and run_failure.at < ${until}
      window same as (partition by run_failure.series_seq, run_failure.fingerprint)) as failure
    join run_series on run_series.seq = failure.series_seq
    where failure.place = 1 and failure.last_seq < ${before} order by failure.last_seq desc limit ${limit + 1}`);
  return cutPage(rows, limit, (row) => row.last_seq, toGroup);
}

function toGroup(row: Row): ErrorGroup {
  const { kind, name, fingerprint, runs, first_at: firstAt } = row;
  return {
    ...{ kind, name, app: appOf(row), fingerprint, runs, firstAt },
    last: {
      ...{ runId: row.last_run_id, at: row.last_at, status: row.last_status },
      ...{ type: row.error_type, message: row.error_message },
    },
  };
}
