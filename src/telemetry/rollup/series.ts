// The series of runs, and what a fold reads of them: the runs of a slice, counted by series, session and minute, and the failed
// ones one by one.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { insertInto, rowSet, type RowOf } from "../../storage/word.ts";
import { runStatuses, type RunStatus } from "../run.ts";

const columns = { tenant_id: "text", kind: "text", name: "text", app: "text", instance: "integer" } as const;

export type SeriesKey = Readonly<RowOf<typeof columns>>;

/** The name of the series that counts all runs of a tenant and kind together. */
export const wholeName = "";

export function wholeOf({ tenant_id, kind }: SeriesKey): SeriesKey {
  return { tenant_id, kind, name: wholeName, app: "", instance: -1 };
}

/** The number of each key's series, in the order of the keys. Each is found by its names, or made. The caller holds the mark. */
export async function seriesOf(tx: Tx, keys: readonly SeriesKey[]): Promise<number[]> {
  const wanted = new Map(keys.map((key) => [idOf(key), key]));
  const found = new Map<string, number>();
  for (const part of inParts([...wanted.values()])) {
    for (const row of await find(tx, part)) found.set(idOf(row), row.seq);
    const missing = part.filter((key) => !found.has(idOf(key)));
    if (missing.length === 0) continue;
    await tx.run(insertInto("daybook_run_series", columns, missing));
    for (const row of await find(tx, missing)) found.set(idOf(row), row.seq);
  }
  return keys.map((key) => found.get(idOf(key)) ?? 0);
}

function find(tx: Tx, keys: readonly SeriesKey[]) {
  return tx.all<SeriesKey & { seq: number }>(sql`select run_series.* from ${rowSet("v", columns, keys)}
    cross join daybook_run_series run_series where run_series.tenant_id = v.tenant_id and run_series.kind = v.kind
      and run_series.name = v.name and run_series.app = v.app and run_series.instance = v.instance`);
}

function idOf({ tenant_id, kind, name, app, instance }: SeriesKey): string {
  return JSON.stringify([tenant_id, kind, name, app, instance]);
}

const rowsMax = 1000;

/** Rows in parts that fit into one statement. */
function* inParts<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let from = 0; from < rows.length; from += rowsMax) yield rows.slice(from, from + rowsMax);
}

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** The upper bounds of the buckets in milliseconds, each twice the one before; a last bucket takes what is longer. Counts can be
 *  added up and percentiles cannot, so every span of time gets its percentiles from the sum of its buckets. */
export const durationBounds: readonly number[] = Array.from({ length: 23 }, (_, index) => 0.5 * 2 ** index);

export type BucketColumn = `took_${number}`;

/** The columns of `run_rollup` that hold the counts of the buckets. */
export const bucketColumns: readonly BucketColumn[] = [...durationBounds, Infinity].map(
  (_, index): BucketColumn => `took_${index}`,
);

/** The columns of `run_rollup` that are added up. */
export type AddedColumn = "runs" | RunStatus | "sum_ms" | BucketColumn;
export type Counts = Record<AddedColumn, number> & { first_seq: number; last_seq: number; max_ms: number };
export type Counted = SeriesKey & Counts & { readonly minute: number; readonly session_seq: number | null };

export type Failed = SeriesKey & {
  readonly seq: number;
  readonly id: string;
  readonly started_at: number;
  readonly status: RunStatus;
  readonly error_type: string;
  readonly error_message: string;
};

/** The runs with a number above `after` and up to `to`. */
export type Slice = { readonly after: number; readonly to: number };

/** The key of a run's series, spelt from the columns of `run`. */
export const seriesKey = sql`tenant_id, kind, coalesce(registration, name) as name, coalesce(app, '') as app,
  coalesce(instance, -1) as instance`;

const byStatus = joinSql(
  runStatuses.map((status) => rawSql(`sum(case when status = '${status}' then 1 else 0 end) as ${status},`)),
);

const byDuration = joinSql(
  bucketColumns.map((column, index) => {
    const from = index === 0 ? "" : `duration_ms > ${durationBounds[index - 1]} and `;
    const to = index === durationBounds.length ? "true" : `duration_ms <= ${durationBounds[index]}`;
    return rawSql(`sum(case when ${from}${to} then 1 else 0 end) as ${column},`);
  }),
);

export function countRuns({ after, to }: Slice): Sql {
  return sql`select ${seriesKey}, session_seq, started_at / ${rawSql(String(minuteMs))} as minute, count(*) as runs,
      ${byStatus} ${byDuration} sum(duration_ms) as sum_ms, max(duration_ms) as max_ms,
      min(seq) as first_seq, max(seq) as last_seq
    from daybook_run run where seq > ${after} and seq <= ${to} group by 1, 2, 3, 4, 5, 6, 7`;
}

/** Cancelled and skipped runs are left out: a caller or a rule wanted them to end that way. */
export function readFailures({ after, to }: Slice): Sql {
  return sql`select ${seriesKey}, seq, id, started_at, status, coalesce(error_type, 'Error') as error_type,
      substr(coalesce(error_message, ''), 1, 1000) as error_message
    from daybook_run where seq > ${after} and seq <= ${to} and status in ('error', 'timed_out', 'lost') order by seq`;
}

/** The duration that the share `p` of the runs did not exceed; null without runs. It lies in the same bucket as the exact one, so
 *  it is less than twice and more than half of it. */
export function percentile(counts: readonly number[], maxMs: number, p: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(p * total));
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (before + count < rank) {
      before += count;
      continue;
    }
    const from = index === 0 ? 0 : (durationBounds[index - 1] ?? 0);
    const to = Math.max(from, Math.min(maxMs, durationBounds[index] ?? maxMs));
    return from + ((to - from) * (rank - before)) / count;
  }
  return maxMs;
}
