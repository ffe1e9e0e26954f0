// Cancel: a job that has not started never runs and has no run; a running one is asked to end, and its owner records how.
import { conflict, notFound, type DaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";
import { holdGroupsOf, memberEnded, tellLeft } from "../group/group.ts";
import type { Ports } from "../kind.ts";
import { cancelChannel, findJobRow, seqOf, type JobKey, type JobRow } from "../job.ts";
import { lockJob } from "../lock-order.ts";
import { cancelInLine } from "../state.ts";

export type Cancelled = { readonly id: string; readonly status: "cancelled" | "cancelling" };

export async function cancelJob(tx: Tx, ports: Ports, id: string, tenant = tx.tenant): Promise<Cancelled> {
  const job = { tenant, id };
  await lockJob(tx, job);
  // On PostgreSQL a job that was in line when we looked may have begun when we look for running ones, so it is looked at twice.
  for (let looks = 0; looks < 2; looks++) {
    if (await tryCancelUnstarted(tx, ports, job)) return { id, status: "cancelled" };
    if (await askToCancel(tx, job)) return { id, status: "cancelling" };
  }
  throw await refusal(tx, id, "cancelled");
}

/** Cancels a job that has not begun. False for one that began, or ended, since it was looked at: that one goes on as it is. */
export async function cancelUnstarted(tx: Tx, ports: Ports, id: string): Promise<boolean> {
  const job = { tenant: tx.tenant, id };
  await lockJob(tx, job);
  return tryCancelUnstarted(tx, ports, job);
}

async function tryCancelUnstarted(tx: Tx, ports: Ports, job: JobKey): Promise<boolean> {
  const [row] = await cancelInLine(tx, seqOf(job));
  if (row !== undefined) await tellCancelled(tx, ports, row);
  return row !== undefined;
}

async function askToCancel(tx: Tx, job: JobKey): Promise<boolean> {
  const asked = await tx.run(sql`update daybook_line set cancel_requested_at = coalesce(cancel_requested_at, ${tx.now})
    where seq = (${seqOf(job)}) and started_at is not null`);
  if (asked > 0) tx.wake(cancelChannel);
  return asked > 0;
}

/** Tells the rooms above, and its group, of a job that was cancelled before it ran. */
export async function tellCancelled(tx: Tx, ports: Ports, row: JobRow): Promise<void> {
  await tellLeft(tx, ports, [row]);
  for (const group of (await holdGroupsOf(tx, [row])).values()) await memberEnded(tx, ports, group, row);
}

/** Why a command on a job was refused: it does not exist for this tenant, or it has ended. */
export async function refusal(tx: Tx, id: string, verb: string): Promise<DaybookError> {
  const row = await findJobRow(tx, { tenant: tx.tenant, id });
  if (row === undefined) return notFound(`there is no job ${id}`, { id });
  return conflict(`job ${id} is ${row.status} and cannot be ${verb}`, { id, status: row.status });
}

/** A user wants the running job to end: it, or the group it belongs to. */
export const isCancelled = sql`(line.cancel_requested_at is not null
  or exists (select 1 from daybook_job_group job_group where job_group.seq = line.group_seq and (job_group.cancel_requested_at is not null
    or (job_group.stopped_at is not null and job_group.on_failure = 'stop'))))`;

export async function readCancelled(store: Store, sessionSeq: number): Promise<string[]> {
  const rows = await store.read<{ run_id: string }>(
    sql`select line.run_id from daybook_line line ${indexedBy("jobs_running")}
      where line.status = 'running' and line.session_seq = ${sessionSeq} and ${isCancelled}`,
  );
  return rows.map((row) => row.run_id);
}
