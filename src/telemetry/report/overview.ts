// The book at a glance: all runs of a stretch together, by kind and by app.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import type { Dropped } from "../run-batch.ts";
import { onlyOwn } from "../session.ts";
import { rollupsOf, together, type Scope } from "./scope.ts";
import { sums, tallyOf, type SumRow, type Tally } from "./summary.ts";

export type Overview = Tally & {
  readonly since: number;
  readonly until: number;
  readonly byKind: readonly (Tally & { readonly kind: string })[];
  /** On `book.tenant(id)` those that run something of that tenant, or have. */
  readonly sessionsRunning: number;
  /** What the sessions that ran in the stretch could not record or hear; null on `book.tenant(id)`, because nobody knows whose
   *  it was. */
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
    ...{ since, until, ...tallyOf(addedUp(byKind)) },
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

const noRuns = { ...{ runs: 0, sum_ms: 0, success: 0, error: 0, cancelled: 0, timed_out: 0, skipped: 0, lost: 0 } };
