// What must hold of jobs and their runs; doctor asks. The numbers are those of docs/promises.md.
import { limits } from "../core/limits.ts";
import type { Check } from "../storage/checks.ts";
import { sql } from "../storage/sql.ts";
import { jobTimeChecks } from "./explain/time-checks.ts";

const report = "report it: the tables' own rules and the engine should have made this impossible";

const oneTransaction = "report it: the end of a job and of its group are one transaction";
const underOneLock = "report it: a claim reads the reservation of a queue under the lock under which it is made";

// The time of a transaction is read before its locks, so one that began a little earlier may have committed later. Hosts
// need not agree on the time at all: only what one of them wrote is compared.
const wroteLaterMs = 2 * limits.busyMsMax;

const checks: readonly (Omit<Check, "advice"> & Partial<Check>)[] = [
  {
    promise: "J1",
    name: "an open job has one row in the line, and a running one is of a known session and has no ended run",
    find: () => sql`select coalesce(job.id, 'line ' || line.seq) as finding from daybook_line line
      left join daybook_job job on job.seq = line.seq left join daybook_run run on run.job_seq = line.seq
      left join daybook_session session on session.seq = line.session_seq
      where job.seq is null or run.seq is not null or job.cancelled_at is not null or job.lane_seq <> line.lane_seq
        or (line.status = 'running' and session.seq is null)`,
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
  },
  {
    promise: "J5",
    name: "a retry has its parent's params and counts on from it",
    find: () => sql`select child.id as finding from daybook_job child join daybook_job parent on parent.seq = child.retry_of
      left join daybook_line line on line.seq = parent.seq
      where child.params <> parent.params or child.name <> parent.name or child.attempt < parent.attempt
        or child.seq <= parent.seq or line.seq is not null
        or (child.origin <> 'manual' and child.losses < parent.losses)`,
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
  },
  {
    promise: "J15",
    name: "a job that waits for somebody says for whom",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'waiting' and line.waits_for in ('key', 'host', 'alone', 'release') and line.waits_key is null`,
  },
  {
    promise: "J15",
    name: "a rate that jobs wait for has a time at which it opens",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_rate_window rate_window on rate_window.tenant_id = job.tenant_id
        and job.tenant_id || ${"\n"} || rate_window.rate_key = line.waits_key
      where line.status = 'waiting' and line.waits_for = 'time' and line.waits_key is not null
        and rate_window.opens_at is null`,
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
  {
    promise: "J9",
    name: "a group is open exactly while one of its jobs is",
    find: () => sql`select g.id as finding from daybook_job_group g where (g.status = 'open') <> exists (
      select 1 from daybook_line line where line.group_seq = g.seq)`,
    advice: oneTransaction,
  },
  {
    promise: "J15",
    name: "a job that waits for its group stands behind an open one",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_job_group g on g.seq = line.group_seq
      where line.status = 'waiting' and line.waits_for = 'group' and (g.seq is null or g.mode <> 'sequential'
        or not exists (select 1 from daybook_line current where current.group_seq = g.seq
          and coalesce(current.waits_for, '') <> 'group'))`,
    advice: oneTransaction,
  },
  {
    promise: "J9",
    name: "of a group that runs one after another, one job has its turn",
    find: () => sql`select g.id as finding from daybook_job_group g join daybook_line line on line.group_seq = g.seq
      where g.mode = 'sequential' and coalesce(line.waits_for, '') <> 'group' group by g.id having count(*) > 1`,
    advice: oneTransaction,
  },
  {
    promise: "J3",
    name: "a group that has ended says how its jobs ended",
    find: () => sql`select g.id as finding from daybook_job_group g where g.status <> 'open' and (g.status = 'completed') = exists (
      select 1 from daybook_job job left join daybook_run run on run.job_seq = job.seq
      where job.group_seq = g.seq and coalesce(run.status, '') <> 'success' and not exists (
        select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = g.seq))`,
    advice: oneTransaction,
  },
  // That a queue has one reservation at most is the index's.
  {
    promise: "J10",
    name: "nothing of a queue was started while the queue was reserved",
    find: () => sql`select job.id as finding from daybook_reservation reservation
      join daybook_session holder on holder.seq = reservation.session_seq
      join daybook_line line on line.lane_seq = reservation.lane_seq join daybook_job job on job.seq = line.seq
      join daybook_session runner on runner.seq = line.session_seq
      where reservation.status = 'active' and line.status = 'running' and job.origin <> 'direct'
        and runner.host = holder.host
        and line.started_at > reservation.reserved_at + ${wroteLaterMs} and line.started_at < reservation.expires_at`,
    advice: underOneLock,
  },
  {
    promise: "J10",
    name: "nothing else of a queue runs beside direct work that holds it",
    find: () => sql`select job.id as finding from daybook_reservation reservation
      join daybook_line direct on direct.lane_seq = reservation.lane_seq and direct.session_seq = reservation.session_seq
      join daybook_line line on line.lane_seq = reservation.lane_seq and line.seq <> direct.seq
      join daybook_job job on job.seq = line.seq
      where reservation.status = 'active' and direct.status = 'running' and direct.kind = 'direct'
        and direct.started_at >= reservation.reserved_at
        and line.status = 'running' and line.started_at < reservation.expires_at`,
    advice: underOneLock,
  },
  {
    promise: "J15",
    name: "a job that waits for its reservation has one that is held",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_reservation reservation
        on reservation.tenant_id = job.tenant_id and reservation.id = line.waits_key and reservation.status = 'active'
          and reservation.lane_seq = line.lane_seq
      where line.status = 'waiting' and line.waits_for = 'reservation' and (reservation.seq is null
        or job.origin <> 'direct')`,
    advice: underOneLock,
  },
];

export const jobChecks: readonly Check[] = [...checks.map((check) => ({ advice: report, ...check })), ...jobTimeChecks];
