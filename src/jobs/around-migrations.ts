// The tables around the engine: what jobs are made from, what they belong to, and what their runs leave behind.
import { sql, type Sql } from "../storage/sql.ts";
import { integer, sequence, strict } from "../storage/word.ts";

export const aroundTables: readonly Sql[] = [
  // What whoever hosts a definition says of it, for those who know its name alone. It belongs to no tenant, because a
  // definition serves them all. It is first hosted at `hosted_at`; this is what session `session_seq` said at `updated_at`.
  sql`create table daybook_definition (
    name text not null primary key,
    queue text not null,
    priority ${integer} not null check (priority between -1000 and 1000),
    attempts ${integer} not null check (attempts >= 1),
    backoff text,
    timeout_ms ${integer} check (timeout_ms > 0),
    losses ${integer} not null check (losses >= 0),
    concurrency ${integer} check (concurrency > 0),
    -- Limits that go by a key: the key is a function of the params, which only the program has.
    key_concurrency ${integer} check (key_concurrency > 0),
    rate_max ${integer} check (rate_max > 0),
    rate_ms ${integer} check (rate_ms > 0),
    rate_by_key ${integer} not null check (rate_by_key in (0, 1)),
    -- JSON Schema of what it takes, where its library offers one.
    params_schema text,
    app text,
    instance ${integer},
    registration text,
    hosted_at ${integer} not null,
    updated_at ${integer} not null check (updated_at >= hosted_at),
    session_seq ${integer} not null references daybook_session (seq),
    check ((rate_max is null) = (rate_ms is null))
  )${strict}`,
  sql`create table daybook_job_template (
    seq ${sequence},
    tenant_id text not null,
    id text not null,
    name text not null,
    job_name text not null,
    params text not null,
    queue text,
    priority ${integer} check (priority between -1000 and 1000),
    attempts ${integer} check (attempts >= 1),
    backoff text,
    timeout_ms ${integer} check (timeout_ms > 0),
    losses ${integer} check (losses >= 0),
    created_at ${integer} not null,
    updated_at ${integer} not null,
    archived_at ${integer},
    revision ${integer} not null default 1,
    unique (tenant_id, id),
    unique (tenant_id, name)
  )${strict}`,
  // Its status is written once, when its last job ends; before that it is what its jobs say.
  sql`create table daybook_job_group (
    seq ${sequence},
    tenant_id text not null,
    id text not null,
    name text,
    mode text not null check (mode in ('sequential', 'parallel')),
    on_failure text not null check (on_failure in ('stop', 'continue', 'skip')),
    status text not null default 'open' check (status in ('open', 'completed', 'failed', 'partial', 'cancelled')),
    slots ${integer} not null check (slots >= 0),
    created_at ${integer} not null,
    cancel_requested_at ${integer},
    stopped_at ${integer},
    finished_at ${integer},
    unique (tenant_id, id),
    check ((status = 'open') = (finished_at is null))
  )${strict}`,
  sql`create table daybook_reservation (
    seq ${sequence},
    tenant_id text not null,
    id text not null,
    lane_seq ${integer} not null,
    session_seq ${integer} not null references daybook_session (seq),
    note text,
    -- The direct work that it was made for; null when somebody holds the queue by hand.
    job_id text,
    reserved_at ${integer} not null,
    expires_at ${integer} not null,
    -- How long it lasts when it is made, and from each time that it is renewed.
    lasts_ms ${integer} not null check (lasts_ms > 0),
    ended_at ${integer},
    status text not null default 'active' check (status in ('active', 'released', 'expired')),
    unique (tenant_id, id),
    check ((status = 'active') = (ended_at is null))
  )${strict}`,
  sql`create unique index reservations_one_per_lane on daybook_reservation (lane_seq) where status = 'active'`,
  sql`create index reservations_of_session on daybook_reservation (session_seq) where status = 'active'`,
  sql`create table daybook_job_step (
    tenant_id text not null,
    chain_seq ${integer} not null,
    place ${integer} not null,
    name text not null,
    result text,
    run_id text not null,
    done_at ${integer} not null,
    primary key (tenant_id, chain_seq, place)
  )${strict}`,
  // Removing a job asks whether it has steps, whoever's it is.
  sql`create index job_steps_of_job on daybook_job_step (chain_seq)`,
  // What a run that starts a program knows of it: enough to end it when its worker is gone. The row is there before the
  // program, so the pid is null until there is one.
  sql`create table daybook_run_command (
    tenant_id text not null,
    run_id text not null,
    job_id text not null,
    argv text not null,
    host text not null,
    host_boot text,
    host_namespace text,
    pid ${integer},
    process_started text,
    started_at ${integer} not null,
    ended_at ${integer},
    exit_code ${integer},
    signal text,
    log_path text,
    log_bytes ${integer},
    log_truncated ${integer} not null default 0,
    log_tail text,
    artifacts text not null default '[]',
    artifacts_left_out ${integer} not null default 0,
    note text,
    primary key (tenant_id, run_id)
  )${strict}`,
  sql`create index run_commands_open on daybook_run_command (host, started_at) where ended_at is null`,
  // What retention removed, so that an id that is gone can be accounted for.
  sql`create table daybook_pruning (
    seq ${sequence},
    tenant_id text not null,
    pruned_at ${integer} not null,
    what text not null,
    filter text not null,
    removed ${integer} not null,
    first_at ${integer},
    last_at ${integer}
  )${strict}`,
  sql`create index prunings_of_tenant on daybook_pruning (tenant_id, seq)`,
];
