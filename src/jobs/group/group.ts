// A group is several jobs with one fate: they run one after another or side by side, and what happens when one of them
// fails is said when the group is made. Each job has a slot; its retries keep it, so a pending retry keeps the group
// waiting.
//
//   open ──► completed   every slot's last job completed
//      ├───► failed      one failed and `stop` cancelled the rest
//      ├───► partial     one failed and `skip` skipped the rest, or `continue` let it run
//      └───► cancelled   somebody cancelled the group
import { DaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, forUpdate } from "../../storage/word.ts";
import type { Ending } from "../outcome.ts";

export type GroupMode = "sequential" | "parallel";
export type OnFailure = "stop" | "continue" | "skip";
export type GroupStatus = "open" | "completed" | "failed" | "partial" | "cancelled";

export type GroupRow = {
  seq: number;
  tenant_id: string;
  id: string;
  name: string | null;
  mode: GroupMode;
  on_failure: OnFailure;
  status: GroupStatus;
  slots: number;
  created_at: number;
  cancel_requested_at: number | null;
  stopped_at: number | null;
  finished_at: number | null;
};

/** A job that has its turn; of a sequential group there is one. */
export const isCurrent = sql`coalesce(waits_for, '') <> 'group'`;

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

/** Writes the rows that are locked. A serializable transaction would otherwise decide by what it saw before it got the lock;
 *  so it is run again. */
export async function holdGroups(tx: Tx, seqs: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await tx.run(sql`update daybook_job_group as job_group set slots = slots where seq ${anyOf("integer", seqs)}`);
}

/** The group, locked: what is decided about it next is decided by us alone. */
export async function lockGroup(tx: Tx, id: string): Promise<GroupRow> {
  const row = await tx.get<GroupRow>(
    sql`select * from daybook_job_group job_group where tenant_id = ${tx.tenant} and id = ${id} ${forUpdate}`,
  );
  if (row !== undefined) {
    await holdGroups(tx, [row.seq]);
    return row;
  }
  throw new DaybookError("not_found", `there is no group ${id}`, { details: { id } });
}
