// What must hold for schedules and their decisions; doctor asks. The numbers are those of docs/promises.md.
import type { Check } from "../storage/checks.ts";
import { sql } from "../storage/sql.ts";
import { latestNow, mendAdvice } from "../jobs/checks.ts";
import { countAnew, isAhead, stepBack } from "./step-back.ts";

const report = "report it: a decision and its job are written in one transaction";

export const scheduleChecks: readonly Check[] = [
  {
    promise: "S1",
    name: "a decision that fired names a job of its schedule, unless that left by retention",
    // Retention does not note each job, so a decision from before the tenant's last removal may have lost its job.
    find: () => sql`select decision.job_id as finding from daybook_decision decision
      left join daybook_job job on job.tenant_id = decision.tenant_id and job.id = decision.job_id
      where decision.job_id is not null and (
        (job.seq is null and not exists (select 1 from daybook_eviction eviction where
          eviction.tenant_id = decision.tenant_id and eviction.what = 'job' and eviction.removed_at >= decision.decided_at))
        or (job.seq is not null and (job.kind is distinct from 'schedule'
          or job.kind_seq is distinct from decision.schedule_seq)))`,
    advice: `rows of daybook_job were removed by hand, or ${report}`,
  },
  {
    promise: "S1",
    name: "a decision that published names an event, unless that left by retention",
    find: () => sql`select decision.event_id as finding from daybook_decision decision
      left join daybook_event event on event.tenant_id = decision.tenant_id and event.id = decision.event_id
      where decision.event_id is not null and event.seq is null and not exists (select 1 from daybook_eviction eviction
        where eviction.tenant_id = decision.tenant_id and eviction.what = 'event'
          and eviction.removed_at >= decision.decided_at)`,
    advice: `rows of event were removed by hand, or ${report}`,
  },
  {
    promise: "S1",
    name: "an open job of a schedule has its decision",
    // A retry belongs to the decision about the first job of its chain, which may have left since.
    // One schedule may have ten thousand of both, and no index finds a decision by its job: they are read once and joined.
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      join daybook_job first on first.seq = coalesce(job.chain_seq, job.seq)
      left join (select distinct tenant_id, schedule_seq, job_id from daybook_decision where job_id is not null) as decision
        on decision.tenant_id = job.tenant_id and decision.schedule_seq = job.kind_seq and decision.job_id = first.id
      where line.kind = 'schedule' and decision.job_id is null`,
    advice: report,
  },
  {
    promise: "J15",
    name: "a job that waits for the one before it of its schedule has one before it",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.kind = 'schedule' and line.waits_for = 'order' and not exists (
        select 1 from daybook_line ahead where ahead.kind = 'schedule'
          and ahead.kind_seq = job.kind_seq
          and ahead.waits_for is distinct from 'order')`,
    advice: "cancel it and trigger the schedule, and report it: the end of a job releases the next",
  },
  {
    promise: "S1",
    name: "a schedule that goes on has a next time",
    // SQL cannot tell whether slots are left before an end; only the timing can.
    find: () => sql`select name as finding from daybook_schedule
      where next_at is null and paused_at is null and removed_at is null and held = 0 and ends_at is null and kind <> 'once'
        and (max_fires is null or fires < max_fires)`,
    advice: "pause and resume it; if it comes again, report it",
  },
  {
    promise: "D4",
    name: "no schedule has decided slots that are still to come",
    find: (_dialect, now) => sql`select name as finding, seq from daybook_schedule
      where ${isAhead(latestNow(now))} and removed_at is null`,
    advice: mendAdvice,
    mend: (tx, seqs) => countEach(seqs, (seq) => stepBack(tx, seq)),
  },
  {
    promise: "D4",
    name: 'no schedule with "in" is counted from a time that is still to come',
    find: (_dialect, now) => sql`select name as finding, seq from daybook_schedule
      where kind = 'once' and anchor_at > ${latestNow(now)} and removed_at is null`,
    advice: mendAdvice,
    mend: (tx, seqs) => countEach(seqs, (seq) => countAnew(tx, seq)),
  },
];

async function countEach(seqs: readonly number[], mend: (seq: number) => Promise<boolean>): Promise<number> {
  let count = 0;
  for (const seq of seqs) if (await mend(seq)) count++;
  return count;
}
