// The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request.
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { jsonText } from "../storage/word.ts";
import { jobNow } from "../jobs/job.ts";

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
