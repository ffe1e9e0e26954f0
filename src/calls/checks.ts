// What must hold for calls and their attempts; doctor asks. The numbers are those of docs/promises.md.
import type { Check } from "../storage/checks.ts";
import { sql } from "../storage/sql.ts";
import { anyOf } from "../storage/word.ts";
import { latestNow, mendAdvice } from "../jobs/checks.ts";
import { callKind } from "./call.ts";
import { endLongPauses, pauseMsMax } from "./circuit.ts";

const report = "report it: a call and its job are written in one transaction";

const openJob = sql`join daybook_line line on line.kind = ${callKind} and line.kind_seq = call.seq and line.kind is not null
  join daybook_job job on job.seq = line.seq`;

export const callChecks: readonly Check[] = [
  {
    promise: "C1",
    name: "a call that has not ended has one job that will send it, and one that has ended has none",
    find: () => sql`select call.id as finding from daybook_call call
      where (call.finished_at is null) <> exists (select 1 from daybook_line line
        where line.kind = 'call' and line.kind_seq = call.seq)`,
    advice: `rows of daybook_job were removed by hand, or ${report}`,
  },
  {
    promise: "C2",
    name: "an open attempt belongs to a run that is under way",
    find: () => sql`select call_attempt.id as finding from daybook_call_attempt call_attempt
      where call_attempt.finished_at is null and not exists (select 1 from daybook_line line
        where line.run_id = call_attempt.id and line.status = 'running')`,
    advice: report,
  },
  {
    promise: "C2",
    name: "a call that was answered has an attempt that says so",
    find: () => sql`select call.id as finding from daybook_call call
      where call.status = 'succeeded' and not exists (select 1 from daybook_call_attempt call_attempt
        where call_attempt.tenant_id = call.tenant_id and call_attempt.call_id = call.id
          and call_attempt.finished_at is not null)`,
    advice: report,
  },
  {
    promise: "D4",
    name: "no call that has not begun was submitted in the future",
    find: (_dialect, now) => sql`select id as finding, seq from daybook_call
      where status = 'scheduled' and submitted_at > ${latestNow(now)}`,
    advice: mendAdvice,
    // Doctor mends jobs before calls, so the job has the right time by now.
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_call set submitted_at = ${tx.now}, due_at = coalesce((select job.due_at
          from daybook_line line join daybook_job job on job.seq = line.seq
          where line.kind = ${callKind} and line.kind_seq = daybook_call.seq and line.kind is not null), ${tx.now})
        where seq ${anyOf("integer", seqs)} and status = 'scheduled' and submitted_at > ${latestNow(tx.now)}`),
  },
  {
    promise: "D4",
    name: "a call that has not begun is due when its job is",
    // The time of the job was mended.
    find: () => sql`select call.id as finding, call.seq from daybook_call call ${openJob}
      where call.status = 'scheduled' and call.due_at <> job.due_at`,
    advice: mendAdvice,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_call set due_at = (select job.due_at from daybook_call call ${openJob}
          where call.seq = daybook_call.seq)
        where seq ${anyOf("integer", seqs)} and status = 'scheduled' and seq in (select call.seq from daybook_call call ${openJob}
          where call.status = 'scheduled' and call.due_at <> job.due_at)`),
  },
  {
    promise: "D4",
    name: "no host is left alone for longer than a pause lasts",
    find: (_dialect, now) => sql`select tenant_id || ' ' || host as finding, 0 as seq from daybook_call_host
      where probe_at > ${latestNow(now) + pauseMsMax}`,
    advice: mendAdvice,
    mend: endLongPauses,
  },
];
