// A group is several jobs with one fate: they run one after another or side by side, and its maker says what happens when
// one fails. Each job has a slot; its retries keep it, so a pending retry keeps the group waiting.
//
//   open ──► completed   every slot's last job completed
//      ├───► failed      one failed and `stop` cancelled the rest
//      ├───► partial     one failed and `skip` skipped the rest, or `continue` let it run
//      └───► cancelled   a user cancelled the group
//
// What the end of a job means for its group is decided in the transaction in which it ends. The group's row is locked before:
// of two jobs that end at the same time, the later one sees the earlier.
import { conflict, notFound } from "../../core/error.ts";
import { inSlices } from "../../storage/slices.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, skipLocked } from "../../storage/word.ts";
import { groupEnded, type Ended, type Ports } from "../kind.ts";
import { cancelChannel, doneChannel, jobsChannel, seqsOf, type JobRow } from "../job.ts";
import { freeKeys } from "../key.ts";
import type { GroupEnd } from "../notice.ts";
import { tellAllEnded, tellOf } from "../settle/notify.ts";
import { passOn } from "../wait/park.ts";
import type { Ending } from "../settle/settle.ts";
import { cancelInLine, restand, skipInLine } from "../state.ts";

export type GroupMode = "sequential" | "parallel";
export type OnFailure = "stop" | "continue" | "skip";
export type GroupStatus = "open" | GroupEnd;

export type GroupRow = {
  seq: number;
  tenant_id: string;
  id: string;
  mode: GroupMode;
  on_failure: OnFailure;
  status: GroupStatus;
  slots: number;
  cancel_requested_at: number | null;
  stopped_at: number | null;
  name: string | null;
  notify: string | null;
};

/** Nothing is added to the group any more, and what fails is not tried again. */
export function isEnding(group: Pick<GroupRow, "status" | "stopped_at" | "cancel_requested_at">): boolean {
  return group.status !== "open" || group.stopped_at !== null || group.cancel_requested_at !== null;
}

/** Whether a job of the group that ended so is not tried again. What ran when its group began to skip was not skipped: it
 *  goes on, and a loss or a shutdown is no failure of its own, so it is made again. */
export function endsWith(group: GroupRow, { status, shutdown }: Pick<Ending, "status" | "shutdown">): boolean {
  if (!isEnding(group)) return false;
  const goesOn = group.status === "open" && group.cancel_requested_at === null && group.on_failure === "skip";
  return !(goesOn && (status === "lost" || shutdown === true));
}

export async function holdGroupsOf(tx: Tx, jobs: readonly Pick<JobRow, "group_seq">[]): Promise<Map<number, GroupRow>> {
  const seqs = [...new Set(jobs.flatMap((job) => job.group_seq ?? []))];
  if (seqs.length === 0) return new Map();
  const rows = await holdGroups(tx, sql`seq ${anyOf("integer", seqs)}`);
  return new Map(rows.map((row) => [row.seq, row]));
}

/** The group, held: what is decided about it next is decided by us alone. */
export async function holdGroup(tx: Tx, id: string): Promise<GroupRow> {
  const [row] = await holdGroups(tx, sql`tenant_id = ${tx.tenant} and id = ${id}`);
  if (row !== undefined) return row;
  throw notFound(`there is no group ${id}`, { id });
}

// The rows are written, not only locked: a serializable transaction would otherwise decide by what it saw before it got the
// lock; so it is run again. A transaction that holds several has locked them in their order before (lock-order.ts).
async function holdGroups(tx: Tx, which: Sql): Promise<GroupRow[]> {
  return tx.all<GroupRow>(sql`update daybook_job_group as job_group set slots = slots where ${which} returning *`);
}

/** A job of the group ended, and nothing of its chain follows. */
export async function memberEnded(tx: Tx, ports: Ports, group: GroupRow, ended: JobRow): Promise<void> {
  if (group.status !== "open") return;
  const failed = ended.status === "failed" || ended.status === "cancelled";
  if (failed && group.on_failure !== "continue" && group.stopped_at === null) {
    group.stopped_at = tx.now;
    await tx.run(sql`update daybook_job_group as job_group set stopped_at = ${tx.now} where seq = ${group.seq}`);
    if (group.on_failure === "stop") await cancelRest(tx, ports, group);
    else await leaveInSlices(tx, ports, group, skipInLine);
  }
  await goOn(tx, ports, group, { held: ended.waits_for === "release" });
}

export type CancelledGroup = { readonly id: string; readonly status: "cancelled" | "cancelling" };

/** Cancels what has not begun and asks what runs to end; the group ends with the last of them. */
export async function cancelGroup(tx: Tx, ports: Ports, id: string): Promise<CancelledGroup> {
  const group = await holdGroup(tx, id);
  if (group.status !== "open") {
    throw conflict(`group ${id} is ${group.status} and cannot be cancelled`, { id, status: group.status });
  }
  group.cancel_requested_at ??= tx.now;
  await tx.run(sql`update daybook_job_group as job_group set cancel_requested_at = ${group.cancel_requested_at}
    where seq = ${group.seq}`);
  await cancelRest(tx, ports, group);
  await goOn(tx, ports, group);
  const left = await tx.get(openOf(group));
  return { id, status: left === undefined ? "cancelled" : "cancelling" };
}

async function cancelRest(tx: Tx, ports: Ports, group: GroupRow): Promise<void> {
  await leaveInSlices(tx, ports, group, cancelInLine);
  // One that is just being settled is passed by: its settle waits for our lock, and then sees that the group has stopped.
  await tx.run(sql`update daybook_line set cancel_requested_at = coalesce(cancel_requested_at, ${tx.now})
    where seq in (select seq from daybook_line where group_seq = ${group.seq} and started_at is not null ${skipLocked})`);
  // Also for one that was passed by: its worker looks, and finds that the group wants it to end.
  tx.wake(cancelChannel);
}

/** Lets all leave the line before it tells of any: what follows from the end of one locks others (lock-order.ts). */
async function leaveInSlices(tx: Tx, ports: Ports, group: GroupRow, leave: typeof cancelInLine): Promise<void> {
  const open = await tx.all<{ seq: number }>(sql`${openOf(group)} order by seq`);
  const left: JobRow[] = [];
  await inSlices(seqsOf(open), async (seqs) => {
    left.push(...(await leave(tx, sql`select seq from daybook_line where seq ${anyOf("integer", seqs)}`)));
  });
  await inSlices(left, (slice) => tellLeft(tx, ports, slice));
}

function openOf({ seq }: GroupRow): Sql {
  return sql`select seq from daybook_line where group_seq = ${seq}`;
}

/** Tells the rooms above of jobs that left the line before they ran. What they would have used goes to the next. */
export async function tellLeft(tx: Tx, ports: Ports, left: readonly JobRow[]): Promise<void> {
  await passOn(tx, left);
  await freeKeys(tx, left);
  if (left.some((job) => job.awaited !== 0)) tx.wake(doneChannel);
  const ended = left.map((job): Ended => {
    const { tenant_id: tenant, id, name, status, attempt, run_id: runId } = job;
    const run = runId === null ? null : { id: runId, status: "skipped" as const, durationMs: 0, error: null };
    return { job, outcome: { tenant, id, name, status, attempt, run, retriedBy: null } };
  });
  await tellAllEnded(tx, ports, ended);
}

/** Lets the next one begin, or ends the group when none is left. Behind one that was held, the next one is. */
async function goOn(tx: Tx, ports: Ports, group: GroupRow, { held } = { held: false }): Promise<void> {
  const next = await tx.get<{ seq: number; waits_for: string | null; available_at: number }>(sql`select seq, waits_for,
      available_at from daybook_line where group_seq = ${group.seq} order by group_slot limit 1`);
  if (next === undefined) return finish(tx, ports, group);
  if (group.mode === "parallel" || next.waits_for !== "group") return;
  // One that was retried by hand stands before the one whose turn it is, and waits for its end.
  const current = await tx.get(sql`select seq from daybook_line
    where group_seq = ${group.seq} and coalesce(waits_for, '') <> 'group' limit 1`);
  if (current !== undefined) return;
  const { seq, available_at: availableAt } = next;
  if (held) return void (await restand(tx, seq, { waitsFor: "release", waitsKey: "job", availableAt }));
  await restand(tx, seq, { waitsFor: availableAt > tx.now ? "time" : null, availableAt });
  tx.wake(jobsChannel);
}

async function finish(tx: Tx, { notices }: Ports, group: GroupRow): Promise<void> {
  const failed = await tx.get(sql`select job.seq from daybook_job job left join daybook_run run on run.job_seq = job.seq
    where job.group_seq = ${group.seq} and coalesce(run.status, '') <> 'success' and not exists (
      select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = job.group_seq) limit 1`);
  const status = statusOf(group, failed === undefined);
  group.status = status;
  await tx.run(sql`update daybook_job_group as job_group set status = ${status}, finished_at = ${tx.now}
    where seq = ${group.seq}`);
  tx.wake(doneChannel);
  const { tenant_id: tenant, id, name, notify } = group;
  if (notices !== undefined && notify !== null) {
    const said = { tenant, end: status, type: `group.${status}`, id, name, data: { id, name, status } };
    await tellOf(tx, notices, notify, [{ ...said, runId: null, rootRunId: null }]);
  }
  tx.afterCommit(() => groupEnded.state({ tenant, id, status }));
}

function statusOf(group: GroupRow, allCompleted: boolean): GroupStatus {
  if (allCompleted) return "completed";
  if (group.cancel_requested_at !== null) return "cancelled";
  return group.on_failure === "stop" ? "failed" : "partial";
}
