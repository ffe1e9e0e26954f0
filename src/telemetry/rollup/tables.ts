// The tables of rollups. They are folded from `run`, and stay when the runs have left.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { integer, real, sequence, strict, clustered } from "../../storage/word.ts";
import { bucketColumns } from "./duration-bucket.ts";

const buckets = joinSql(bucketColumns.map((name) => sql`${rawSql(name)} ${integer} not null,`));

export const rollupTables: readonly Sql[] = [
  // What is counted by itself: a job, a listener, a schedule … of one tenant and, if it has one, of one instance of an app.
  // An empty app and instance −1 mean none: a key with null in it would not be one. Nothing has an empty name: under that, all
  // runs of the tenant and kind are counted together, so that a look at everything costs the same however much there is.
  sql`create table daybook_run_series (
    seq ${sequence},
    tenant_id text not null,
    kind text not null,
    name text not null,
    app text not null,
    instance ${integer} not null,
    -- The lines of its runs up to this one have left by retention.
    logs_gone_seq ${integer} not null default 0,
    unique (tenant_id, kind, name, app, instance)
  )${strict}`,
  // The runs of one series that started in one minute, hour or day, that one session ran, or that ever were: a counter that
  // others scrape must not go back when days leave. "at" is the start of the span in milliseconds, the session's number, or 0. first_seq and last_seq say between which rows of run they are.
  sql`create table daybook_run_rollup (
    series_seq ${integer} not null references daybook_run_series (seq),
    span text not null check (span in ('minute', 'hour', 'day', 'session', 'ever')),
    at ${integer} not null,
    first_seq ${integer} not null,
    last_seq ${integer} not null,
    runs ${integer} not null,
    success ${integer} not null,
    error ${integer} not null,
    cancelled ${integer} not null,
    timed_out ${integer} not null,
    skipped ${integer} not null,
    lost ${integer} not null,
    sum_ms ${real} not null,
    max_ms ${real} not null,
    ${buckets}
    primary key (series_seq, span, at),
    check (runs = success + error + cancelled + timed_out + skipped + lost)
  )${clustered}`,
  // Failures that look alike, by minute, with the last of them: so an error is known by name when its run has left.
  sql`create table daybook_run_failure (
    series_seq ${integer} not null references daybook_run_series (seq),
    at ${integer} not null,
    fingerprint text not null,
    runs ${integer} not null,
    first_at ${integer} not null,
    last_at ${integer} not null,
    last_seq ${integer} not null,
    last_run_id text not null,
    last_status text not null,
    error_type text not null,
    error_message text not null,
    primary key (series_seq, at, fingerprint)
  )${clustered}`,
  // The last error of a series is found by a seek.
  sql`create index run_failures_by_last on daybook_run_failure (series_seq, last_seq)`,
  // One row: all runs up to this number are in the rollups. Whoever folds, and whoever removes what was folded, locks it.
  sql`create table daybook_run_fold (
    one ${integer} primary key check (one = 1),
    folded_seq ${integer} not null
  )${strict}`,
  sql`insert into daybook_run_fold (one, folded_seq) values (1, 0)`,
  // Runs that somebody wants to keep, with the reason.
  sql`create table daybook_run_pin (
    tenant_id text not null,
    run_id text not null,
    pinned_at ${integer} not null,
    note text,
    primary key (tenant_id, run_id)
  )${strict}`,
  // What retention has removed, by day, so that nobody takes a gap in the history for peace.
  sql`create table daybook_run_eviction (
    tenant_id text not null,
    day_at ${integer} not null,
    what text not null check (what in ('run', 'log', 'rollup')),
    reason text not null check (reason in ('age', 'size')),
    removed ${integer} not null,
    -- The newest of what was removed.
    until_at ${integer} not null,
    primary key (tenant_id, day_at, what, reason)
  )${strict}`,
];
