// What must hold of groups; doctor asks.
import type { Check } from "../../storage/check.ts";
import { sql } from "../../storage/sql.ts";

const report = "report it: the end of a job and of its group are one transaction";

export const groupChecks: readonly Check[] = [
  {
    promise: "J9",
    name: "a group is open exactly while one of its jobs is",
    find: () => sql`select g.id as finding from daybook_job_group g where (g.status = 'open') <> exists (
      select 1 from daybook_line line where line.group_seq = g.seq)`,
    advice: report,
  },
  {
    promise: "J15",
    name: "a job that waits for its group stands behind an open one",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_job_group g on g.seq = line.group_seq
      where line.status = 'waiting' and line.waits_for = 'group' and (g.seq is null or g.mode <> 'sequential'
        or not exists (select 1 from daybook_line current where current.group_seq = g.seq
          and coalesce(current.waits_for, '') <> 'group'))`,
    advice: report,
  },
  {
    promise: "J9",
    name: "of a group that runs one after another, one job has its turn",
    find: () => sql`select g.id as finding from daybook_job_group g join daybook_line line on line.group_seq = g.seq
      where g.mode = 'sequential' and coalesce(line.waits_for, '') <> 'group' group by g.id having count(*) > 1`,
    advice: report,
  },
  {
    promise: "J3",
    name: "a group that has ended says how its jobs ended",
    find: () => sql`select g.id as finding from daybook_job_group g where g.status <> 'open' and (g.status = 'completed') = exists (
      select 1 from daybook_job job left join daybook_run run on run.job_seq = job.seq
      where job.group_seq = g.seq and coalesce(run.status, '') <> 'success' and not exists (
        select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = g.seq))`,
    advice: report,
  },
];
