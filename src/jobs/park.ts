// Jobs that cannot run now stand outside the claim index. Whoever finds one there parks it with its reason; whoever
// removes the reason releases the first that waits for it, in the same transaction.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy, rowSet, skipLocked } from "../storage/word.ts";
import { earlier } from "./alarm.ts";
import { jobsChannel, type WaitsFor } from "./job.ts";

export type Parked = {
  readonly seq: number;
  readonly waits_for: WaitsFor;
  readonly waits_key: string | null;
  readonly available_at: number;
};

/** Parks jobs that the caller has just found in line. */
export async function park(tx: Tx, jobs: readonly Parked[]): Promise<void> {
  if (jobs.length === 0) return;
  const columns = { seq: "integer", waits_for: "text", waits_key: "text", available_at: "integer" } as const;
  await tx.run(sql`update job set status = 'waiting', waits_for = v.waits_for, waits_key = v.waits_key,
      available_at = v.available_at
    from ${rowSet("v", columns, jobs)} where job.seq = v.seq and job.started_at is null and job.finished_at is null`);
}

export type Reason = { readonly tenant: string; readonly waitsFor: WaitsFor; readonly key: string };

/** Queues the first `most` jobs of each lane that wait for this reason and key. Not only the first of all: its lane may
 *  be closed, or served by nobody, and what it cannot use would be kept from the others. Whoever comes too late for what
 *  has become free is parked again on contact. */
export async function release(tx: Tx, reason: Reason, most: number, lanes?: readonly number[]): Promise<number> {
  let released = 0;
  for (const lane of lanes ?? (await lanesThatWait(tx, reason))) {
    released += await tx.run(sql`update job set status = 'queued', waits_for = null, waits_key = null
      where seq in (select seq from job ${indexedBy("jobs_waiting")}
        where status = 'waiting' and waits_for = ${reason.waitsFor} and waits_key = ${reason.key}
          and tenant_id = ${reason.tenant} and lane_seq = ${lane}
        order by priority desc, position, seq limit ${most} ${skipLocked})`);
  }
  if (released > 0) tx.wake(jobsChannel);
  return released;
}

/** The lanes in which jobs wait for this. Each costs one seek, however many do. */
export async function lanesThatWait(tx: Tx, { tenant, waitsFor, key }: Reason): Promise<number[]> {
  const waiting = sql`status = 'waiting' and waits_for = ${waitsFor} and waits_key = ${key} and tenant_id = ${tenant}`;
  const lanes = await tx.all<{ lane_seq: number }>(sql`
    with recursive turn (seq, place) as (
      select (select min(lane_seq) from job ${indexedBy("jobs_waiting")} where ${waiting}), 1
      union all
      select (select min(lane_seq) from job ${indexedBy("jobs_waiting")} where ${waiting} and lane_seq > turn.seq), place + 1
      from turn where turn.seq is not null and place < ${limits.releaseLanesMax}
    )
    select seq as lane_seq from turn where seq is not null`);
  return lanes.map((row) => row.lane_seq);
}

/** Queues the jobs whose time has come, at most `most` of them, and names them. */
export async function releaseDue(tx: Tx, most: number): Promise<number[]> {
  const released = await tx.all<{
    seq: number;
  }>(sql`update job set status = 'queued', waits_for = null, waits_key = null
    where seq in (select seq from job ${indexedBy("jobs_due")}
      where status = 'waiting' and waits_for = 'time' and waits_key is null and available_at <= ${tx.now}
      order by available_at limit ${most} ${skipLocked}) returning seq`);
  return released.map((row) => row.seq);
}

/** When the next waiting job is due, or a rate that jobs wait for opens; null when neither is to come. */
export async function nextDueAt(tx: Tx): Promise<number | null> {
  const row = await tx.get<{ due_at: number | null; opens_at: number | null }>(sql`select
    (select min(available_at) from job where status = 'waiting' and waits_for = 'time' and waits_key is null) as due_at,
    (select min(opens_at) from rate_window where opens_at is not null) as opens_at`);
  return earlier(row?.due_at ?? null, row?.opens_at ?? null);
}
