// What happens when a job of a schedule ends: failures in a row may pause the schedule, and the next queued job may go.
//
// The order of locks on PostgreSQL: jobs, then schedules by their numbers. A transaction that ends jobs holds them and waits for
// their schedules; so one that fires holds schedules and never waits, neither for a schedule nor for a job (fire.ts).
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { plainKind, type Ended, type JobEnded, type JobKind } from "../jobs/kind.ts";
import type { JobRow } from "../jobs/job.ts";
import { jobsChannel } from "../jobs/job.ts";
import { release, waitsKey } from "../jobs/wait/park.ts";
import { park, queueOne } from "../jobs/state.ts";
import { scheduleKind, schedulesChannel, type ScheduleRow } from "./schedule.ts";
import { anyOf, forUpdate } from "../storage/word.ts";

type Row = Pick<ScheduleRow, "seq" | "id" | "failures" | "pause_after" | "paused_at">;

/** Locks the schedules of a batch of ended jobs, before the first of them needs its own. */
async function lockSchedules(tx: Tx, seqs: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await tx.all(sql`select seq from daybook_schedule where seq ${anyOf("integer", seqs)} order by seq ${forUpdate}`);
}

/** The jobs that schedules make, as a kind. */
export const fires: JobKind = {
  ...plainKind,
  ended: scheduledJobEnded,
  lock: lockSchedules,
  order: { behind: "It comes after the one that was made before it, by the order of its schedule", instead: null },
};

async function scheduledJobEnded(tx: Tx, ended: readonly Ended[]): Promise<void> {
  for (const { job, outcome } of ended) if (outcome.retriedBy === null) await chainEnded(tx, job, outcome);
}

async function chainEnded(tx: Tx, job: JobRow, { status }: JobEnded): Promise<void> {
  const row = await tx.get<Row>(sql`select seq, id, failures, pause_after, paused_at from daybook_schedule
    where seq = ${job.kind_seq} ${forUpdate}`);
  if (row === undefined) return;
  await letNextGo(tx, job, row.id);
  if (row.pause_after === null || (status !== "failed" && status !== "completed")) return;
  const failures = status === "failed" ? row.failures + 1 : 0;
  const pauses = row.paused_at === null && failures >= row.pause_after;
  if (failures === row.failures) return;
  await tx.run(sql`update daybook_schedule set failures = ${failures} where seq = ${row.seq}`);
  if (!pauses) return;
  await tx.run(sql`update daybook_schedule set paused_at = ${tx.now}, next_at = null,
      paused_note = ${`${failures} jobs in a row failed, the last one was ${job.id}`} where seq = ${row.seq}`);
  tx.wake(schedulesChannel);
}

type Next = { readonly seq: number; readonly lane_seq: number; readonly available_at: number };

// Whatever the policy is now: the jobs that wait were made while it was "queue". A waiting job that is cancelled ends too, and
// then the running one still goes on.
async function letNextGo(tx: Tx, job: JobRow, scheduleId: string): Promise<void> {
  const order = { tenant: job.tenant_id, waitsFor: "order", key: scheduleId } as const;
  const next = await tx.get<Next>(sql`select seq, lane_seq, available_at from daybook_line
    where kind = ${scheduleKind} and kind_seq = ${job.kind_seq} and kind is not null
      and waits_for = 'order' and waits_key = ${waitsKey(order)} order by seq limit 1`);
  if (next === undefined) return;
  const ahead = await tx.get(sql`select seq from daybook_line
    where kind = ${scheduleKind} and kind_seq = ${job.kind_seq} and kind is not null and seq <> ${job.seq} and (waits_for is null or waits_for <> 'order') limit 1`);
  if (ahead !== undefined) return;
  // Behind a job that was held in a copy of the book, the next one is held too.
  if (job.waits_for === "release") {
    return park(tx, [{ ...next, waits_for: "release", waits_key: scheduleKind }]);
  }
  if ((await release(tx, order, 1, [next.lane_seq])) > 0) return;
  // Another transaction has it locked, to move or edit it. Wait for it: no sweep would release it later.
  if (await queueOne(tx, next.seq, "order")) tx.wake(jobsChannel);
}
