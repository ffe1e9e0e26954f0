// Jobs that cannot run now stand outside the claim index. Whoever finds one there parks it with its reason; whoever
// removes the reason releases the first that waits for it, in the same transaction.
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy, skipLocked } from "../storage/word.ts";
import type { Claimer } from "./claim.ts";
import { jobsChannel, type WaitsFor } from "./job.ts";
import { queue } from "./state.ts";

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
 *  be closed, or served by nobody, and what it cannot use would be kept from the others. Whoever comes too late for what
 *  has become free is parked again on contact. */
export async function release(tx: Tx, reason: Reason, most: number, lanes?: readonly number[]): Promise<number> {
  let released = 0;
  for (const lane of lanes ?? (await lanesThatWait(tx, reason))) {
    const first = sql`select seq ${waitingFor(reason)} and lane_seq = ${lane}
      order by priority desc, position, seq limit ${most} ${skipLocked}`;
    released += (await queue(tx, first, reason.waitsFor)).length;
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

/** Queues about `most` jobs that wait for a host of one of our names, unless the name is paused in their tenant. Names
 *  and lanes take turns, each found by a seek, so neither a paused tenant nor one with many jobs stands before the
 *  others. What stands in a queue that is not ours stays: another would only park it again. True when there may be
 *  more. */
export async function releaseHosted(tx: Tx, { hosts, queues, hostCursors }: Claimer, most: number): Promise<boolean> {
  const share = Math.max(hostShare, Math.ceil(most / hosts.size));
  let more = false;
  for (const name of hosts) {
    const from = hostCursors.get(name) ?? 0;
    const reason = { tenant: "", waitsFor: "host", key: name } as const;
    const lanes = await lanesThatWait(tx, reason, from);
    let released = 0;
    let seen = 0;
    for (const lane of lanes) {
      if (released >= share || seen >= limits.claimLanesMax) break;
      hostCursors.set(name, lane);
      seen++;
      if (await isOpen(tx, lane, name, queues)) released += await release(tx, reason, hostShare, [lane]);
    }
    // After the last lane the round is over. It may have begun in the middle, or left something for the next.
    const over = seen === lanes.length && lanes.length < limits.releaseLanesMax;
    if (over) hostCursors.delete(name);
    more ||= !over || from !== 0 || released > 0;
  }
  return more;
}

/** So many jobs of one lane are released before the next lane has its turn. */
const hostShare = 5;

async function isOpen(tx: Tx, lane: number, name: string, queues: ReadonlySet<string> | null): Promise<boolean> {
  const row = await tx.get<{ queue: string; paused: number | null }>(sql`select lane.queue,
      (select 1 from daybook_paused_name paused where paused.tenant_id = lane.tenant_id and paused.name = ${name}) as paused
    from daybook_lane lane where lane.seq = ${lane}`);
  return row !== undefined && row.paused === null && (queues === null || queues.has(row.queue));
}

/** Queues the jobs whose time has come, at most `most` of them, and names them. */
export async function releaseDue(tx: Tx, most: number): Promise<number[]> {
  const due = sql`select seq from daybook_line ${indexedBy("jobs_due")}
    where status = 'waiting' and waits_for = 'time' and waits_key is null and available_at <= ${tx.now}
    order by available_at limit ${most} ${skipLocked}`;
  return queue(tx, due, "time");
}

type Times = { readonly due_at: number | null; readonly opens_at: number | null };

export const nextTimes = sql`
  (select min(available_at) from daybook_line where status = 'waiting' and waits_for = 'time' and waits_key is null) as due_at,
  (select min(opens_at) from daybook_rate_window where opens_at is not null) as opens_at`;

/** When the next waiting job is due, or a rate that jobs wait for opens; null when neither is to come. */
export async function nextDueAt(tx: Tx): Promise<number | null> {
  const row = await tx.get<Times>(sql`select ${nextTimes}`);
  return earlier(row?.due_at ?? null, row?.opens_at ?? null);
}

export function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
