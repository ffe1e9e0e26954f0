// The tables of telemetry. A session is one process attached to the book; it belongs to no tenant.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, sequence, strict } from "../storage/word.ts";

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
      sql`create view sessions as select
        id, id as session_id, null as namespace, null as tenant_id, started_at, stopped_at, last_heartbeat_at,
        last_heartbeat_at as last_heartbeat, status, error_type, error_message, error_trace as error_traceback,
        metadata, host, pid
      from session`,
    ],
  },
];
