// The tables of apps.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, sequence, strict } from "../storage/word.ts";

export const appMigrations: readonly Migration[] = [
  {
    number: 8,
    name: "app_instance, registration",
    up: [
      // The last word about each instance, whichever process said it. Whether that process still lives, its session says.
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
        changed_at ${integer} not null,
        unique (tenant_id, app_key, instance_index),
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
