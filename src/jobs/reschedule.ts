// Another time for a job that has not started. It keeps its place in line for when it is due.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { passOn } from "./let-in.ts";
import { jobNow, jobsChannel, type JobRow } from "./job.ts";
import { lockLine } from "./lock-order.ts";
import { restand } from "./state.ts";

/** False when it has started, or ended, or waits for something that time does not remove. */
export async function rescheduleJob(
  tx: Tx,
  of: { readonly tenant: string; readonly id: string },
  at: number,
  { retries = false } = {},
): Promise<boolean> {
  await lockLine(tx, of);
  const row = await tx.get<JobRow>(
    sql`select * from ${jobNow} where job.tenant_id = ${of.tenant} and job.id = ${of.id}`,
  );
  if (row === undefined || (row.retry_of !== null && !retries) || !isFree(row)) return false;
  const waits = at > tx.now;
  const availableAt = Math.max(at, tx.now);
  if (!(await restand(tx, row.seq, { waitsFor: waits ? "time" : null, availableAt }))) return false;
  await tx.run(sql`update daybook_job set due_at = ${availableAt} where seq = ${row.seq}`);
  // It may have been in line for a permit, which is the next one's now.
  if (waits) await passOn(tx, [{ ...row, waits_for: "time", waits_key: null }]);
  tx.wake(jobsChannel);
  return true;
}

const removedByTime: ReadonlySet<string | null> = new Set(["time", "key", "host", "order", "alone"]);

function isFree({ status, waits_for }: JobRow): boolean {
  return status === "queued" || (status === "waiting" && removedByTime.has(waits_for));
}
