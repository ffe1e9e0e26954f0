// Errors that look alike as one, the one that happened last first. They are known by name also when their runs have left.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { indexedBy, seekEach } from "../../storage/word.ts";
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
  const found = sql`run_failure.series_seq = run_series.seq and run_failure.at >= ${since} and run_failure.at < ${until}`;
  // Counted first, and only then looked at: what is told of the last of each is read for one page.
  const rows = await store.readHeavy<Row>(sql`select run_series.kind, run_series.name, run_series.app,
      run_series.instance, alike.fingerprint, alike.runs, alike.first_at, last.last_at, last.last_seq, last.last_run_id,
      last.last_status, last.error_type, last.error_message
    from (select run_failure.series_seq, run_failure.fingerprint, cast(sum(run_failure.runs) as bigint) as runs,
        min(run_failure.first_at) as first_at, max(run_failure.last_seq) as last_seq
      from daybook_run_series run_series ${seekEach("run_failure", found)} where ${ofSeries(scope)}
      group by run_failure.series_seq, run_failure.fingerprint having max(run_failure.last_seq) < ${before}
      order by max(run_failure.last_seq) desc limit ${limit + 1}) as alike
    join daybook_run_series run_series on run_series.seq = alike.series_seq
    join daybook_run_failure as last ${indexedBy("run_failures_by_last")} on last.series_seq = alike.series_seq and last.last_seq = alike.last_seq
    order by last.last_seq desc`);
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
