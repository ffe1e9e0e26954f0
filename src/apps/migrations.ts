// The tables of apps.
import type { Migration } from "../storage/migrate.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { integer, sequence, strict } from "../storage/word.ts";

export const appMigrations: readonly Migration[] = [
  {
    number: 8,
    name: "app_instance, registration",
    up: [
      // What each process last said about an instance. Whether the process still lives, its session says; a setup clears away
      // what processes said that have ended.
      sql`create table daybook_app_instance (
        seq ${sequence},
        tenant_id text not null,
        app_key text not null,
        instance_index ${integer} not null check (instance_index >= 0),
        session_seq ${integer} not null references daybook_session (seq),
        status text not null check (status in ('starting', 'running', 'failed', 'stopped')),
        error_type text,
        error_message text,
        error_trace text,
        error_at text,
        changed_at ${integer} not null,
        unique (tenant_id, app_key, instance_index, session_seq),
        check ((status = 'failed') = (error_type is not null))
      )${strict}`,
      // What an instance registered, by its name. What it is set to is refreshed by every setup; when it was first seen is
      // not, and what is registered no more stays as long as it has a history.
      sql`create table daybook_registration (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        app_key text not null,
        instance_index ${integer} not null check (instance_index >= 0),
        name text not null,
        kind text not null check (kind in ('listener', 'schedule', 'job')),
        handler_method text not null,
        topic text,
        debounce_ms ${integer},
        throttle_ms ${integer},
        once ${integer} not null check (once in (0, 1)),
        priority ${integer} not null,
        predicate text,
        trigger_type text check (trigger_type in ('cron', 'interval')),
        trigger_value text,
        repeat ${integer} not null check (repeat in (0, 1)),
        args text not null,
        kwargs text not null,
        settings text not null,
        source_location text not null,
        registration_source text,
        first_registered_at ${integer} not null,
        last_registered_at ${integer} not null,
        retired_at ${integer},
        unique (tenant_id, id),
        unique (tenant_id, app_key, instance_index, name),
        check ((kind = 'listener') = (topic is not null)),
        check ((kind = 'schedule') = (trigger_value is not null)),
        check (last_registered_at >= first_registered_at)
      )${strict}`,
    ],
  },
];

/** Views under the names of other designs, made on request; docs/origins.md says what differs. */
export const appViews: readonly View[] = [
  // Over one table PostgreSQL would let them be written; with a common table expression it does not.
  {
    name: "listeners",
    as: sql`with one as (select * from daybook_registration where kind = 'listener') select
        id, tenant_id, app_key, instance_index, name, handler_method, topic, debounce_ms / 1000.0 as debounce,
        throttle_ms / 1000.0 as throttle, once, priority, predicate as predicate_description, source_location,
        registration_source, first_registered_at, last_registered_at, retired_at
      from one`,
  },
  {
    name: "scheduled_jobs",
    as: sql`with one as (select * from daybook_registration where kind = 'schedule') select
        id, tenant_id, app_key, instance_index, name as job_name, handler_method, trigger_type, trigger_value, repeat,
        args as args_json, kwargs as kwargs_json, source_location, registration_source, first_registered_at,
        last_registered_at, retired_at
      from one`,
  },
  // What the registrations did: runs, beside the registration that they belong to. Identity is by name, so a run finds its
  // listener or schedule also after a restart, and shows null for one that belongs to no app.
  {
    name: "handler_invocations",
    as: sql`select ${columns("listener_id")}
      from ${runsOf("listener")} where run.kind in ('listener', 'delivery')`,
  },
  {
    name: "job_executions",
    as: sql`select ${columns("job_id")}
      from ${runsOf("schedule")} where run.kind = 'schedule'`,
  },
];

// The seed knows three ends: what timed out or was lost is an error, and what was skipped did not take place.
function columns(parent: "listener_id" | "job_id"): Sql {
  return sql`run.id, run.tenant_id, registration.id as ${rawSql(parent)}, session.id as session_id,
    run.started_at as execution_start_dtme, run.started_at as execution_start_ts, run.duration_ms,
    case when run.status in ('timed_out', 'lost') then 'error' when run.status = 'skipped' then 'cancelled'
      else run.status end as status,
    run.error_type, run.error_message, run.error_trace as error_traceback`;
}

// That the name is the run's registration is said twice: once as a registration is found for a run, and once as the index
// runs_registered has it, so that the runs of a registration are found without reading all. "|| ''" takes from the column its
// affinity, without which SQLite does not compare it with an expression by an index.
function runsOf(kind: "listener" | "schedule"): Sql {
  return sql`daybook_run run left join daybook_session session on session.seq = run.session_seq
    left join daybook_registration registration on registration.tenant_id = run.tenant_id and registration.app_key = run.app
      and registration.instance_index = run.instance and registration.name = run.registration
      and coalesce(run.registration, run.name) = (registration.name || '') and (run.job_seq is null or run.registration is not null)
      and registration.kind = ${rawSql(`'${kind}'`)}`;
}
