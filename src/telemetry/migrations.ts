// The tables of telemetry. A session is one process attached to the book; it belongs to no tenant.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, neverChanges, real, sequence, strict } from "../storage/word.ts";
import { rollupTables } from "./rollup/tables.ts";

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
      // One row for each execution that has ended, written once. While it is open, a run is its job's row. Only the
      // index of the id is on the hot path; lists by name and time read rollups or scan off the event loop.
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
      // Retention removes runs; nobody rewrites them.
      sql`${neverChanges("daybook_run", "an ended run never changes")}`,
      // Only what an app or a schedule registered, and what did not succeed, pays for an index: the path of most runs is as
      // it was. Lists of other runs are bounded by what rollups know of their numbers.
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
