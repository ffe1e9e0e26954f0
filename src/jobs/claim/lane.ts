// A lane is a queue of one tenant. Order, pause, limit and rate belong to it. Its row is made by the first job in it
// and never removed, so its number can be kept in memory.
//
// A lane's number is its tenant's number × 1,000,000 plus its own, so the lanes of a tenant stand together in the claim index
// and a tenant is found, or passed, by one seek, however many queues it has.
import { rememberFor } from "../../core/remember.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { anyOf, indexedBy } from "../../storage/word.ts";
import type { Claimer } from "./claim.ts";

export type LaneRow = {
  seq: number;
  tenant_id: string;
  queue: string;
  paused_at: number | null;
  paused_note: string | null;
  limit_max: number | null;
  rate_max: number | null;
  rate_ms: number | null;
};

const lanesPerTenant = 1_000_000;
// In a statement it is written out: a number that is bound is a real one on SQLite, and its division leaves a fraction.
const perTenant = rawSql(String(lanesPerTenant));

// Known lanes of each store. Only committed ones are kept: a lane of a transaction that was undone does not exist.
const lanesKnown = rememberFor((_ids: Store["ids"]) => new Map<string, number>());

/** The number of the lane, which is made if it does not exist yet. */
export function laneOf(tx: Tx, tenant: string, queue: string): number | Promise<number> {
  const lanes = lanesKnown(tx.ids);
  return lanes.get(`${tenant}\n${queue}`) ?? makeLane(tx, tenant, queue, lanes);
}

/** The lanes of these queues, made in one order: on PostgreSQL two that make several at once would wait for each other. */
export async function lanesOf(tx: Tx, tenant: string, queues: Iterable<string>): Promise<Map<string, number>> {
  const lanes = new Map<string, number>();
  for (const queue of [...new Set(queues)].sort()) lanes.set(queue, await laneOf(tx, tenant, queue));
  return lanes;
}

async function makeLane(tx: Tx, tenant: string, queue: string, lanes: Map<string, number>): Promise<number> {
  // On PostgreSQL two tenants that come at once may compute the same number; the one that loses computes another.
  for (;;) {
    await tx.run(sql`insert into daybook_lane (seq, tenant_id, queue)
      select coalesce(max(case tenant_id when ${tenant} then seq end) + 1,
        (coalesce(max(seq), 0) / ${perTenant} + 1) * ${perTenant}), ${tenant}, ${queue}
      from daybook_lane where true on conflict do nothing`);
    const row = await findLane(tx, tenant, queue);
    if (row === undefined) continue;
    tx.afterCommit(() => lanes.set(`${tenant}\n${queue}`, row.seq));
    return row.seq;
  }
}

export async function findLane(tx: Tx, tenant: string, queue: string): Promise<LaneRow | undefined> {
  return tx.get<LaneRow>(sql`select * from daybook_lane where tenant_id = ${tenant} and queue = ${queue}`);
}

/** Whose turn it is: the tenant that was served last, and in each tenant the lane. */
export type Turns = {
  tenant: number;
  readonly lanes: Map<number, number>;
  /** What the last look found for the next one: tenants, and lanes in turn. */
  next: { readonly tenants: readonly number[]; readonly lanes: readonly number[] };
};

export function newTurns(): Turns {
  return { tenant: 0, lanes: new Map(), next: { tenants: [], lanes: [] } };
}

/** Notes that these were served, so that the next look begins behind them and their tenants. */
export function served(turns: Turns, lanes: readonly number[]): void {
  if (turns.lanes.size > turnsKeptMax) turns.lanes.clear();
  for (const lane of lanes) turns.lanes.set((turns.tenant = Math.floor(lane / lanesPerTenant)), lane);
  const done = new Set(lanes);
  const { next } = turns;
  const later = next.lanes.filter((lane) => done.has(lane));
  turns.next = { ...next, lanes: [...next.lanes.filter((lane) => !done.has(lane)), ...later] };
}

// The turns of so many tenants are remembered; with more, some begin with their first lane again.
const turnsKeptMax = 10_000;

type Found = { readonly lanes: number[]; readonly looked: number[]; readonly more: boolean };

/** Up to `most` lanes that have something in line, taking turns by tenant and inside a tenant by lane. `looked` are these and
 *  those of other queues that were passed over; `more` says that there are others. */
export async function nextLanes(tx: Tx, { turns, queues }: Claimer, most: number): Promise<Found> {
  // Those of other queues are passed over here, because a turn for every few of them would keep the worker busy.
  const seen = queues === null ? most : Math.max(most, passedMax);
  const tenants = (await tenantsInTurn(tx, turns.tenant, most)).map(({ tenant }) => tenant);
  const share = Math.max(1, Math.ceil(seen / Math.max(1, tenants.length)));
  const found = await Promise.all(
    tenants.map((tenant) => lanesInTurn(tx, tenant, turns.lanes.get(tenant) ?? 0, share)),
  );
  const looked = inTurn(found);
  const ours = queues === null ? looked : await ofQueues(tx, looked, queues);
  // With nothing in line, what comes next is likely to come where something came before.
  if (tenants.length > 0) turns.next = { tenants, lanes: ours };
  const more = ours.length > most || tenants.length === most || found.some((lanes) => lanes.length === share);
  return { lanes: ours.slice(0, most), looked: ours.length > most ? ours.slice(0, most) : looked, more };
}

/** Looks for the other lanes that the next claim may serve while this one serves `lanes`; both are sent together. Of a new tenant
 *  only the first lane is known; when another of its lanes may be in turn, it is left to the look after this one. */
export async function lookAhead(tx: Tx, turns: Turns, lanes: readonly number[], most: number): Promise<number[]> {
  served(turns, lanes);
  const own = turns.tenant;
  const tenants = [...new Set([...turns.next.tenants, own])];
  const share = Math.max(1, Math.ceil(most / tenants.length));
  const [others, ...found] = await Promise.all([
    tenantsInTurn(tx, own, most, own - 1),
    ...tenants.map((tenant) => {
      const after = turns.lanes.get(tenant) ?? 0;
      return lanesInTurn(tx, tenant, after, share, lanes.includes(after) ? after - 1 : after);
    }),
  ]);
  const inLine = new Map<number, readonly number[]>();
  for (const { tenant, lane } of others) inLine.set(tenant, (turns.lanes.get(tenant) ?? lane) === lane ? [lane] : []);
  for (const [index, tenant] of tenants.entries()) inLine.set(tenant, found[index] ?? []);
  turns.next = { tenants: [...others.map(({ tenant }) => tenant), own], lanes: [] };
  return inTurn([...inLine.values()]);
}

/** So many lanes are looked at for those of one's own queues. */
const passedMax = 500;

/** The first of each list, then the second of each, and so on. */
export function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  if (lists.length === 1) return [...(lists[0] ?? [])];
  const turns: T[] = [];
  const longest = Math.max(0, ...lists.map((list) => list.length));
  for (let place = 0; place < longest; place++) {
    for (const list of lists) if (place < list.length) turns.push(list[place] as T);
  }
  return turns;
}

async function ofQueues(tx: Tx, lanes: readonly number[], queues: ReadonlySet<string>): Promise<number[]> {
  const rows = await tx.all<{ seq: number; queue: string }>(sql`select seq, queue from daybook_lane
    where seq ${anyOf("integer", lanes)}`);
  const ours = new Set(rows.flatMap(({ seq, queue }) => (queues.has(queue) ? seq : [])));
  return lanes.filter((lane) => ours.has(lane));
}

type FirstLane = { readonly tenant: number; readonly lane: number };

/** The tenants after this one with something in line, each with its first such lane, round to the `last`: itself or the one before. */
async function tenantsInTurn(tx: Tx, after: number, most: number, last = after): Promise<FirstLane[]> {
  const round = { by: lanesPerTenant, start: 0, end: Number.MAX_SAFE_INTEGER, after: (after + 1) * lanesPerTenant - 1 };
  const lanes = await inRound(tx, { ...round, last: (last + 1) * lanesPerTenant - 1, most });
  return lanes.map((lane) => ({ tenant: Math.floor(lane / lanesPerTenant), lane }));
}

/** The lanes of a tenant that have something in line, beginning behind the one that was served last, round to the `last`. */
function lanesInTurn(tx: Tx, tenant: number, after: number, most: number, last: number = after): Promise<number[]> {
  const start = tenant * lanesPerTenant;
  return inRound(tx, { by: 1, start, end: start + lanesPerTenant, after: Math.max(after, start - 1), last, most });
}

type Round = {
  /** One lane of each so many numbers is enough. */
  readonly by: number;
  /** The numbers from `start` to before `end` are a circle. */
  readonly start: number;
  readonly end: number;
  /** The round begins behind this one and ends with the `last`. */
  readonly after: number;
  readonly last: number;
  readonly most: number;
};

/** The lanes of a round that have something in line. Each costs one seek. On PostgreSQL that seek passes by what has left the
 *  line since it was last vacuumed, so a look at the others must not begin among one's own. */
async function inRound(tx: Tx, { by, start, end, after, last, most }: Round): Promise<number[]> {
  // Written out for the same reason as `perTenant`.
  const size = rawSql(String(by));
  const behind = (found: string): Sql => sql`(${rawSql(found)}.lane / ${size} + 1) * ${size}`;
  const rows = await tx.all<{ lane: number; round: number }>(sql`
    with recursive ahead (lane, place) as (
      select (${firstLane(sql`${after + 1}`, end)}), 1
      union all
      select (${firstLane(behind("ahead"), end)}), place + 1 from ahead where ahead.lane is not null and place < ${most}
    ), around (lane, place) as (
      select (${firstLane(sql`${start}`, last + 1)}), 1
      union all
      select (${firstLane(behind("around"), last + 1)}), place + 1
      from around where around.lane is not null and place < ${most}
    )
    select lane, 0 as round from ahead where lane is not null
    union all select lane, 1 from around where lane is not null`);
  rows.sort((a, b) => a.round - b.round || a.lane - b.lane);
  return rows.slice(0, most).map((row) => row.lane);
}

/** The first lane from this number on that has something in line, and before that one. */
function firstLane(from: Sql, before: number): Sql {
  return sql`select min(line.lane_seq) from daybook_line line ${indexedBy("jobs_to_claim")}
    where line.status = 'queued' and line.lane_seq >= ${from} and line.lane_seq < ${before}`;
}
