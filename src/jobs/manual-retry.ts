// Retry by hand: continues the last job of a chain, whatever it ended as, and may go beyond `attempts`.
import { DaybookError } from "../core/error.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import type { Enqueued } from "./enqueue.ts";
import { holdGroupsOf, isEnding } from "./group/group.ts";
import { readJobs, type JobRow } from "./job.ts";
import { lockGroupOf } from "./lock-order.ts";
import { makeRetry } from "./make-retry.ts";

export async function retryJob(tx: Tx, id: string): Promise<Enqueued> {
  // A retry is of its chain's group or of none, so this is the only one there can be.
  await lockGroupOf(tx, { tenant: tx.tenant, id });
  const last = await lastOfChain(tx, id);
  if (last.status === "waiting" || last.status === "queued" || last.status === "running") {
    throw new DaybookError(
      "conflict",
      `job ${last.id} is ${last.status}${last.id === id ? "" : ` and already continues ${id}`}: ` +
        "wait for it, or cancel it first",
      { details: { id: last.id, status: last.status } },
    );
  }
  if (last.status === "completed" || last.status === "skipped") {
    throw new DaybookError("conflict", `job ${last.id} is ${last.status}: enqueue a new job to do it again`, {
      details: { id: last.id, status: last.status },
    });
  }
  // A try more than planned is planned for: the chain's own count must stay within its limit.
  const again = {
    attempt: last.attempt + 1,
    losses: 0,
    alone: last.alone,
    backoff: false,
    origin: "manual",
  } as const;
  const [group] = (await holdGroupsOf(tx, [last])).values();
  // A group that has ended, or is ending, stays as it is: the job then runs on its own.
  const within = group === undefined || isEnding(group) ? { group_seq: null, group_slot: null } : {};
  const allowed = { ...last, attempts: Math.max(last.attempts, last.attempt + 1), ...within };
  // An open group that runs one after another is at another job: this one begins when that has ended.
  const behind = allowed.group_seq !== null && group?.mode === "sequential" ? group.id : undefined;
  const made = await makeRetry(tx, allowed, { ...again, behind });
  return { id: made, name: last.name, status: behind === undefined ? "queued" : "waiting", created: true };
}

async function lastOfChain(tx: Tx, id: string): Promise<JobRow> {
  let row = await lockJob(tx, sql`tenant_id = ${tx.tenant} and id = ${id}`);
  if (row === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  for (;;) {
    const next: JobRow | undefined = await lockJob(tx, sql`retry_of = ${row.seq}`);
    if (next === undefined) return row;
    row = next;
  }
}

// Whoever continues a chain holds its last job, so nobody else does.
async function lockJob(tx: Tx, which: Sql): Promise<JobRow | undefined> {
  const found = await tx.get<{ seq: number }>(sql`select seq from daybook_job where ${which} ${forUpdate}`);
  return found && (await readJobs(tx, [found.seq]))[0];
}
