// The tables of telemetry. A session is one process attached to the book; it belongs to no tenant.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, real, sequence, strict } from "../storage/word.ts";
import { rollupTables } from "./rollup/tables.ts";

export const telemetryMigrations: readonly Migration[] = [
  {
    number: 1,
    name: "session",
    up: [
      sql`create table session (
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
        check ((status = 'running') = (stopped_at is null)),
        check ((status = 'error') = (error_type is not null)),
        check (last_heartbeat_at >= started_at)
      )${strict}`,
      sql`create index sessions_running on session (seq) where status = 'running'`,
      // PostgreSQL lets a view over one table be written; one with a common table expression it does not.
      sql`create view sessions as with one as (select * from session) select
        id, id as session_id, null as namespace, null as tenant_id, started_at, stopped_at, last_heartbeat_at,
        last_heartbeat_at as last_heartbeat, status, error_type, error_message, error_trace as error_traceback,
        metadata, host, pid
      from one`,
    ],
  },
  {
    number: 2,
    name: "run",
    up: [
      // One row for each execution that has ended, written once. While it is open, a run is its job's row. Only the
      // index of the id is on the hot path; lists by name and time read rollups or scan off the event loop.
      sql`create table run (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        kind text not null,
        name text not null,
        job_id text,
        session_seq ${integer} references session (seq),
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
        unique (tenant_id, id)
      )${strict}`,
      sql`create table run_log (
        seq ${sequence},
        tenant_id text not null,
        run_id text not null,
        logged_at ${integer} not null,
        level text not null check (level in ('debug', 'info', 'warn', 'error')),
        message text not null,
        fields text
      )${strict}`,
      sql`create index run_logs_of_run on run_log (tenant_id, run_id, seq)`,
    ],
  },
  {
    number: 7,
    name: "live runs",
    up: [
      // A live listener's run belongs to no job: what it heard stands with it. No index is added: such runs are many.
      sql`alter table run add column event_id text`,
      sql`alter table run add column topic text`,
      // What a session could not keep or do, so that nobody takes silence for peace.
      sql`alter table session add column dropped_runs ${integer} not null default 0`,
      sql`alter table session add column dropped_logs ${integer} not null default 0`,
      sql`alter table session add column dropped_events ${integer} not null default 0`,
    ],
  },
  {
    number: 10,
    name: "owners of runs, rollups",
    up: [
      // Whose run it is: the app, its instance and the name under which it registered the listener or schedule. Names, not
      // numbers: history follows them across restarts. A job that an app made hands them on to its run.
      sql`alter table run add column app text`,
      sql`alter table run add column instance ${integer}`,
      sql`alter table run add column registration text`,
      sql`alter table job add column app text`,
      sql`alter table job add column instance ${integer}`,
      sql`alter table job add column registration text`,
      // The span in which it was made, for whoever traces.
      sql`alter table job add column traceparent text`,
      // Only what an app or a schedule registered, and what did not succeed, pays for an index: the path of most runs is as
      // it was. Lists of other runs are bounded by what rollups know of their numbers.
      sql`create index runs_registered on run (tenant_id, (coalesce(registration, name)), seq)
        where job_id is null or registration is not null`,
      sql`create index runs_unlike_success on run (tenant_id, status, seq) where status <> 'success'`,
      ...rollupTables,
    ],
  },
];
