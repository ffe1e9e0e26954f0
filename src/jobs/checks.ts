// What must hold of jobs and their runs; doctor asks. The numbers are those of docs/promises.md.
import type { Check } from "../storage/check.ts";
import { sql } from "../storage/sql.ts";
import { directChecks } from "./direct/checks.ts";
import { groupChecks } from "./group/checks.ts";

const report = "report it: the tables' own rules and the engine should have made this impossible";

export const jobChecks: readonly Check[] = [
  {
    promise: "J1",
    name: "a running job has an open run of a known session, and no ended one",
    find: () => sql`select job.id as finding from job left join session on session.seq = job.session_seq
      where job.status = 'running' and (job.run_id is null or session.seq is null
        or exists (select 1 from run where run.tenant_id = job.tenant_id and run.id = job.run_id))`,
    advice: report,
  },
  {
    promise: "J2",
    name: "no run without its job",
    find: () => sql`select run.id as finding from run left join job on job.tenant_id = run.tenant_id and job.id = run.job_id
      where run.job_id is not null and job.seq is null`,
    advice: "rows of job were removed by hand: remove their runs as well, or restore a backup",
  },
  {
    promise: "J3",
    name: "a completed or failed job has exactly its run",
    find: () => sql`select job.id as finding from job
      left join run on run.tenant_id = job.tenant_id and run.id = job.run_id
      where job.status in ('completed', 'failed') and (run.seq is null or run.job_id <> job.id
        or (job.status = 'completed') <> (run.status = 'success'))`,
    advice: report,
  },
  {
    promise: "J4",
    name: "a job has at most one run",
    find: () =>
      sql`select job_id as finding from run where job_id is not null group by tenant_id, job_id having count(*) > 1`,
    advice: report,
  },
  {
    promise: "J5",
    name: "a retry has its parent's params and counts on from it",
    find: () => sql`select child.id as finding from job child join job parent on parent.seq = child.retry_of
      where child.params <> parent.params or child.name <> parent.name or child.attempt < parent.attempt
        or child.seq <= parent.seq or parent.finished_at is null
        or (child.origin <> 'manual' and child.losses < parent.losses)`,
    advice: report,
  },
  {
    promise: "J7",
    name: "no two queued jobs of a lane and priority have one place",
    find: () => sql`select min(id) as finding from job where status = 'queued'
      group by lane_seq, priority, position having count(*) > 1`,
    advice: "renumber the lane",
  },
  {
    promise: "J9",
    name: "no job runs in a session that has ended",
    find: () => sql`select job.id as finding from job join session on session.seq = job.session_seq
      where job.status = 'running' and session.status <> 'running'`,
    advice: "a worker's next sweep ends it; if it stays, no worker is running",
  },
  {
    promise: "J15",
    name: "a job that waits for its time has a time",
    find: () => sql`select id as finding from job where status = 'waiting' and (
      (waits_for = 'time' and available_at is null) or (waits_for in ('key', 'host') and waits_key is null))`,
    advice: report,
  },
  {
    promise: "J15",
    name: "a rate that jobs wait for has a time at which it opens",
    find: () => sql`select job.id as finding from job left join rate_window
        on rate_window.tenant_id = job.tenant_id and rate_window.rate_key = job.waits_key
      where job.status = 'waiting' and job.waits_for = 'time' and job.waits_key is not null
        and rate_window.opens_at is null`,
    advice: report,
  },
  {
    promise: "J2",
    name: "a job that was made from a template names one of its tenant",
    find: () => sql`select job.id as finding from job left join job_template template
        on template.tenant_id = job.tenant_id and template.id = job.template_id
      where job.template_id is not null and template.seq is null`,
    advice: "rows of job_template were removed by hand: restore a backup, or set the template_id of these jobs to null",
  },
  ...groupChecks,
  ...directChecks,
];
