// The tables of jobs. Every "at most one" is a partial unique index, every state is tied to its timestamps.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, positionDefault, real, sequence, strict } from "../storage/word.ts";

export const jobMigrations: readonly Migration[] = [
  {
    number: 3,
    name: "job",
    up: [
      // A queue of one tenant. Its pause, limit and rate are gates that a claim reads before any job.
      sql`create table lane (
        seq ${sequence},
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
      sql`create table paused_name (
        tenant_id text not null,
        name text not null,
        paused_at ${integer} not null,
        note text,
        primary key (tenant_id, name)
      )${strict}`,
      sql`create table job (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        lane_seq ${integer} not null references lane (seq),
        name text not null,
        status text not null,
        waits_for text check (waits_for in ('time', 'key', 'host', 'group', 'reservation', 'order')),
        waits_key text,
        priority ${integer} not null check (priority between -1000 and 1000),
        position ${integer} not null ${positionDefault("job")},
        created_at ${integer} not null,
        available_at ${integer} not null,
        params text not null,
        origin text not null,
        attempt ${integer} not null check (attempt >= 1),
        attempts ${integer} not null check (attempts >= 1),
        losses ${integer} not null check (losses >= 0),
        losses_max ${integer} not null check (losses <= losses_max),
        backoff text,
        timeout_ms ${integer} check (timeout_ms > 0),
        retry_of ${integer} references job (seq),
        alone ${integer} not null,
        key text,
        key_held text,
        key_scope text check (key_scope in ('queued', 'done', 'window')),
        key_until ${integer},
        idempotency_key text,
        limits text,
        limit_key text,
        tags text,
        cause_run_id text,
        root_run_id text,
        run_id text,
        session_seq ${integer} references session (seq),
        started_at ${integer},
        timeout_at ${integer},
        name_slot ${integer},
        key_slot ${integer},
        lane_slot ${integer},
        cancel_requested_at ${integer},
        progress ${real},
        progress_note text,
        finished_at ${integer},
        unique (tenant_id, id),
        -- One case per status, because every insert and update pays for what is evaluated here.
        check (case status
          when 'queued' then waits_for is null and session_seq is null and started_at is null
            and finished_at is null and coalesce(name_slot, key_slot, lane_slot) is null
          when 'running' then waits_for is null and session_seq is not null and started_at is not null
            and run_id is not null and finished_at is null
          when 'waiting' then waits_for is not null and session_seq is null and started_at is null
            and finished_at is null and coalesce(name_slot, key_slot, lane_slot) is null
          else waits_for is null and session_seq is null and started_at is null
            and finished_at is not null and coalesce(name_slot, key_slot, lane_slot) is null
            and (status in ('cancelled', 'skipped') or (status in ('completed', 'failed') and run_id is not null))
          end)
      )${strict}`,
      sql`create index jobs_to_claim on job (lane_seq, priority desc, position, seq)
        where status = 'queued'`,
      sql`create index jobs_due on job (available_at)
        where status = 'waiting' and waits_for = 'time' and waits_key is null`,
      sql`create index jobs_waiting on job (waits_for, waits_key, tenant_id, lane_seq, priority desc, position, seq)
        where status = 'waiting' and waits_key is not null`,
      sql`create index jobs_running on job (session_seq) where status = 'running'`,
      sql`create index jobs_timing_out on job (timeout_at) where status = 'running' and timeout_at is not null`,
      sql`create unique index jobs_one_per_key on job (tenant_id, name, key_held) where key_held is not null`,
      sql`create unique index jobs_one_per_idempotency_key on job (tenant_id, idempotency_key)
        where idempotency_key is not null`,
      sql`create unique index jobs_one_retry on job (retry_of) where retry_of is not null`,
      sql`create unique index jobs_one_per_name_slot on job (tenant_id, name, name_slot) where name_slot is not null`,
      sql`create unique index jobs_one_per_key_slot on job (tenant_id, limit_key, key_slot) where key_slot is not null`,
      sql`create unique index jobs_one_per_lane_slot on job (lane_seq, lane_slot) where lane_slot is not null`,
      // How many starts a rate has let through in its current window, how many of each lane that waits for it were let in,
      // and when the next are: null when nobody waits.
      sql`create table rate_window (
        tenant_id text not null,
        rate_key text not null,
        window_at ${integer} not null,
        used ${integer} not null,
        let_in ${integer} not null,
        opens_at ${integer},
        primary key (tenant_id, rate_key)
      )${strict}`,
      sql`create index rates_to_open on rate_window (opens_at) where opens_at is not null`,
      // Which names the workers of a session run, and in which queues; null means all. Explain reads it.
      sql`create table session_host (
        session_seq ${integer} not null references session (seq),
        name text not null,
        queue text
      )${strict}`,
      sql`create unique index session_hosts_once on session_host (session_seq, name, coalesce(queue, ''))`,
      // The seed's names and words; docs/origins.md says what differs.
      sql`create view jobs as select
        job.id as job_id, job.tenant_id, null as template_id, null as schedule_id, null as group_id,
        job.name as job_type, job.params,
        case job.status when 'waiting' then 'QUEUED' else upper(job.status) end as status,
        job.priority, job.position, parent.id as retry_of, job.created_at, job.created_at as queued_at,
        coalesce(job.started_at, run.started_at) as started_at, job.finished_at,
        coalesce(session.id, ran.id) as worker_id
      from job
      left join job parent on parent.seq = job.retry_of
      left join session on session.seq = job.session_seq
      left join run on run.tenant_id = job.tenant_id and run.id = job.run_id
      left join session ran on ran.seq = run.session_seq`,
      sql`create view job_runs as select
        run.id as run_id, run.tenant_id, run.job_id, null as template_id, job.params as params_snapshot,
        case run.status when 'success' then 'COMPLETED' when 'skipped' then 'SKIPPED'
          when 'cancelled' then 'CANCELLED' else 'FAILED' end as status,
        run.started_at, run.ended_at as finished_at, null as exit_code, run.error_message as error,
        '[]' as artifacts, null as log_path
      from run join job on job.tenant_id = run.tenant_id and job.id = run.job_id
      union all select
        job.run_id, job.tenant_id, job.id, null, job.params, null, job.started_at, null, null, null, '[]', null
      from job where job.status = 'running'`,
    ],
  },
];
