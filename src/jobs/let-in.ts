// Whoever waits for a limit or a rate is let in, the first of each lane: when a job that held or wanted a permit is gone, in the
// same transaction; when the next window of a rate opens; and by a sweep, which finds what a changed limit, an edited book, a
// clock that was set or more lanes than are looked at left behind, and on PostgreSQL what another transaction was just moving.
// Who comes too late for what has become free is parked again on contact.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, indexedBy } from "../storage/word.ts";
import { jobsChannel, type JobRow } from "./job.ts";
import { limitsOfFirst, lockLimits, lockOf, permitsOf, reasonsOf, roomFor, tryLimits, type Limited } from "./limit.ts";
import { reasonOf, release, waitsKey, type Reason } from "./park.ts";
import { readWindow, windowAt } from "./rate.ts";

/** The keys of jobs that ended are free; one that is taken for a window of time is free when that is over. */
export async function freeKeys(tx: Tx, ended: readonly Pick<JobRow, "seq" | "key_scope">[]): Promise<void> {
  const seqs = ended.flatMap((job) => (job.key_scope === "done" || job.key_scope === "queued" ? job.seq : []));
  if (seqs.length > 0) await tx.run(sql`delete from daybook_job_key where job_seq ${anyOf("integer", seqs)}`);
}

type Ended = Limited & Pick<JobRow, "seq">;

export async function takePermitsBack(tx: Tx, ended: readonly Ended[]): Promise<void> {
  const seqs = ended.flatMap((job) => (job.limits === null ? [] : job.seq));
  if (seqs.length > 0) await tx.run(sql`delete from daybook_permit where job_seq ${anyOf("integer", seqs)}`);
}

/** The permits of these jobs, whose runs ended, go to those who wait for them. Their limits are locked (lock-order.ts), and
 *  the lock is the claimers' own: one that is just parking a job because of this very permit has either committed, and is
 *  seen, or will count after us. */
export async function freePermits(tx: Tx, ended: readonly Ended[]): Promise<void> {
  if (ended.every((job) => job.limits === null)) return;
  await takePermitsBack(tx, ended);
  await letIn(tx, ended.flatMap(permitsOf));
  // Direct work is not in line, so nobody lets it in: it looks for itself.
  const held = await tx.get(sql`select seq from daybook_reservation where status = 'active' limit 1`);
  if (held !== undefined) tx.wake(jobsChannel);
}

type Leaving = Limited & Partial<Pick<JobRow, "waits_for" | "waits_key">>;

/** Jobs that stood in line for a permit, or for a start that a rate allows, have left without taking it: the next ones are
 *  let in. What a job itself waits for now is known to be used up. */
export async function passOn(tx: Tx, jobs: readonly Leaving[]): Promise<void> {
  const isFree = (job: Leaving, reason: Reason): boolean =>
    job.waits_for !== reason.waitsFor || job.waits_key !== waitsKey(reason);
  const free = jobs.flatMap((job) => reasonsOf(job).filter((reason) => isFree(job, reason)));
  await letIn(tx, free);
}

/** Lets in as many as have become free. Others may start by a rate meanwhile, so that what it allows is asked for. */
async function letIn(tx: Tx, free: readonly Reason[]): Promise<void> {
  for (const [reason, count] of counted(free)) {
    const room = reason.waitsFor === "time" ? await roomFor(tx, reason) : count;
    if (room > 0) await release(tx, reason, Math.min(room, count));
  }
}

function counted<T>(all: readonly T[]): [T, number][] {
  const same = Map.groupBy(all, (each) => JSON.stringify(each));
  return [...same.values()].map((each) => [each[0] as T, each.length]);
}

/** Lets in those whose rate has opened, at most so many rates at a time. What waits behind them costs nothing. */
export async function releaseRates(tx: Tx): Promise<void> {
  const due = await tx.all<{ tenant: string; key: string }>(sql`select tenant_id as tenant, rate_key as key
    from daybook_rate_window where opens_at is not null and opens_at <= ${tx.now}
    order by opens_at limit ${limits.claimLanesMax}`);
  const rates = due.map((rate): Reason => ({ ...rate, waitsFor: "time" }));
  // One that another has locked is being let in, or counted, by it.
  const busy = await tryLimits(tx, rates.map(lockOf));
  for (const rate of rates) if (!busy.has(lockOf(rate))) await openRate(tx, rate);
}

async function openRate(tx: Tx, rate: Reason): Promise<void> {
  const last = await readWindow(tx, rate);
  if (last === undefined || last.opens_at === null || last.opens_at > tx.now) return; // another was faster
  const { rate: rule } = await limitsOfFirst(tx, rate);
  const { window_at, used, let_in } = rule === undefined ? last : windowAt(tx.now, rule.ms, last);
  const room = Math.max(0, (rule?.max ?? 0) - Math.max(used, let_in));
  const most = Math.min(room, limits.claimParkedMax);
  if (most > 0) await release(tx, rate, most);
  // A large allowance is let in by and by.
  const next = room > most ? tx.now : window_at + (rule?.ms ?? 0);
  await tx.run(sql`update daybook_rate_window set window_at = ${window_at}, used = ${used}, let_in = ${let_in + most},
      opens_at = ${rule === undefined ? null : next}
    where tenant_id = ${rate.tenant} and rate_key = ${rate.key}`);
}

/** Where a slice of the sweep begins. */
export type From = { readonly waits_for: "key" | "time"; readonly waits_key: string; readonly lane_seq: number };

const first: From = { waits_for: "key", waits_key: "", lane_seq: 0 };

/** Looks at a slice of the keys and rates that jobs wait for. `next` is where the next slice begins; undefined after the
 *  last. */
export async function releaseFreeKeys(
  tx: Tx,
  from: From = first,
): Promise<{ released: number; next: From | undefined }> {
  let released = 0;
  let next: From | undefined = from;
  for (let looked = 0; looked < limits.claimParkedMax; looked++) {
    next = await nextKey(tx, next);
    if (next === undefined) break;
    released += await releaseFreeKey(tx, reasonOf(next.waits_for, next.waits_key), [next.lane_seq]);
  }
  return { released, next };
}

/** Lets in those who wait for these limits, after a transaction that held such a job, or freed a permit, without letting anybody in:
 *  a claim or a settle that ran meanwhile passed by what it held. This one holds nothing else, so it may wait for their locks. */
export async function offerFreeKeys(tx: Tx, all: readonly Reason[]): Promise<void> {
  await lockLimits(tx, all.map(lockOf));
  for (const [of] of counted(all)) await releaseFreeKey(tx, of);
}

/** Lets in as many as there is room for: of the lanes, or of every lane when none is named. */
async function releaseFreeKey(tx: Tx, of: Reason, lanes?: readonly number[]): Promise<number> {
  // Whoever has the lock is just freeing or taking a permit, and lets the next one in if there is room.
  if ((await tryLimits(tx, [lockOf(of)])).size > 0) return 0;
  const room = await roomFor(tx, of);
  return room > 0 ? release(tx, of, room, lanes) : 0;
}

// Each lane of a key costs one seek, however many jobs wait in it.
async function nextKey(tx: Tx, { waits_for, waits_key, lane_seq }: From): Promise<From | undefined> {
  const found =
    await tx.get<From>(sql`select waits_for, waits_key, lane_seq from daybook_line ${indexedBy("jobs_waiting")}
    where status = 'waiting' and waits_key is not null
      and (waits_for, waits_key, lane_seq) > (${waits_for}, ${waits_key}, ${lane_seq})
    order by waits_for, waits_key, lane_seq limit 1`);
  if (found === undefined || found.waits_for === "key" || found.waits_for === "time") return found;
  // What stands between the two is not ours to release.
  return nextKey(tx, { waits_for: "time", waits_key: "", lane_seq: 0 });
}
