// What a fold reads: the runs of a slice, counted by series, session and minute, and those that failed, one by one.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { runStatuses, type RunStatus } from "../run.ts";
import { bucketColumns, durationBounds, type BucketColumn } from "./duration-bucket.ts";

export type SeriesKey = {
  readonly tenant_id: string;
  readonly kind: string;
  readonly name: string;
  readonly app: string;
  readonly instance: number;
};

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

export type Slice = { readonly after: number; readonly to: number };

export const minuteMs = 60_000;

const identity = sql`tenant_id, kind, coalesce(registration, name) as name, coalesce(app, '') as app,
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
  return sql`select ${identity}, session_seq, started_at / ${rawSql(String(minuteMs))} as minute, count(*) as runs,
      ${byStatus} ${byDuration} sum(duration_ms) as sum_ms, max(duration_ms) as max_ms,
      min(seq) as first_seq, max(seq) as last_seq
    from daybook_run run where seq > ${after} and seq <= ${to} group by 1, 2, 3, 4, 5, 6, 7`;
}

// Cancelled and skipped runs ended as somebody meant them to; these are what a person wants to hear of.
export function readFailures({ after, to }: Slice): Sql {
  return sql`select ${identity}, seq, id, started_at, status, coalesce(error_type, 'Error') as error_type,
      substr(coalesce(error_message, ''), 1, 1000) as error_message
    from daybook_run where seq > ${after} and seq <= ${to} and status in ('error', 'timed_out', 'lost') order by seq`;
}
