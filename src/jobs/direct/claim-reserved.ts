// The claim of one who holds a reservation: its own job, once nothing else runs in the lane.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import type { Candidate } from "../candidate.ts";
import type { Claim } from "../claim.ts";
import { closeLane } from "../enter-lanes.ts";
import type { LaneRow } from "../lane.ts";
import { createSlots, lockNames, tryLimits } from "../limit.ts";
import { take, type Claimed } from "../take.ts";

/** What a worker that serves one reservation looks for. */
export type Reserved = { readonly id: string; readonly jobSeq: number; readonly laneSeq: number };

const none: Claim = {
  ...{ jobs: [], leftAlone: false, more: false, opensAt: null, parkedForTime: false },
  ...{ parked: 0, wentRound: true, contended: false, passedBy: false },
};

export async function claimReserved(
  tx: Tx,
  { sessionSeq, reserved }: { readonly sessionSeq: number; readonly reserved: Reserved },
  attempted: Claimed[],
): Promise<Claim> {
  // Claims that were under way when the lane was reserved have committed after this, and are seen by the next statement.
  await closeLane(tx, reserved.laneSeq);
  const busy = await tx.all<{ seq: number }>(
    sql`select seq from job where status = 'running' and lane_seq = ${reserved.laneSeq}`,
  );
  if (busy.length > 0) return (await isEnding(tx, busy)) ? { ...none, more: true, contended: true } : none;
  const job = await tx.get<Candidate>(sql`select job.seq, job.id, job.tenant_id, job.name, job.params, job.attempt,
      job.attempts, job.timeout_ms, job.available_at, job.alone, job.losses_max, job.cause_run_id, job.root_run_id,
      job.created_at, job.tags, job.limits, job.limit_key, job.chain_seq, job.about,
      job.group_seq, job.kind, job.kind_seq
    from job cross join reservation
    where job.seq = ${reserved.jobSeq} and job.status = 'waiting' and job.waits_for = 'reservation'
      and reservation.tenant_id = job.tenant_id and reservation.id = ${reserved.id}
      and reservation.status = 'active' and reservation.session_seq = ${sessionSeq}`);
  const lane = await tx.get<LaneRow>(sql`select * from lane where seq = ${reserved.laneSeq}`);
  if (job === undefined || lane === undefined) return none;
  if ((await tryLimits(tx, lockNames([job]))).size > 0) return { ...none, more: true, contended: true };
  const slots = await createSlots(tx, { direct: true }).take(job, lane);
  // It is not in line, so nobody lets it in when the rate opens.
  if ("waitsFor" in slots) return { ...none, opensAt: slots.waitsFor === "time" ? slots.until : null };
  const laneSlot = lane.limit_max === null ? null : 0;
  // On PostgreSQL somebody may have cancelled it meanwhile.
  const still = await tx.run(sql`update job set status = 'queued', waits_for = null, waits_key = null
    where seq = ${job.seq} and status = 'waiting' and waits_for = 'reservation'`);
  if (still === 0) return none;
  const jobs = await take(tx, { sessionSeq }, lane, [{ ...job, ...slots, lane_slot: laneSlot }], attempted);
  return { ...none, jobs };
}

// Whoever ends a run wakes the holder of its lane. One that looked for a holder before we were there does not, and we do
// not see yet that the run has ended; but it still has the row.
async function isEnding(tx: Tx, running: readonly { readonly seq: number }[]): Promise<boolean> {
  if (tx.dialect === "sqlite") return false;
  const seqs = running.map(({ seq }) => seq);
  const free = await tx.all(sql`select seq from job where seq ${anyOf("integer", seqs)} for key share skip locked`);
  return free.length < seqs.length;
}
