// The tables around the engine: what jobs are made from, what they belong to, and what their runs leave behind.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { integer, sequence, strict } from "../storage/word.ts";

export const aroundMigrations: readonly Migration[] = [
  {
    number: 4,
    name: "job_template, job_group, reservation, job_step, run_command, pruning",
    up: [
      sql`create table job_template (
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
      sql`create table job_group (
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
      sql`alter table job add column template_id text`,
      sql`alter table job add column group_seq ${integer} references job_group (seq)`,
      sql`alter table job add column group_slot ${integer}`,
      // The first job of a chain of retries; null on the first itself. Steps belong to the chain.
      sql`alter table job add column chain_seq ${integer}`,
      // Somebody waits for the end, so whoever ends it says so.
      sql`alter table job add column awaited ${integer} not null default 0`,
      // Whose job it is, when a room above made it: that room hears of its end, and tells its handler more about it.
      sql`alter table job add column kind text`,
      sql`alter table job add column kind_seq ${integer}`,
      sql`alter table job add column about text`,
      sql`create index jobs_open_by_kind on job (tenant_id, kind, kind_seq) where kind is not null and finished_at is null`,
      sql`create index jobs_of_group on job (group_seq, group_slot, seq) where group_seq is not null`,
      sql`create index jobs_open_in_group on job (group_seq, group_slot)
        where group_seq is not null and finished_at is null`,
      sql`create index jobs_current_in_group on job (group_seq)
        where group_seq is not null and finished_at is null and coalesce(waits_for, '') <> 'group'`,
      // The neighbours of a place are those in line and those that wait for something and come back to theirs.
      sql`create index jobs_standing_by on job (lane_seq, priority desc, position) where status = 'waiting'`,
      sql`create table reservation (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        lane_seq ${integer} not null references lane (seq),
        session_seq ${integer} not null references session (seq),
        note text,
        -- The direct work that it was made for; null when somebody holds the queue by hand.
        job_id text,
        reserved_at ${integer} not null,
        expires_at ${integer} not null,
        ended_at ${integer},
        status text not null default 'active' check (status in ('active', 'released', 'expired')),
        unique (tenant_id, id),
        check ((status = 'active') = (ended_at is null))
      )${strict}`,
      sql`create unique index reservations_one_per_lane on reservation (lane_seq) where status = 'active'`,
      sql`create index reservations_of_session on reservation (session_seq) where status = 'active'`,
      sql`create table job_step (
        tenant_id text not null,
        chain_seq ${integer} not null references job (seq),
        place ${integer} not null,
        name text not null,
        result text,
        run_id text not null,
        done_at ${integer} not null,
        primary key (tenant_id, chain_seq, place)
      )${strict}`,
      // Removing a job asks whether it has steps, whoever's it is.
      sql`create index job_steps_of_job on job_step (chain_seq)`,
      // What a run that starts a program knows of it: enough to end it when its worker is gone. The row is there before the
      // program, so the pid is null until there is one.
      sql`create table run_command (
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
      sql`create index run_commands_open on run_command (host, started_at) where ended_at is null`,
      // What retention removed, so that an id that is gone can be accounted for.
      sql`create table pruning (
        seq ${sequence},
        tenant_id text not null,
        pruned_at ${integer} not null,
        what text not null,
        filter text not null,
        removed ${integer} not null,
        first_at ${integer},
        last_at ${integer}
      )${strict}`,
      sql`create index prunings_of_tenant on pruning (tenant_id, seq)`,
      ...seedViews(),
    ],
  },
];

// The seed's names and words; docs/origins.md says what differs.
function seedViews(): readonly ReturnType<typeof sql>[] {
  return [
    sql`drop view jobs`,
    sql`drop view job_runs`,
    sql`create view jobs as select
        job.id as job_id, job.tenant_id, job.template_id, null as schedule_id, job_group.id as group_id,
        job.name as job_type, job.params,
        case job.status when 'waiting' then 'QUEUED' else upper(job.status) end as status,
        job.priority, job.position, parent.id as retry_of, job.created_at, job.created_at as queued_at,
        coalesce(job.started_at, run.started_at) as started_at, job.finished_at,
        coalesce(session.id, ran.id) as worker_id
      from job
      left join job_group on job_group.seq = job.group_seq
      left join job parent on parent.seq = job.retry_of
      left join session on session.seq = job.session_seq
      left join run on run.tenant_id = job.tenant_id and run.id = job.run_id
      left join session ran on ran.seq = run.session_seq`,
    sql`create view job_runs as select
        run.id as run_id, run.tenant_id, run.job_id, job.template_id, job.params as params_snapshot,
        case run.status when 'success' then 'COMPLETED' when 'skipped' then 'SKIPPED'
          when 'cancelled' then 'CANCELLED' else 'FAILED' end as status,
        run.started_at, run.ended_at as finished_at, command.exit_code, run.error_message as error,
        coalesce(command.artifacts, '[]') as artifacts, command.log_path
      from run join job on job.tenant_id = run.tenant_id and job.id = run.job_id
      left join run_command command on command.tenant_id = run.tenant_id and command.run_id = run.id
      union all select
        job.run_id, job.tenant_id, job.id, job.template_id, job.params, null, job.started_at, null, null, null, '[]',
        command.log_path
      from job left join run_command command on command.tenant_id = job.tenant_id and command.run_id = job.run_id
      where job.status = 'running'`,
    sql`create view job_templates as with one as (select * from job_template) select
        id as template_id, tenant_id, name, job_name as job_type, params as default_params, queue, priority,
        attempts as max_attempts, backoff as retry_policy, created_at, updated_at, archived_at
      from one`,
    sql`create view job_groups as with one as (select * from job_group) select
        id as group_id, tenant_id, name, mode, on_failure, upper(status) as status, created_at, finished_at
      from one`,
    sql`create view direct_reservations as select
        reservation.id as reservation_id, reservation.tenant_id, lane.queue, reservation.reserved_at,
        session.id as reserved_by, upper(reservation.status) as status, reservation.expires_at, reservation.ended_at
      from reservation join lane on lane.seq = reservation.lane_seq
      join session on session.seq = reservation.session_seq`,
  ];
}
