// The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request.
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";

export const jobViews: readonly View[] = [
  {
    name: "job_runs",
    as: sql`select
        run.id as run_id, run.tenant_id, job.id as job_id, job.template_id, job.params as params_snapshot,
        case run.status when 'success' then 'COMPLETED' when 'skipped' then 'SKIPPED'
          when 'cancelled' then 'CANCELLED' else 'FAILED' end as status,
        run.started_at, run.ended_at as finished_at, command.exit_code, run.error_message as error,
        coalesce(command.artifacts, '[]') as artifacts, command.log_path
      from daybook_run run join daybook_job job on job.seq = run.job_seq
      left join daybook_run_command command on command.tenant_id = run.tenant_id and command.run_id = run.id
      union all select
        line.run_id, job.tenant_id, job.id, job.template_id, job.params, null, line.started_at, null, null, null, '[]',
        command.log_path
      from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_run_command command on command.tenant_id = job.tenant_id and command.run_id = line.run_id
      where line.status = 'running'`,
  },
  {
    name: "job_templates",
    as: sql`with one as (select * from daybook_job_template) select
        id as template_id, tenant_id, name, job_name as job_type, params as default_params, queue, priority,
        attempts as max_attempts, backoff as retry_policy, created_at, updated_at, archived_at
      from one`,
  },
  {
    name: "job_groups",
    as: sql`with one as (select * from daybook_job_group) select
        id as group_id, tenant_id, name, mode, on_failure, upper(status) as status, created_at, finished_at
      from one`,
  },
  {
    name: "direct_reservations",
    as: sql`select
        reservation.id as reservation_id, reservation.tenant_id, lane.queue, reservation.reserved_at,
        session.id as reserved_by, upper(reservation.status) as status, reservation.expires_at, reservation.ended_at
      from daybook_reservation reservation join daybook_lane lane on lane.seq = reservation.lane_seq
      join daybook_session session on session.seq = reservation.session_seq`,
  },
];
