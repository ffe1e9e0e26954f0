import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { doneChannel, jobsChannel, type JobRow } from "../job.ts";

/** The kind of direct work; its `kind_seq` is the reservation. */
export const directKind = "direct";

/** The end of direct work is the end of its turn, in one transaction: the queue goes on, whatever becomes of the caller. */
export async function releaseTurnOf(tx: Tx, { kind_seq: reservation }: Pick<JobRow, "kind_seq">): Promise<void> {
  const released =
    await tx.run(sql`update daybook_reservation as reservation set status = 'released', ended_at = ${tx.now}
    where seq = ${reservation} and status = 'active'`);
  if (released === 0) return;
  tx.wake(jobsChannel);
  tx.wake(doneChannel);
}
