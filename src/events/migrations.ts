// The tables of events.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { integer, sequence, strict } from "../storage/word.ts";
import { jobNow } from "../jobs/job.ts";

export const eventMigrations: readonly Migration[] = [
  {
    number: 5,
    name: "event, listener, dead_letter",
    up: [
      sql`create table daybook_event (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        topic text not null,
        payload text not null,
        priority ${integer} not null check (priority between -1000 and 1000),
        key text,
        dedupe_key text,
        dedupe_until ${integer},
        headers text,
        published_at ${integer} not null,
        available_at ${integer} not null,
        -- How long that is from its publishing on; null when a moment was given, or nothing.
        delay_ms ${integer},
        root_event_id text not null,
        parent_event_id text,
        -- One more than the limit of publishing: a dead letter is told even at the end of a chain.
        chain_depth ${integer} not null check (chain_depth between 0 and 21),
        cause_run_id text,
        root_run_id text,
        replay_of text,
        deliveries ${integer} not null check (deliveries >= 0),
        unique (tenant_id, id),
        check (available_at >= published_at),
        check (dedupe_until is null or dedupe_key is not null),
        check ((chain_depth = 0) = (root_event_id = id)),
        check ((chain_depth = 0) = (parent_event_id is null))
      )${strict}`,
      sql`create index events_in_order on daybook_event (tenant_id, seq)`,
      sql`create unique index events_one_per_dedupe_key on daybook_event (tenant_id, dedupe_key) where dedupe_key is not null`,
      // Most events begin a chain, and do not pay for it.
      sql`create index events_of_chain on daybook_event (tenant_id, root_event_id, seq) where chain_depth > 0`,
      // A listener is known by its name. It gets what is published while it is live. Past events are delivered to it in
      // slices, and it goes live when it has all of them.
      sql`create table daybook_listener (
        seq ${sequence},
        tenant_id text not null,
        name text not null,
        topics text not null,
        predicate text,
        queue text not null,
        ordered ${integer} not null check (ordered in (0, 1)),
        attempts ${integer} not null check (attempts >= 1),
        backoff text,
        timeout_ms ${integer} check (timeout_ms > 0),
        losses ${integer} not null check (losses >= 0),
        concurrency ${integer} check (concurrency >= 1),
        starts_from text not null check (starts_from in ('now', 'beginning', 'time', 'event')),
        starts_at ${integer},
        starts_seq ${integer} not null,
        state text not null check (state in ('live', 'catching_up', 'removed')),
        heard_seq ${integer} not null,
        heard_to ${integer},
        -- 1: one of each tenant; that of the tenant '*' is for who is to come.
        for_all ${integer} not null check (for_all in (0, 1)),
        registered_at ${integer} not null,
        updated_at ${integer} not null,
        removed_at ${integer},
        unique (tenant_id, name),
        check ((state = 'removed') = (removed_at is not null)),
        check ((state = 'catching_up') = (heard_to is not null))
      )${strict}`,
      // One row: a change of listeners gives it a new stamp, so that publishers know by one read whether their index in
      // memory is still valid.
      sql`create table daybook_listener_change (
        one ${integer} primary key check (one = 1),
        stamp text not null
      )${strict}`,
      sql`insert into daybook_listener_change (one, stamp) values (1, '')`,
      sql`create table daybook_dead_letter (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        event_seq ${integer} not null references daybook_event (seq),
        listener_seq ${integer} not null references daybook_listener (seq),
        order_key text,
        job_id text not null,
        status text not null check (status in ('dead', 'redriving', 'recovered', 'discarded')),
        attempts ${integer} not null check (attempts >= 1),
        error_type text not null,
        error_message text not null,
        first_failed_at ${integer} not null,
        failed_at ${integer} not null,
        redrives ${integer} not null default 0,
        ended_at ${integer},
        reason text,
        unique (tenant_id, id),
        unique (tenant_id, event_seq, listener_seq),
        check ((status in ('recovered', 'discarded')) = (ended_at is not null))
      )${strict}`,
      sql`create index dead_letters_open on daybook_dead_letter (tenant_id, seq) where ended_at is null`,
      sql`create index dead_letters_of_event on daybook_dead_letter (event_seq)`,
      sql`create index dead_letters_in_order on daybook_dead_letter (tenant_id, order_key, event_seq)
        where ended_at is null and order_key is not null`,
      // One chain of deliveries for each event and listener. Each retry is the only one of its parent already.
      sql`create unique index deliveries_one_chain on daybook_job (tenant_id, kind_seq, name)
        where kind = 'delivery' and retry_of is null`,
    ],
  },
  {
    number: 12,
    name: "what a run has made: events",
    up: [sql`create index events_caused on daybook_event (tenant_id, cause_run_id) where cause_run_id is not null`],
  },
];

/** The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request. */
export const eventViews: readonly View[] = [
  {
    name: "events",
    as: sql`with one as (select * from daybook_event) select
        id, tenant_id as namespace, tenant_id, topic as type, payload, published_at as created_at, priority,
        root_event_id, chain_depth
      from one`,
  },
  // One row for each event and handler that has claimed it: the last delivery of their chain.
  {
    name: "event_claims",
    as: sql`select
        event.id as event_id, substr(job.name, 10) as handler_id, event.tenant_id,
        coalesce(owner.id, ran.id, before_ran.id) as session_id,
        coalesce(job.started_at, run.started_at, before.started_at) as claimed_at,
        coalesce(owner.last_heartbeat_at + 30000, run.ended_at, before.ended_at) as lease_until,
        case job.status when 'completed' then job.finished_at end as ack_at,
        case job.status when 'failed' then job.attempt else job.attempt - 1 end as attempts,
        job.available_at, coalesce(run.error_message, before.error_message) as last_error,
        letter.failed_at as dead_lettered_at
      from ${jobNow} join daybook_event event on event.seq = job.kind_seq
      left join daybook_session owner on owner.seq = job.session_seq
      left join daybook_run run on run.job_seq = job.seq
      left join daybook_session ran on ran.seq = run.session_seq
      left join daybook_job parent on parent.seq = job.retry_of
      left join daybook_run before on before.job_seq = parent.seq
      left join daybook_session before_ran on before_ran.seq = before.session_seq
      left join daybook_listener listener on listener.tenant_id = job.tenant_id and listener.name = substr(job.name, 10)
      left join daybook_dead_letter letter on letter.tenant_id = job.tenant_id and letter.event_seq = event.seq
        and letter.listener_seq = listener.seq and letter.ended_at is null
      where job.kind = 'delivery' and (job.run_id is not null or job.retry_of is not null)
        and not exists (select 1 from daybook_job child where child.retry_of = job.seq)`,
  },
  {
    name: "dead_letters",
    as: sql`select
        letter.seq as id, event.id as event_id, listener.name as handler_id, letter.tenant_id as namespace,
        letter.tenant_id, letter.failed_at, letter.attempts, letter.error_message as last_error,
        event.topic as event_type, event.payload as event_payload, event.root_event_id, event.chain_depth
      from daybook_dead_letter letter join daybook_event event on event.seq = letter.event_seq
      join daybook_listener listener on listener.seq = letter.listener_seq
      where letter.ended_at is null`,
  },
];
