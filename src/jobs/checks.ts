// What must hold of jobs and their runs; doctor asks. The numbers are those of docs/promises.md.
import type { Check } from "../storage/check.ts";
import { sql } from "../storage/sql.ts";
import { directChecks } from "./direct/checks.ts";
import { groupChecks } from "./group/checks.ts";

const report = "report it: the tables' own rules and the engine should have made this impossible";

export const jobChecks: readonly Check[] = [
  {
    promise: "J1",
    name: "an open job has one row in the line, and a running one is of a known session and has no ended run",
    find: () => sql`select coalesce(job.id, 'line ' || line.seq) as finding from daybook_line line
      left join daybook_job job on job.seq = line.seq left join daybook_run run on run.job_seq = line.seq
      left join daybook_session session on session.seq = line.session_seq
      where job.seq is null or run.seq is not null or job.cancelled_at is not null or job.lane_seq <> line.lane_seq
        or (line.status = 'running' and session.seq is null)`,
    advice: report,
  },
  {
    promise: "J2",
    name: "no run without its job",
    find: () => sql`select run.id as finding from daybook_run run left join daybook_job job on job.seq = run.job_seq
      where run.job_seq is not null and (job.seq is null or job.tenant_id <> run.tenant_id)`,
    advice: "rows of daybook_job were removed by hand: remove their runs as well, or restore a backup",
  },
  {
    promise: "J3",
    name: "a job that is not in the line has a run, or was cancelled before it ran",
    find: () => sql`select job.id as finding from daybook_job job left join daybook_line line on line.seq = job.seq
      left join daybook_run run on run.job_seq = job.seq
      where line.seq is null and (run.seq is null) = (job.cancelled_at is null)`,
    advice: report,
  },
  {
    promise: "J5",
    name: "a retry has its parent's params and counts on from it",
    find: () => sql`select child.id as finding from daybook_job child join daybook_job parent on parent.seq = child.retry_of
      left join daybook_line line on line.seq = parent.seq
      where child.params <> parent.params or child.name <> parent.name or child.attempt < parent.attempt
        or child.seq <= parent.seq or line.seq is not null
        or (child.origin <> 'manual' and child.losses < parent.losses)`,
    advice: report,
  },
  {
    promise: "J7",
    name: "no two queued jobs of a lane and priority have one place",
    find: () => sql`select min(job.id) as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'queued' group by line.lane_seq, line.priority, line.position having count(*) > 1`,
    advice: "renumber the lane",
  },
  {
    promise: "J9",
    name: "no job runs in a session that has ended",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      join daybook_session session on session.seq = line.session_seq
      where line.status = 'running' and session.status <> 'running'`,
    advice: "a worker's next sweep ends it; if it stays, no worker is running",
  },
  {
    promise: "J13",
    name: "a permit is held by a job that runs",
    find: () => sql`select permit.limit_key as finding from daybook_permit permit
      left join daybook_line line on line.seq = permit.job_seq and line.status = 'running' where line.seq is null`,
    advice: report,
  },
  {
    promise: "J15",
    name: "a job that waits for somebody says for whom",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'waiting' and line.waits_for in ('key', 'host', 'alone') and line.waits_key is null`,
    advice: report,
  },
  {
    promise: "J15",
    name: "a rate that jobs wait for has a time at which it opens",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_rate_window rate_window on rate_window.tenant_id = job.tenant_id
        and job.tenant_id || ${"\n"} || rate_window.rate_key = line.waits_key
      where line.status = 'waiting' and line.waits_for = 'time' and line.waits_key is not null
        and rate_window.opens_at is null`,
    advice: report,
  },
  {
    promise: "J2",
    name: "a job that was made from a template names one of its tenant",
    find: () => sql`select job.id as finding from daybook_job job left join daybook_job_template template
        on template.tenant_id = job.tenant_id and template.id = job.template_id
      where job.template_id is not null and template.seq is null`,
    advice:
      "rows of daybook_job_template were removed by hand: restore a backup, or set the template_id of these jobs to null",
  },
  ...groupChecks,
  ...directChecks,
];
