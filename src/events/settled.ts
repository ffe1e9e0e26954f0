// What happens when a delivery ends, however it ends: its dead letter is written or ended, and the next of its key may go.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { plainKind, type Ended, type JobEnded, type JobKind } from "../jobs/kind.ts";
import type { JobRow } from "../jobs/job.ts";
import { endLetter, letterOf, writeLetter } from "./dead-letter.ts";
import { createOrderSweep, letNextGo, mustWait } from "./order.ts";

/** Deliveries as a kind of job. */
export function deliveries(): JobKind {
  const sweep = createOrderSweep();
  const letter = "a dead letter stands before it, to be redriven or discarded";
  const order = { behind: "An older event of its key is not finished", instead: letter };
  return { ...plainKind, ended: deliveryEnded, quiet: isQuiet, mustWait, finished: letNextGo, order, sweep };
}

async function deliveryEnded(tx: Tx, ended: readonly Ended[]): Promise<void> {
  for (const { job, outcome } of ended) if (outcome.retriedBy === null) await chainEnded(tx, job, outcome);
}

async function chainEnded(tx: Tx, job: JobRow, ended: JobEnded): Promise<void> {
  if (ended.status === "failed") return writeLetter(tx, job, ended);
  const letter = job.attempt === 1 ? undefined : await letterOf(tx, job);
  if (letter !== undefined && letter.ended_at === null) {
    if (ended.status === "completed") await endLetter(tx, letter, { status: "recovered", reason: null });
    // A cancelled redrive leaves the letter dead: a person asked for the redrive, and decides what to do next.
    else return void (await tx.run(sql`update daybook_dead_letter set status = 'dead' where seq = ${letter.seq}`));
  }
  await letNextGo(tx, job);
}

/** Most deliveries end at their first attempt and have no letter. One with a key is always settled, because the next may wait. */
function isQuiet(attempt: number): boolean {
  return attempt === 1;
}
