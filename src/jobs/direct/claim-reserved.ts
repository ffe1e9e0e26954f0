// The claim of one who holds a reservation: its own job, once nothing else runs in the lane.
import { tryNames } from "../../storage/lock-key.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { startableColumns, type Startable } from "../job.ts";
import { noClaim, start, type Claim, type Starter } from "../claim.ts";
import { closeLane } from "../gate.ts";
import type { LaneRow } from "../lane.ts";
import { createPermits, limitNames, writePermits } from "../limit.ts";
import { queueOne } from "../state.ts";

/** What a worker that serves one reservation looks for. */
export type Reserved = { readonly id: string; readonly jobSeq: number; readonly laneSeq: number };

export async function claimReserved(tx: Tx, by: Starter, reserved: Reserved): Promise<Claim> {
  // Claims that were under way when the lane was reserved have committed after this, and are seen by the next statement.
  await closeLane(tx, reserved.laneSeq);
  const none = noClaim();
  const busy = await tx.all<{ seq: number }>(sql`select seq from daybook_line
    where status = 'running' and lane_seq = ${reserved.laneSeq}`);
  if (busy.length > 0) return (await isEnding(tx, busy)) ? { ...none, more: true, contended: true } : none;
  const job = await tx.get<Startable>(sql`select ${startableColumns}
    from daybook_line line cross join daybook_job job cross join daybook_reservation reservation
    where line.seq = ${reserved.jobSeq} and line.status = 'waiting' and line.waits_for = 'reservation' and job.seq = line.seq
      and reservation.tenant_id = job.tenant_id and reservation.id = ${reserved.id}
      and reservation.status = 'active' and reservation.session_seq = ${by.claimer.sessionSeq}`);
  const lane = await tx.get<LaneRow>(sql`select * from daybook_lane where seq = ${reserved.laneSeq}`);
  if (job === undefined || lane === undefined) return none;
  if ((await tryNames(tx, limitNames([job]))).size > 0) return { ...none, more: true, contended: true };
  const permits = await createPermits(tx, { direct: true }).take(job);
  // It is not in line, so nobody lets it in when the rate opens.
  if ("waitsFor" in permits) return { ...none, opensAt: permits.waitsFor === "time" ? permits.until : null };
  // On PostgreSQL somebody may be moving it, or cancelling it.
  if (!(await queueOne(tx, job.seq, "reservation", { passBy: true }))) return { ...none, more: true, contended: true };
  const jobs = await start(tx, by, lane.queue, [job]);
  await writePermits(tx, permits);
  return { ...none, jobs };
}

// Whoever ends a run wakes the holder of its lane. One that looked for a holder before we were there does not, and we do
// not see yet that the run has ended; but it still has the row.
async function isEnding(tx: Tx, running: readonly { readonly seq: number }[]): Promise<boolean> {
  if (tx.dialect === "sqlite") return false;
  const seqs = running.map(({ seq }) => seq);
  const free = await tx.all(sql`select seq from daybook_line
    where seq ${anyOf("integer", seqs)} for key share skip locked`);
  return free.length < seqs.length;
}
