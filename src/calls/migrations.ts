// The tables of calls. The status is tied to its times, one attempt at most is open, and what belongs to a call goes with it.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { integer, jsonText, real, sequence, strict } from "../storage/word.ts";
import { jobNow } from "../jobs/job.ts";

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
        key_id text,
        kept text not null check (kept in ('sealed', 'clear', 'until_ended')),
        fingerprint text,
        request text not null,
        content text,
        policy text not null,
        outcome text,
        correlation_id text not null,
        idempotency_key text,
        send_key text not null,
        resend_of text,
        -- 1 when it tells of the end of a job or a group.
        notice ${integer} not null check (notice in (0, 1)),
        unique (tenant_id, id),
        check (started_at >= submitted_at and started_at >= due_at),
        check (finished_at >= coalesce(started_at, submitted_at)),
        check ((finished_at is null) = (outcome is null)),
        check ((kept = 'sealed') = (key_id is not null)),
        check ((content is null) = (kept = 'until_ended' and finished_at is not null)),
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
      sql`create index call_notices_open on daybook_call (tenant_id) where notice = 1 and finished_at is null`,
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
        response_status ${integer},
        response_bytes ${integer},
        response_truncated ${integer} not null default 0,
        key_id text,
        answer text,
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
        check (finished_at is not null or (response_status is null and error_kind is null and total_ms is null)),
        check (case when answer is null then key_id is null else response_status is not null end)
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

/** Views under the names of other designs, made on request; docs/origins.md says what differs. */
export const callViews: readonly View[] = [
  {
    name: "service_calls",
    as: sql`with one as (select * from daybook_call) select
        tenant_id, id as service_call_id, name,
        upper(substr(status, 1, 1)) || substr(status, 2) as status, submitted_at, due_at, started_at, finished_at,
        request as request_spec, outcome as outcome_meta
      from one`,
  },
  {
    name: "service_call_tags",
    as: sql`with one as (select * from daybook_call_tag) select
        tenant_id, call_id as service_call_id, tag
      from one`,
  },
  {
    name: "timer_schedules",
    as: sql`with one as (select * from daybook_call) select
        tenant_id, id as service_call_id, correlation_id, due_at, submitted_at as registered_at,
        started_at as reached_at,
        case when started_at is not null then 'Reached' when status = 'cancelled' then 'Cancelled' else 'Scheduled' end as state
      from one`,
  },
  {
    name: "http_execution_log",
    as: sql`select attempt.tenant_id, attempt.call_id as service_call_id, attempt.id as execution_id, attempt.started_at,
        attempt.finished_at, ${jsonText("call.request", ["url"])} as request_url, call.method as request_method,
        ${jsonText("call.request", ["headers"])} as request_headers, ${jsonText("call.request", ["body"])} as request_body,
        cast(attempt.response_status as text) as response_status,
        case when attempt.key_id is null then ${jsonText("attempt.answer", ["headers"])} end as response_headers,
        case when attempt.key_id is null then ${jsonText("attempt.answer", ["body"])} end as response_body,
        attempt.error_message
      from daybook_call_attempt attempt join daybook_call call on call.tenant_id = attempt.tenant_id
        and call.id = attempt.call_id`,
  },
  // A sink is a listener whose name begins with "sink:"; the last job of a delivery says whether it went out. A
  // delivery that an operator passed over or discarded will not go out, so the view leaves it out: it would look unpublished for ever.
  {
    name: "outbox",
    as: sql`select
        event.seq as id, event.tenant_id, coalesce(event.key, event.id) as aggregate_id, event.topic as event_type,
        event.payload as event_payload, event.published_at as created_at,
        case job.status when 'completed' then job.finished_at end as published_at, substr(job.name, 15) as sink
      from ${jobNow} join daybook_event event on event.tenant_id = job.tenant_id and event.seq = job.kind_seq
      left join daybook_job later on later.retry_of = job.seq
      where job.kind = 'delivery' and later.seq is null and substr(job.name, 1, 14) = 'listener:sink:'
        and job.status not in ('cancelled', 'skipped') and not exists (select 1 from daybook_dead_letter letter
          where letter.tenant_id = job.tenant_id and letter.event_seq = event.seq and letter.job_id = job.id
            and letter.status = 'discarded')`,
  },
];
