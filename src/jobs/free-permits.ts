// Whoever frees a permit of a limit lets the next one in, in the same transaction.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { jobsChannel, type JobRow } from "./job.ts";
import { limitKeysOf, limitsOf, type Limited } from "./limit.ts";
import { release, waitsKey } from "./park.ts";
import { roomInRate, type RateRule } from "./rate.ts";

/** The permits of these jobs, whose runs ended, go to those who wait for them. Their limits are locked (lock-order.ts), and
 *  the lock is the claimers' own: one that is just parking a job because of this very permit has either committed, and is
 *  seen, or will count after us. */
export async function freePermits(tx: Tx, ended: readonly (Limited & Pick<JobRow, "seq">)[]): Promise<void> {
  const limited = await takePermitsBack(tx, ended);
  if (limited.length === 0) return;
  await letIn(tx, limited);
  // Direct work is not in line, so nobody lets it in: it looks for itself.
  const held = await tx.get(sql`select seq from daybook_reservation where status = 'active' limit 1`);
  if (held !== undefined) tx.wake(jobsChannel);
}

/** Names those that had limits. */
export async function takePermitsBack<J extends Limited & Pick<JobRow, "seq">>(
  tx: Tx,
  ended: readonly J[],
): Promise<J[]> {
  const limited = ended.filter((job) => job.limits !== null);
  const seqs = limited.map((job) => job.seq);
  if (seqs.length > 0) await tx.run(sql`delete from daybook_permit where job_seq ${anyOf("integer", seqs)}`);
  return limited;
}

type Leaving = Limited & Partial<Pick<JobRow, "waits_for" | "waits_key">>;

/** Jobs that stood in line for a permit, or for a start that a rate allows, have left without taking it: the next ones are
 *  let in. They may find it taken after all, and are then parked again. What a job itself waits for now is known to be
 *  used up. */
export async function passOn(tx: Tx, jobs: readonly Leaving[]): Promise<void> {
  await letIn(tx, jobs);
  const starts = new Map<string, { rule: RateRule; count: number }>();
  for (const job of jobs) {
    const { rate } = limitsOf(job);
    if (rate === undefined || isParkedFor(job, "time", rate.key)) continue;
    const rule = { tenant: job.tenant_id, ...rate };
    const entry = starts.get(JSON.stringify(rule)) ?? { rule, count: 0 };
    entry.count++;
    starts.set(JSON.stringify(rule), entry);
  }
  for (const { rule, count } of starts.values()) {
    const { room } = await roomInRate(tx, rule);
    const { tenant, key } = rule;
    if (room > 0) await release(tx, { tenant, waitsFor: "time", key }, Math.min(room, count));
  }
}

async function letIn(tx: Tx, jobs: readonly Leaving[]): Promise<void> {
  const freed = new Map<string, { tenant: string; key: string; count: number }>();
  for (const job of jobs) {
    for (const key of limitKeysOf(job)) {
      if (isParkedFor(job, "key", key)) continue;
      const name = `${job.tenant_id}\n${key}`;
      const entry = freed.get(name) ?? { tenant: job.tenant_id, key, count: 0 };
      entry.count++;
      freed.set(name, entry);
    }
  }
  for (const { tenant, key, count } of freed.values()) await release(tx, { tenant, waitsFor: "key", key }, count);
}

function isParkedFor(job: Leaving, waitsFor: "key" | "time", key: string): boolean {
  return job.waits_for === waitsFor && job.waits_key === waitsKey({ tenant: job.tenant_id, waitsFor, key });
}
