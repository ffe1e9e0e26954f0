// The tables of telemetry. A session is one process attached to the book; it belongs to no tenant.
import type { Migration } from "../storage/migrate.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { clustered, integer, neverChanges, real, sequence, strict } from "../storage/word.ts";
import { bucketColumns } from "./rollup/series.ts";

const buckets = joinSql(bucketColumns.map((name) => sql`${rawSql(name)} ${integer} not null,`));

/** The tables of rollups. A fold fills them from `run`, and they stay when the runs have left. */
const rollupTables: readonly Sql[] = [
  // A series counts one job, listener, schedule … of one tenant and, if it has one, of one app instance. An empty app and instance
  // −1 mean none, because a key must not hold null. The series with the empty name counts all runs of the tenant and kind together,
  // so that an overview costs the same however many series there are.
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
  // The runs of one series that started in one minute, hour or day, that one session ran, or that ever were, because a counter that
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
  // Failures that look alike, by minute, with the last of them, so that an error keeps its name when its run has left.
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
  // Finds the last error of a series by a seek.
  sql`create index run_failures_by_last on daybook_run_failure (series_seq, last_seq)`,
  // One row, the mark: rollups count all runs up to this number. A fold locks it, and so does a removal of folded runs.
  sql`create table daybook_run_fold (
    one ${integer} primary key check (one = 1),
    folded_seq ${integer} not null
  )${strict}`,
  sql`insert into daybook_run_fold (one, folded_seq) values (1, 0)`,
  // Runs that retention must keep, with the reason.
  sql`create table daybook_run_pin (
    tenant_id text not null,
    run_id text not null,
    pinned_at ${integer} not null,
    note text,
    primary key (tenant_id, run_id)
  )${strict}`,
  // What retention removed, by day, so that a reader does not take a gap in the history for a quiet day.
  sql`create table daybook_eviction (
    tenant_id text not null,
    day_at ${integer} not null,
    what text not null check (what in ('decision', 'event', 'job', 'log', 'reservation', 'rollup', 'run')),
    reason text not null check (reason in ('age', 'size', 'count')),
    removed ${integer} not null,
    -- When the oldest and the newest of what was removed were made, and when it was last removed.
    from_at ${integer} not null,
    until_at ${integer} not null,
    removed_at ${integer} not null,
    primary key (tenant_id, day_at, what, reason)
  )${strict}`,
  // One row: how long things stay, as the last program that said so wants it (JSON), and when a process last saw to it.
  sql`create table daybook_retention (
    one ${integer} primary key check (one = 1),
    policy text not null,
    applied_at ${integer}
  )${strict}`,
  sql`insert into daybook_retention (one, policy) values (1, '{}')`,
];

export const telemetryMigrations: readonly Migration[] = [
  {
    number: 1,
    name: "session",
    up: [
      sql`create table daybook_session (
        seq ${sequence},
        id text not null unique,
        host text not null,
        host_boot text,
        host_namespace text,
        pid ${integer} not null,
        process_started text,
        started_at ${integer} not null,
        beat ${integer} not null default 0,
        last_heartbeat_at ${integer} not null,
        stopped_at ${integer},
        status text not null default 'running' check (status in ('running', 'success', 'error', 'unknown')),
        error_type text,
        error_message text,
        error_trace text,
        metadata text not null default '{}',
        -- What it could not keep or do, so that nobody takes silence for peace.
        dropped_runs ${integer} not null default 0,
        dropped_logs ${integer} not null default 0,
        dropped_events ${integer} not null default 0,
        check ((status = 'running') = (stopped_at is null)),
        check ((status = 'error') = (error_type is not null)),
        check (last_heartbeat_at >= started_at)
      )${strict}`,
      sql`create index sessions_running on daybook_session (seq) where status = 'running'`,
    ],
  },
  {
    number: 2,
    name: "run, run_log, rollups",
    up: [
      // One row for each execution that has ended, written once. An open run is its job's row in the line. Only the index of the id
      // is on the hot path; lists by name and time read rollups or scan off the event loop.
      sql`create table daybook_run (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        kind text not null,
        name text not null,
        -- The job that it was an execution of; null for a live listener's. No foreign keys: see decision 019.
        job_seq ${integer},
        session_seq ${integer},
        attempt ${integer} not null,
        started_at ${integer} not null,
        ended_at ${integer} not null,
        duration_ms ${real} not null check (duration_ms >= 0),
        status text not null check (status in ('success', 'error', 'cancelled', 'timed_out', 'skipped', 'lost')),
        error_type text,
        error_message text,
        error_trace text,
        result text,
        -- Why what the handler returned was not kept.
        result_refused text,
        cause_run_id text,
        root_run_id text,
        -- A live listener's run belongs to no job: what it heard stands with it. No index is added: such runs are many.
        event_id text,
        topic text,
        -- Whose run it is: the app, its instance and the name under which it registered the listener or schedule. Names, not
        -- numbers: history follows them across restarts. A job that an app made hands them on to its run.
        app text,
        instance ${integer},
        registration text
      )${strict}`,
      sql`create unique index runs_by_id on daybook_run (id)`,
      sql`create unique index runs_one_per_job on daybook_run (job_seq) where job_seq is not null`,
      // Retention removes runs; no statement rewrites them.
      sql`${neverChanges("daybook_run", "an ended run never changes")}`,
      // Only runs that an app or a schedule registered, and those that did not succeed, have further indexes, so most runs cost no
      // more. Rollups bound the lists of other runs by their numbers.
      sql`create index runs_registered on daybook_run (tenant_id, (coalesce(registration, name)), seq)
        where job_seq is null or registration is not null`,
      sql`create index runs_unlike_success on daybook_run (tenant_id, status, seq) where status <> 'success'`,
      sql`create table daybook_run_log (
        seq ${sequence},
        tenant_id text not null,
        run_id text not null,
        logged_at ${integer} not null,
        level text not null check (level in ('debug', 'info', 'warn', 'error')),
        message text not null,
        fields text
      )${strict}`,
      sql`create index run_logs_of_run on daybook_run_log (tenant_id, run_id, seq)`,
      ...rollupTables,
    ],
  },
];

/** Views under the names of other designs, made on request; docs/origins.md says what differs. */
export const telemetryViews: readonly View[] = [
  // PostgreSQL allows writes to a view over one table, but not to a view with a common table expression.
  {
    name: "sessions",
    as: sql`with one as (select * from daybook_session) select
        id, id as session_id, null as namespace, null as tenant_id, started_at, stopped_at, last_heartbeat_at,
        last_heartbeat_at as last_heartbeat, status, error_type, error_message, error_trace as error_traceback,
        metadata, host, pid
      from one`,
  },
];
