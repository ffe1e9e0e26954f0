// Another time for a job that has not started. It keeps its place in line for when it is due.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { passOn } from "./free-slots.ts";
import { jobsChannel, type JobRow } from "./job.ts";

/** False when it has started, or ended, or waits for something that time does not remove. */
export async function rescheduleJob(
  tx: Tx,
  of: { readonly tenant: string; readonly id: string },
  at: number,
): Promise<boolean> {
  const waits = at > tx.now;
  const [row] = await tx.all<JobRow>(sql`update job set available_at = ${Math.max(at, tx.now)},
      status = ${waits ? "waiting" : "queued"}, waits_for = ${waits ? "time" : null}, waits_key = null
    where tenant_id = ${of.tenant} and id = ${of.id} and retry_of is null
      and (status = 'queued' or (status = 'waiting' and waits_for in ('time', 'key', 'host', 'order')))
    returning *`);
  if (row === undefined) return false;
  // It may have been in line for a slot, which is the next one's now.
  if (waits) await passOn(tx, [row]);
  tx.wake(jobsChannel);
  return true;
}
