// The tables of jobs: three tenses. `daybook_job` says what must happen and is written once; `daybook_line` says where an open
// job stands, one narrow row that is there only while the job is open; `daybook_run` (telemetry) says what happened. Whatever
// only some jobs use has a small table of its own, whose primary key is the "at most one".
//
// Job, line and run have no foreign keys: on PostgreSQL each costs 5 µs a job (decision 019). Doctor and retention keep that law.
import type { Migration } from "../storage/migrate.ts";
import { sql, type Sql } from "../storage/sql.ts";
import { integer, real, sequence, strict } from "../storage/word.ts";
import { remoteColumns } from "../telemetry/session.ts";
import { jobNowView } from "./job.ts";
import { leaseTable } from "./lease/table.ts";

// The tables around the engine: what jobs are made from, what they belong to, and what their runs leave behind.
const aroundTables: readonly Sql[] = [
  // What the process that hosts a definition says of it, for callers that know its name alone. It belongs to no tenant, because a
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
    -- Which webhook hears of which ends; its secrets are sealed.
    notify text,
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
    notify text,
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
    notify text,
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
  // Removing a job asks whether it has steps, without its tenant.
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
];

export const jobMigrations: readonly Migration[] = [
  {
    number: 3,
    name: "jobs",
    up: [
      // A lane's number begins with its tenant's (lane.ts), so the lanes of a tenant stand together in every index.
      sql`create table daybook_lane (
        seq ${integer} primary key,
        tenant_id text not null,
        queue text not null,
        paused_at ${integer},
        paused_note text,
        limit_max ${integer} check (limit_max > 0),
        rate_max ${integer} check (rate_max > 0),
        rate_ms ${integer} check (rate_ms > 0),
        unique (tenant_id, queue),
        check ((rate_max is null) = (rate_ms is null))
      )${strict}`,
      sql`create table daybook_paused_name (
        tenant_id text not null,
        name text not null,
        paused_at ${integer} not null,
        note text,
        primary key (tenant_id, name)
      )${strict}`,
      sql`create table daybook_job (
        seq ${sequence},
        tenant_id text not null,
        id text not null unique,
        lane_seq ${integer} not null,
        name text not null,
        priority ${integer} not null check (priority between -1000 and 1000),
        created_at ${integer} not null,
        -- When it was to run, if that was not at once.
        due_at ${integer},
        -- How long it was to wait from its creation on; null when a moment was given instead.
        delay_ms ${integer},
        params text not null,
        attempts ${integer} not null check (attempts >= 1),
        losses_max ${integer} not null,
        timeout_ms ${integer} check (timeout_ms > 0),
        backoff text,
        origin text not null default 'enqueued' check (origin in ('enqueued', 'retry', 'manual', 'direct')),
        attempt ${integer} not null default 1 check (attempt >= 1),
        losses ${integer} not null default 0 check (losses >= 0 and losses <= losses_max),
        -- How often it was lost among others: 0, 1, or 2 when it must run alone.
        alone ${integer} not null default 0 check (alone between 0 and 2),
        retry_of ${integer},
        -- The first job of a chain of retries; null on the first itself.
        chain_seq ${integer},
        key text,
        key_scope text check (key_scope in ('queued', 'done', 'window')),
        idempotency_key text,
        limits text,
        limit_key text,
        tags text,
        template_id text,
        group_seq ${integer},
        group_slot ${integer},
        -- Whose job it is, when a room above made it: that room hears of its end, and tells its handler more about it.
        kind text,
        kind_seq ${integer},
        about text,
        cause_run_id text,
        root_run_id text,
        app text,
        instance ${integer},
        registration text,
        traceparent text,
        -- Its end, when it was cancelled before it ran. Every other end is its run's.
        cancelled_at ${integer},
        check ((key is null) = (key_scope is null))
      )${strict}`,
      sql`create unique index jobs_one_retry on daybook_job (retry_of) where retry_of is not null`,
      sql`create unique index jobs_one_per_idempotency_key on daybook_job (tenant_id, idempotency_key)
        where idempotency_key is not null`,
      sql`create index jobs_of_group on daybook_job (group_seq, group_slot, seq) where group_seq is not null`,
      sql`create table daybook_line (
        seq ${integer} primary key,
        lane_seq ${integer} not null,
        status text not null,
        waits_for text check (waits_for in
          ('time', 'key', 'host', 'group', 'reservation', 'order', 'alone', 'release', 'event', 'job', 'answer')),
        waits_key text,
        priority ${integer} not null check (priority between -1000 and 1000),
        position ${integer} not null,
        available_at ${integer} not null,
        -- What its end concerns besides itself, as bits (state.ts); 0 for most.
        ties ${integer} not null,
        kind text,
        kind_seq ${integer},
        order_key text,
        group_seq ${integer},
        group_slot ${integer},
        run_id text,
        session_seq ${integer},
        started_at ${integer},
        timeout_at ${integer},
        cancel_requested_at ${integer},
        -- Somebody waits for the end, so whoever ends it says so.
        awaited ${integer} not null default 0,
        progress ${real},
        progress_note text,
        -- One case per status, because every insert and update pays for what is evaluated here.
        check (case status
          when 'queued' then waits_for is null and started_at is null and run_id is null
          when 'running' then waits_for is null and started_at is not null and run_id is not null and session_seq is not null
          when 'waiting' then waits_for is not null and started_at is null and run_id is null
          else false end)
      )${strict}`,
      sql`create index jobs_to_claim on daybook_line (lane_seq, priority desc, position, seq) where status = 'queued'`,
      sql`create index jobs_running on daybook_line (lane_seq, session_seq) where status = 'running'`,
      sql`create index jobs_due on daybook_line (available_at)
        where status = 'waiting' and waits_for = 'time' and waits_key is null`,
      sql`create index jobs_waiting on daybook_line (waits_for, waits_key, lane_seq, priority desc, position, seq)
        where status = 'waiting' and waits_key is not null`,
      // The neighbours of a place are those in line and those that wait for something and come back to theirs.
      sql`create index jobs_standing_by on daybook_line (lane_seq, priority desc, position) where status = 'waiting'`,
      sql`create index jobs_timing_out on daybook_line (timeout_at) where status = 'running' and timeout_at is not null`,
      sql`create index jobs_open_by_kind on daybook_line (kind, kind_seq, seq) where kind is not null`,
      sql`create index jobs_open_in_order on daybook_line (order_key, kind_seq) where order_key is not null`,
      sql`create index jobs_open_in_group on daybook_line (group_seq, group_slot) where group_seq is not null`,
      // A key that is taken: until its job starts, until the work is done, or until a time.
      sql`create table daybook_job_key (
        tenant_id text not null,
        name text not null,
        key text not null,
        job_seq ${integer} not null,
        until_at ${integer},
        primary key (tenant_id, name, key)
      )${strict}`,
      sql`create index job_keys_of_job on daybook_job_key (job_seq)`,
      // What a running job holds of a limit: one numbered permit each, so that a breach is impossible.
      sql`create table daybook_permit (
        tenant_id text not null,
        limit_key text not null,
        number ${integer} not null,
        job_seq ${integer} not null,
        primary key (tenant_id, limit_key, number)
      )${strict}`,
      sql`create index permits_of_job on daybook_permit (job_seq)`,
      // Ended jobs that a room above still needs: retention leaves them.
      sql`create table daybook_job_pin (
        job_seq ${integer} primary key
      )${strict}`,
      // How many starts a rate has let through in its current window, how many of each lane that waits for it were let in,
      // and when the next are: null when no job waits.
      sql`create table daybook_rate_window (
        tenant_id text not null,
        rate_key text not null,
        window_at ${integer} not null,
        used ${integer} not null,
        let_in ${integer} not null,
        opens_at ${integer},
        primary key (tenant_id, rate_key)
      )${strict}`,
      sql`create index rates_to_open on daybook_rate_window (opens_at) where opens_at is not null`,
      // Which names the workers of a session run, and in which queues; null means all. A worker runs every name in every queue that it
      // serves, so the two stand apart: each name with each queue would be ten thousand rows. Explain reads them.
      sql`create table daybook_session_host (
        session_seq ${integer} not null references daybook_session (seq),
        name text not null,
        primary key (session_seq, name)
      )${strict}`,
      sql`create table daybook_session_queue (
        session_seq ${integer} not null references daybook_session (seq),
        queue text
      )${strict}`,
      sql`create unique index session_queues_once on daybook_session_queue (session_seq, coalesce(queue, ''))`,
      ...aroundTables,
      jobNowView,
    ],
  },
  {
    number: 10,
    name: "remote workers",
    up: [...remoteColumns, ...leaseTable],
  },
  {
    number: 11,
    name: "what a run has made: jobs",
    // A delivery is its event's, and a retry that of the job before it.
    up: [
      sql`create index jobs_caused on daybook_job (tenant_id, cause_run_id)
        where cause_run_id is not null and retry_of is null and kind is distinct from 'delivery'`,
    ],
  },
];
