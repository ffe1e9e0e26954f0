// Jobs that cannot run now stand outside the claim index. The claim that meets one parks it with its reason; the transaction that
// removes the reason releases the first job that waits for it.
import { anyOf, indexedBy, lockNames, rowSet, skipLocked, tryNames } from "../../storage/word.ts";
import { systemClock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import type { Claimer } from "../claim/claim.ts";
import { jobsChannel, type WaitsFor, type JobRow } from "../job.ts";
import { queue } from "../state.ts";
import {
  limitsOf,
  lockOf,
  mostOf,
  permitsOf,
  readWindow,
  reasonsOf,
  roomInRate,
  takenPermits,
  windowAt,
} from "../claim/limit.ts";
import type { Limited, Limits } from "../claim/limit.ts";

export type Reason = { readonly tenant: string; readonly waitsFor: WaitsFor; readonly key: string };

/** What the line keeps for a reason. It does not know tenants, so keys that are a tenant's own begin with its name; the
 *  names of jobs, which hosts look for in all tenants, and ids do not. */
export function waitsKey({ tenant, waitsFor, key }: Reason): string {
  return waitsFor === "key" || waitsFor === "time" || waitsFor === "order" ? `${tenant}\n${key}` : key;
}

/** The limit or rate that such a key of the line stands for. */
export function reasonOf(waitsFor: "key" | "time", waitsKey: string): Reason {
  const [tenant = "", ...key] = waitsKey.split("\n");
  return { tenant, waitsFor, key: key.join("\n") };
}

/** Queues the first `most` jobs of each lane that wait for this reason and key. Not only the first of all: its lane may
 *  be closed, or served by no worker, and what it cannot use would be kept from the others. A job that comes too late for what
 *  has become free is parked again on contact. */
export async function release(tx: Tx, reason: Reason, most: number, lanes?: readonly number[]): Promise<number> {
  let released = 0;
  for (const lane of lanes ?? (await lanesThatWait(tx, reason))) {
    for (let left = most; left > 0;) {
      if (left < most) await systemClock.nextTurn();
      const some = Math.min(left, limits.sliceRowsMax);
      const first = sql`select seq ${waitingFor(reason)} and lane_seq = ${lane}
        order by priority desc, position, seq limit ${some} ${skipLocked}`;
      const found = (await queue(tx, first, reason.waitsFor)).length;
      released += found;
      left = found < some ? 0 : left - found;
    }
  }
  if (released > 0) tx.wake(jobsChannel);
  return released;
}

/** Where the jobs that wait for this stand, lane by lane. */
export function waitingFor(reason: Reason): Sql {
  return sql`from daybook_line ${indexedBy("jobs_waiting")} where status = 'waiting' and waits_for = ${reason.waitsFor}
    and waits_key = ${waitsKey(reason)} and waits_key is not null`;
}

/** The lanes in which jobs wait for this. Each costs one seek, however many do. */
export async function lanesThatWait(tx: Tx, reason: Reason, after = 0): Promise<number[]> {
  const waiting = waitingFor(reason);
  const lanes = await tx.all<{ lane_seq: number }>(sql`
    with recursive turn (seq, place) as (
      select (select min(lane_seq) ${waiting} and lane_seq > ${after}), 1
      union all
      select (select min(lane_seq) ${waiting} and lane_seq > turn.seq), place + 1
      from turn where turn.seq is not null and place < ${limits.releaseLanesMax}
    )
    select seq as lane_seq from turn where seq is not null`);
  return lanes.map((row) => row.lane_seq);
}

/** Queues about `most` jobs that wait for a host of one of our names, unless the name is paused in their tenant. Names and lanes
 *  take turns, each found by a seek, so neither a paused tenant nor one with many jobs stands before the others. What stands in
 *  a queue that is not ours stays: another would only park it again. True when there may be more. */
export async function releaseHosted(tx: Tx, claimer: Claimer, most: number): Promise<boolean> {
  const { hosts, hostCursors } = claimer;
  const share = Math.max(hostShare, Math.ceil(most / hosts.size));
  let more = false;
  const waiting = await namesThatWait(tx, [...hosts]);
  for (const name of hosts) {
    // A program may have many names, and mostly nothing waits for one of them.
    if (!waiting.has(name)) {
      hostCursors.delete(name);
      continue;
    }
    const from = hostCursors.get(name) ?? 0;
    const reason = { tenant: "", waitsFor: "host", key: name } as const;
    const lanes = await lanesThatWait(tx, reason, from);
    let released = 0;
    let seen = 0;
    for (const lane of lanes) {
      if (released >= share || seen >= limits.claimLanesMax) break;
      hostCursors.set(name, lane);
      seen++;
      if (await isOpen(tx, claimer, lane, name)) released += await release(tx, reason, hostShare, [lane]);
    }
    // After the last lane the round is over. It may have begun in the middle, or left something for the next.
    const over = seen === lanes.length && lanes.length < limits.releaseLanesMax;
    if (over) hostCursors.delete(name);
    more ||= !over || from !== 0 || released > 0;
  }
  return more;
}

/** Those of the names for whose host a job waits: one seek each, in one statement. */
async function namesThatWait(tx: Tx, names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = names.map((name) => ({ name }));
  const found = await tx.all<{ name: string }>(sql`select host.name from ${rowSet("host", { name: "text" }, rows)}
    where exists (select 1 from daybook_line ${indexedBy("jobs_waiting")} where status = 'waiting' and waits_for = 'host'
      and waits_key = host.name and waits_key is not null)`);
  return new Set(found.map(({ name }) => name));
}

/** So many jobs of one lane are released before the next lane has its turn. */
const hostShare = 5;

async function isOpen(tx: Tx, { queues, tenant }: Claimer, lane: number, name: string): Promise<boolean> {
  const row = await tx.get<{
    tenant_id: string;
    queue: string;
    paused: number | null;
  }>(sql`select lane.tenant_id, lane.queue,
      (select 1 from daybook_paused_name paused where paused.tenant_id = lane.tenant_id and paused.name = ${name}) as paused
    from daybook_lane lane where lane.seq = ${lane}`);
  if (row === undefined || row.paused !== null || (tenant !== undefined && tenant !== row.tenant_id)) return false;
  return queues === null || queues.has(row.queue);
}

/** Queues the jobs whose time has come, at most `most` of them, and names them. */
export async function releaseDue(tx: Tx, most: number): Promise<number[]> {
  const due = sql`select seq from daybook_line ${indexedBy("jobs_due")}
    where status = 'waiting' and waits_for = 'time' and waits_key is null and available_at <= ${tx.now}
    order by available_at limit ${most} ${skipLocked}`;
  return queue(tx, due, "time");
}

// Jobs that wait for a limit or a rate are let in, the first of each lane: by the transaction that ends or moves a job which held or
// wanted a permit; when the next window of a rate opens; and by a sweep, which finds what a changed limit, an edited book, a clock
// that was set or too many lanes left behind, and on PostgreSQL what another transaction was just moving.

type Ended = Limited & Pick<JobRow, "seq">;

export async function takePermitsBack(tx: Tx, ended: readonly Ended[]): Promise<void> {
  const seqs = ended.flatMap((job) => (job.limits === null ? [] : job.seq));
  if (seqs.length > 0) await tx.run(sql`delete from daybook_permit where job_seq ${anyOf("integer", seqs)}`);
}

/** The permits of these jobs, whose runs ended, go to the jobs that wait for them. Their limits are locked (lock-order.ts) as claimers
 *  lock them: one that is parking a job for want of this very permit has committed, and is seen, or will count after us. */
export async function freePermits(tx: Tx, ended: readonly Ended[]): Promise<void> {
  if (ended.every((job) => job.limits === null)) return;
  await takePermitsBack(tx, ended);
  await letIn(tx, ended.flatMap(permitsOf));
  // Direct work is not in line, so its worker looks for itself.
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
  const busy = await tryNames(tx, rates.map(lockOf));
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

/** How many of the jobs that wait for a limit or a rate may be let in. */
async function roomFor(tx: Tx, of: Reason): Promise<number> {
  const rules = await limitsOfFirst(tx, of);
  if (of.waitsFor === "time") {
    if (rules.rate === undefined) return 0;
    return Math.min((await roomInRate(tx, { tenant: of.tenant, ...rules.rate })).room, limits.claimParkedMax);
  }
  const taken = await tx.all(takenPermits(of.tenant, of.key));
  return Math.max(0, (mostOf(rules, of.key) ?? 0) - taken.length);
}

async function limitsOfFirst(tx: Tx, reason: Reason): Promise<Limits> {
  const first = await tx.get<{ limits: string | null }>(sql`select limits from daybook_job job
    where seq = (select seq ${waitingFor(reason)} order by lane_seq, priority desc, position, seq limit 1)`);
  return limitsOf(first ?? { limits: null });
}

/** Where a slice of the sweep begins. */
export type From = { readonly waits_for: "key" | "time"; readonly waits_key: string; readonly lane_seq: number };

const first: From = { waits_for: "key", waits_key: "", lane_seq: 0 };

/** Looks at a slice of the keys and rates that jobs wait for. `next` is where the next one begins; undefined after the last. */
export async function releaseFreeKeys(tx: Tx, from = first): Promise<{ released: number; next: From | undefined }> {
  let released = 0;
  let next: From | undefined = from;
  for (let looked = 0; looked < limits.claimParkedMax; looked++) {
    next = await nextKey(tx, next);
    if (next === undefined) break;
    released += await releaseFreeKey(tx, reasonOf(next.waits_for, next.waits_key), [next.lane_seq]);
  }
  return { released, next };
}

/** Lets in the jobs that wait for these limits, after a transaction that held such a job, or freed a permit, without letting one in:
 *  a claim or a settle that ran meanwhile passed by what it held. This one holds nothing else, so it may wait for their locks. */
export async function offerFreeKeys(tx: Tx, all: readonly Reason[]): Promise<void> {
  await lockNames(tx, all.map(lockOf));
  for (const [of] of counted(all)) await releaseFreeKey(tx, of);
}

/** Lets in as many as there is room for: of the lanes, or of every lane when none is named. */
async function releaseFreeKey(tx: Tx, of: Reason, lanes?: readonly number[]): Promise<number> {
  // The transaction that has the lock is freeing or taking a permit, and lets the next one in if there is room.
  if ((await tryNames(tx, [lockOf(of)])).size > 0) return 0;
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
