// What the end of a job means for its group, in the transaction in which it ends. A group's row is locked before anything
// is decided about it: of two jobs that end at the same time, the later one sees the earlier.
import { DaybookError } from "../../core/error.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, forUpdate, skipLocked } from "../../storage/word.ts";
import { groupEnded, tellEnded, type JobHooks } from "../hooks.ts";
import { cancelChannel, doneChannel, jobsChannel, type JobRow } from "../job.ts";
import { freeKeys, passOn } from "../let-in.ts";
import { cancelInLine, restand, skipInLine } from "../state.ts";
import { holdGroups, isCurrent, lockGroup, type GroupRow, type GroupStatus } from "./group.ts";

/** The groups of these jobs, locked in one order, by their row's number. */
export async function lockGroupsOf(tx: Tx, jobs: readonly Pick<JobRow, "group_seq">[]): Promise<Map<number, GroupRow>> {
  const seqs = [...new Set(jobs.flatMap((job) => job.group_seq ?? []))].sort((a, b) => a - b);
  if (seqs.length === 0) return new Map();
  const rows = await tx.all<GroupRow>(
    sql`select * from daybook_job_group job_group where seq ${anyOf("integer", seqs)} order by seq ${forUpdate}`,
  );
  await holdGroups(tx, seqs);
  return new Map(rows.map((row) => [row.seq, row]));
}

/** A job of the group ended, and nothing of its chain follows. */
export async function memberEnded(tx: Tx, hooks: JobHooks, group: GroupRow, ended: JobRow): Promise<void> {
  if (group.status !== "open") return;
  const failed = ended.status === "failed" || ended.status === "cancelled";
  if (failed && group.on_failure !== "continue" && group.stopped_at === null) {
    group.stopped_at = tx.now;
    await tx.run(sql`update daybook_job_group as job_group set stopped_at = ${tx.now} where seq = ${group.seq}`);
    if (group.on_failure === "stop") await cancelRest(tx, hooks, group);
    else await skipRest(tx, hooks, group);
  }
  await goOn(tx, group);
}

export type CancelledGroup = { readonly id: string; readonly status: "cancelled" | "cancelling" };

/** Cancels what has not begun and asks what runs to end; the group ends with the last of them. */
export async function cancelGroup(tx: Tx, hooks: JobHooks, id: string): Promise<CancelledGroup> {
  const group = await lockGroup(tx, id);
  if (group.status !== "open") {
    throw new DaybookError("conflict", `group ${id} is ${group.status} and cannot be cancelled`, {
      details: { id, status: group.status },
    });
  }
  group.cancel_requested_at ??= tx.now;
  await tx.run(
    sql`update daybook_job_group as job_group set cancel_requested_at = ${group.cancel_requested_at} where seq = ${group.seq}`,
  );
  await cancelRest(tx, hooks, group);
  await goOn(tx, group);
  const left = await tx.get(sql`select seq from daybook_line where group_seq = ${group.seq} limit 1`);
  return { id, status: left === undefined ? "cancelled" : "cancelling" };
}

/** Cancels what has not begun and asks what runs to end. */
async function cancelRest(tx: Tx, hooks: JobHooks, group: GroupRow): Promise<void> {
  await tellLeft(tx, hooks, await cancelInLine(tx, openOf(group)), "cancelled");
  // One that somebody is just settling is left to them: they wait for our lock, and then see that the group has stopped.
  await tx.run(sql`update daybook_line set cancel_requested_at = coalesce(cancel_requested_at, ${tx.now})
    where seq in (select seq from daybook_line where group_seq = ${group.seq} and started_at is not null ${skipLocked})`);
  // Also for one that was passed by: whoever looks finds that its group wants it to end.
  tx.wake(cancelChannel);
}

async function skipRest(tx: Tx, hooks: JobHooks, group: GroupRow): Promise<void> {
  await tellLeft(tx, hooks, await skipInLine(tx, openOf(group)), "skipped");
}

function openOf(group: GroupRow): Sql {
  return sql`select seq from daybook_line where group_seq = ${group.seq}`;
}

/** Tells the rooms above of jobs that left the line before they ran. What they would have used goes to the next. */
export async function tellLeft(
  tx: Tx,
  hooks: JobHooks,
  left: readonly JobRow[],
  status: "cancelled" | "skipped",
): Promise<void> {
  await passOn(tx, left);
  await freeKeys(tx, left);
  if (left.some((job) => job.awaited !== 0)) tx.wake(doneChannel);
  for (const job of left) {
    const { tenant_id: tenant, id, name, attempt, run_id: runId } = job;
    const run = runId === null ? null : { id: runId, status: "skipped" as const, durationMs: 0, error: null };
    await tellEnded(tx, hooks, job, { tenant, id, name, status, attempt, run, retriedBy: null });
  }
}

/** Lets the next one begin, or ends the group when nobody is left. */
async function goOn(tx: Tx, group: GroupRow): Promise<void> {
  const next = await tx.get<{ seq: number; waits_for: string | null; available_at: number }>(sql`select seq, waits_for,
      available_at from daybook_line where group_seq = ${group.seq} order by group_slot limit 1`);
  if (next === undefined) return finish(tx, group);
  if (group.mode === "parallel" || next.waits_for !== "group") return;
  // One that was retried by hand stands before the one whose turn it is, and waits for its end.
  const current = await tx.get(
    sql`select seq from daybook_line where group_seq = ${group.seq} and ${isCurrent} limit 1`,
  );
  if (current !== undefined) return;
  const waits = next.available_at > tx.now;
  await restand(tx, next.seq, { waitsFor: waits ? "time" : null, availableAt: next.available_at });
  tx.wake(jobsChannel);
}

async function finish(tx: Tx, group: GroupRow): Promise<void> {
  const failed = await tx.get(sql`select job.seq from daybook_job job left join daybook_run run on run.job_seq = job.seq
    where job.group_seq = ${group.seq} and coalesce(run.status, '') <> 'success' and not exists (
      select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = job.group_seq) limit 1`);
  const status = statusOf(group, failed === undefined);
  group.status = status;
  await tx.run(
    sql`update daybook_job_group as job_group set status = ${status}, finished_at = ${tx.now} where seq = ${group.seq}`,
  );
  tx.wake(doneChannel);
  tx.afterCommit(() => groupEnded.state({ tenant: group.tenant_id, id: group.id, status }));
}

function statusOf(group: GroupRow, allCompleted: boolean): GroupStatus {
  if (allCompleted) return "completed";
  if (group.cancel_requested_at !== null) return "cancelled";
  return group.on_failure === "stop" ? "failed" : "partial";
}
