// The tables of schedules.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { integer, sequence, strict, jsonText } from "../storage/word.ts";
import { jobNow } from "../jobs/job.ts";

export const scheduleMigrations: readonly Migration[] = [
  {
    number: 4,
    name: "schedule, decision",
    up: [
      sql`create table daybook_schedule (
        seq ${sequence},
        tenant_id text not null,
        id text not null,
        name text not null,
        source text not null check (source in ('code', 'api')),
        -- It is one of those that a definition in code gives to every tenant.
        for_all ${integer} not null default 0 check (for_all in (0, 1)),
        kind text not null check (kind in ('cron', 'every', 'once', 'daily')),
        expression text not null,
        zone text not null,
        gap text not null check (gap in ('shift', 'skip')),
        ambiguous text not null check (ambiguous in ('first', 'last', 'both')),
        starts_at ${integer},
        ends_at ${integer},
        anchor_at ${integer},
        target text not null check (target in ('job', 'template', 'event')),
        target_name text not null,
        job text not null,
        missed text not null check (missed in ('latest', 'all', 'skip')),
        max_lateness_ms ${integer} check (max_lateness_ms >= 0),
        overlap text not null check (overlap in ('skip', 'queue', 'cancel', 'allow')),
        jitter_ms ${integer} not null check (jitter_ms >= 0),
        max_fires ${integer} check (max_fires > 0),
        pause_after ${integer} check (pause_after > 0),
        fires ${integer} not null default 0,
        failures ${integer} not null default 0,
        cursor_at ${integer} not null,
        next_at ${integer},
        -- Slots up to here may have been fired by a clock that ran ahead.
        ahead_until ${integer},
        last_fired_at ${integer},
        paused_at ${integer},
        paused_note text,
        removed_at ${integer},
        held ${integer} not null default 0,
        -- The decisions about slots up to here have left by retention.
        pruned_until ${integer},
        revision ${integer} not null default 1,
        created_at ${integer} not null,
        updated_at ${integer} not null,
        unique (tenant_id, id),
        -- A name that was removed keeps its row: whoever makes it again cannot fire a slot that was fired before.
        unique (tenant_id, name),
        check (next_at is null or (paused_at is null and removed_at is null))
      )${strict}`,
      sql`create index schedules_due on daybook_schedule (next_at) where next_at is not null`,
      sql`create index schedules_held on daybook_schedule (seq) where held = 1`,
      // One row per slot; a span of slots that were all missed is one row with a count.
      // One row, once a program gave the book a zone: that of the schedules that name none.
      sql`create table daybook_schedule_zone (
        one ${integer} primary key check (one = 1),
        zone text not null,
        changed_at ${integer} not null
      )${strict}`,
      sql`create table daybook_decision (
        seq ${sequence},
        tenant_id text not null,
        schedule_seq ${integer} not null references daybook_schedule (seq),
        slot_at ${integer} not null,
        until_at ${integer} not null,
        slots ${integer} not null check (slots >= 1),
        kind text not null check (kind in ('fired', 'late', 'caught_up', 'shifted_dst', 'backfilled', 'manual',
          'skipped_missed', 'skipped_overlap', 'skipped_paused')),
        decided_at ${integer} not null,
        local text,
        job_id text,
        event_id text,
        note text,
        unique (tenant_id, schedule_seq, slot_at),
        check (until_at >= slot_at),
        check (job_id is null or event_id is null),
        check ((coalesce(job_id, event_id) is null) = (kind in ('skipped_missed', 'skipped_overlap', 'skipped_paused')))
      )${strict}`,
    ],
  },
];

/** The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request. */
export const scheduleViews: readonly View[] = [
  {
    name: "schedules",
    as: sql`select
        schedule.id as schedule_id, schedule.tenant_id, template.id as template_id, schedule.name,
        schedule.expression as cron_expression, schedule.zone as timezone,
        case when schedule.paused_at is null and schedule.removed_at is null then 1 else 0 end as enabled,
        case schedule.target when 'template' then ${jsonText("schedule.job", ["overrides"])}
          else ${jsonText("schedule.job", ["prepared", "params"])} end as param_overrides, schedule.last_fired_at as last_triggered_at,
        schedule.next_at as next_trigger_at, schedule.created_at
      from daybook_schedule schedule left join daybook_job_template template
        on template.tenant_id = schedule.tenant_id and template.name = schedule.target_name
          and schedule.target = 'template'
      where schedule.removed_at is null`,
  },
  // Here and not with the jobs: it shows the schedule that made each.
  {
    name: "jobs",
    as: sql`select
        job.id as job_id, job.tenant_id, job.template_id, schedule.id as schedule_id, job_group.id as group_id,
        job.name as job_type, job.params,
        case job.status when 'waiting' then 'QUEUED' else upper(job.status) end as status,
        job.priority, job.position, parent.id as retry_of, job.created_at, job.created_at as queued_at,
        coalesce(job.started_at, run.started_at) as started_at, job.finished_at,
        coalesce(session.id, ran.id) as worker_id
      from ${jobNow}
      left join daybook_schedule schedule on job.kind = 'schedule' and schedule.seq = job.kind_seq
      left join daybook_job_group job_group on job_group.seq = job.group_seq
      left join daybook_job parent on parent.seq = job.retry_of
      left join daybook_session session on session.seq = job.session_seq
      left join daybook_run run on run.job_seq = job.seq
      left join daybook_session ran on ran.seq = run.session_seq`,
  },
];
