// The tables of calls. The status is tied to its times, one attempt at most is open, and what belongs to a call goes with it.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, real, sequence, strict } from "../storage/word.ts";

export const callMigrations: readonly Migration[] = [
  {
    number: 7,
    name: "call, call_tag, call_attempt, call_host",
    up: [
      sql`create table daybook_call (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        name text not null,
        status text not null,
        submitted_at ${integer} not null,
        due_at ${integer} not null,
        started_at ${integer},
        finished_at ${integer},
        method text not null check (method in ('GET', 'POST', 'PUT', 'DELETE', 'PATCH')),
        host text not null,
        request text not null,
        content text not null,
        key_id text,
        policy text not null,
        outcome text,
        correlation_id text not null,
        idempotency_key text,
        send_key text not null,
        resend_of text,
        unique (tenant_id, id),
        check (started_at >= submitted_at and started_at >= due_at),
        check (finished_at >= coalesce(started_at, submitted_at)),
        check ((finished_at is null) = (outcome is null)),
        check (case status
          when 'scheduled' then started_at is null and finished_at is null
          when 'running' then started_at is not null and finished_at is null
          when 'cancelled' then finished_at is not null
          else status in ('succeeded', 'failed') and started_at is not null and finished_at is not null end)
      )${strict}`,
      sql`create index calls_of_tenant on daybook_call (tenant_id, status, seq)`,
      sql`create index calls_by_correlation on daybook_call (tenant_id, correlation_id, seq) where correlation_id <> id`,
      sql`create unique index calls_one_per_idempotency_key on daybook_call (tenant_id, idempotency_key)
        where idempotency_key is not null`,
      sql`create table daybook_call_tag (
        tenant_id text not null,
        call_id text not null,
        tag text not null,
        primary key (tenant_id, call_id, tag),
        foreign key (tenant_id, call_id) references daybook_call (tenant_id, id) on delete cascade
      )${strict}`,
      sql`create index calls_by_tag on daybook_call_tag (tenant_id, tag, call_id)`,
      // One row for each time a request was, or may have been, sent. It is there before the socket opens.
      sql`create table daybook_call_attempt (
        tenant_id text not null,
        call_id text not null,
        id text not null,
        number ${integer} not null check (number >= 1),
        started_at ${integer} not null,
        finished_at ${integer},
        method text not null check (method in ('GET', 'POST', 'PUT', 'DELETE', 'PATCH')),
        url text not null,
        request_headers text not null,
        request_body text,
        response_status ${integer},
        response_headers text,
        response_body text,
        response_base64 ${integer} not null default 0,
        response_bytes ${integer},
        response_truncated ${integer} not null default 0,
        hops text,
        error_kind text,
        error_message text,
        dns_ms ${real},
        connect_ms ${real},
        tls_ms ${real},
        first_byte_ms ${real},
        total_ms ${real},
        primary key (tenant_id, call_id, id),
        foreign key (tenant_id, call_id) references daybook_call (tenant_id, id) on delete cascade,
        check (finished_at >= started_at),
        check (finished_at is not null or (response_status is null and error_kind is null and total_ms is null))
      )${strict}`,
      sql`create unique index call_attempts_one_open on daybook_call_attempt (tenant_id, call_id) where finished_at is null`,
      // A host that fails again and again is left alone for a while; then one call may try it.
      sql`create table daybook_call_host (
        tenant_id text not null,
        host text not null,
        failures ${integer} not null check (failures >= 0),
        opened_at ${integer},
        probe_at ${integer},
        probe_call_seq ${integer},
        primary key (tenant_id, host),
        check ((opened_at is null) = (probe_at is null)),
        check (probe_call_seq is null or probe_at is not null)
      )${strict}`,
      sql`create index call_hosts_to_probe on daybook_call_host (probe_at) where probe_at is not null`,
      sql`create index call_hosts_back on daybook_call_host (tenant_id, host) where failures = 0`,
    ],
  },
];
