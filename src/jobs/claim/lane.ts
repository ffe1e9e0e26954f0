// A lane is a queue of one tenant. Order, pause, limit and rate belong to it. Its row is made by the first job in it
// and never removed, so its number can be kept in memory.
//
// A lane's number is its tenant's number × 1,000,000 plus its own, so the lanes of a tenant stand together in the claim index
// and a tenant is found, or passed, by one seek, however many queues it has.
//
// Its gates are pause, reservation, limit and rate. A claim enters its lanes and reads their gates once, before any of their jobs,
// so a closed lane costs the same however many jobs stand in it. A transaction that pauses, limits or reserves a lane waits for
// the claims that are under way in it, and every later claim sees what was changed.

import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, indexedBy, lockKey, lockNames, rowSet, tryNames } from "../../storage/word.ts";
import type { Claimer } from "./claim.ts";
import { roomInRate, type RateRoom, type RateRule } from "./limit.ts";

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

/** The number of the lane, which is made if it does not exist yet. */
export function laneOf(tx: Tx, tenant: string, queue: string): number | Promise<number> {
  const made = async (): Promise<number> => (await lanesOf(tx, tenant, [queue])).get(queue) as number;
  return keptLanes(tx).get(`${tenant}\n${queue}`) ?? made();
}

// Only committed ones are kept: a lane of a transaction that was undone does not exist.
function keptLanes(tx: Tx): Map<string, number> {
  return tx.keep("lanes", () => new Map<string, number>());
}

type Made = { readonly seq: number; readonly queue: string };

/** The lanes of these queues, made in one order: on PostgreSQL two that make several at once would wait for each other. However
 *  many are made, and however many there are, the statements are as many and read no other lanes. */
export async function lanesOf(tx: Tx, tenant: string, queues: Iterable<string>): Promise<Map<string, number>> {
  const kept = keptLanes(tx);
  const lanes = new Map<string, number>();
  const wanted = [...new Set(queues)].sort();
  for (const queue of wanted) {
    const seq = kept.get(`${tenant}\n${queue}`);
    if (seq !== undefined) lanes.set(queue, seq);
  }
  const missing = (): string[] => wanted.filter((queue) => !lanes.has(queue));
  const note = ({ seq, queue }: Made): void => {
    lanes.set(queue, seq);
    tx.afterCommit(() => void kept.set(`${tenant}\n${queue}`, seq));
  };
  // On PostgreSQL two that come at once may compute the same number; the one that loses computes another.
  while (lanes.size < wanted.length) {
    (await insertLanes(tx, tenant, missing())).forEach(note);
    if (lanes.size < wanted.length) (await findLanes(tx, tenant, missing())).forEach(note);
  }
  return lanes;
}

async function findLanes(tx: Tx, tenant: string, queues: readonly string[]): Promise<Made[]> {
  return tx.all<Made>(
    sql`select seq, queue from daybook_lane where tenant_id = ${tenant} and queue ${anyOf("text", queues)}`,
  );
}

/** Makes those that can be made now. A new tenant's first lane is made alone: until it stands, another may have taken its numbers. */
async function insertLanes(tx: Tx, tenant: string, queues: readonly string[]): Promise<Made[]> {
  const rows = queues.map((queue, place) => ({ queue, place }));
  const own = sql`(select seq / ${perTenant} * ${perTenant} from daybook_lane where tenant_id = ${tenant} limit 1)`;
  return tx.all<Made>(sql`insert into daybook_lane (seq, tenant_id, queue)
    select first.seq + v.place, ${tenant}, v.queue
    from (select own.start is null as alone, coalesce(
        (select max(seq) + 1 from daybook_lane where seq >= own.start and seq < own.start + ${perTenant}),
        (select (coalesce(max(seq), 0) / ${perTenant} + 1) * ${perTenant} from daybook_lane)) as seq
      from (select ${own} as start) as own) as first
    cross join ${rowSet("v", { queue: "text", place: "integer" }, rows)}
    where v.place = 0 or not first.alone on conflict do nothing returning seq, queue`);
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
export async function nextLanes(tx: Tx, { turns, queues, tenant: only }: Claimer, most: number): Promise<Found> {
  // Those of other queues are passed over here, because a turn for every few of them would keep the worker busy.
  const seen = queues === null ? most : Math.max(most, passedMax);
  const first = await (only === undefined ? tenantsInTurn(tx, turns.tenant, most) : laneOfTenant(tx, only));
  const tenants = first.map(({ tenant }) => tenant);
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

/** The first lane of this tenant alone, if it has one. */
async function laneOfTenant(tx: Tx, only: string): Promise<FirstLane[]> {
  const row = await tx.get<{ lane: number }>(
    sql`select seq as lane from daybook_lane where tenant_id = ${only} limit 1`,
  );
  return row === undefined ? [] : [{ tenant: Math.floor(row.lane / lanesPerTenant), lane: row.lane }];
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

export type Gate = {
  readonly lane: LaneRow;
  /** How many jobs may start now; what is taken is taken off. */
  room: number;
  /** What is left of the lane's rate, and when its next window opens; null when it has no rate. */
  readonly rate: RateRoom | null;
  readonly rule: RateRule | null;
};

/** A lane as it is while this transaction takes from it. `reserved` when a session holds its next turn. */
type EnteredLane = LaneRow & { readonly reserved: number | null };

/** Enters the lanes, in this order, and reads their gates. `contended` when another claimer holds one, or its limits: that lane
 *  is left for the next look, because a claim never waits. */
export async function enterLanes(tx: Tx, seqs: readonly number[]): Promise<{ gates: Gate[]; contended: boolean }> {
  if (seqs.length === 0) return { gates: [], contended: false };
  const changing = await tryShare(tx, seqs);
  const free = seqs.filter((seq) => !changing.has(seq));
  // Read after the locks: a statement's snapshot is older than the locks it takes.
  const lanes = await tx.all<EnteredLane>(sql`select lane.*, (select 1 from daybook_reservation reservation
      where reservation.lane_seq = lane.seq and reservation.status = 'active' and reservation.expires_at > ${tx.now}
    ) as reserved
    from daybook_lane lane where seq ${anyOf("integer", free)}`);
  const place = new Map(free.map((seq, index) => [seq, index]));
  lanes.sort((a, b) => (place.get(a.seq) ?? 0) - (place.get(b.seq) ?? 0));
  const limited = lanes.filter((lane) => lane.limit_max !== null || lane.rate_max !== null);
  const counting = limited.length === 0 ? new Set<string>() : await tryNames(tx, limited.map(laneLock));
  const gates: Gate[] = [];
  for (const lane of lanes) gates.push(await readGate(tx, lane, counting.has(laneLock(lane))));
  return { gates, contended: changing.size + counting.size > 0 };
}

async function readGate(tx: Tx, lane: EnteredLane, contended: boolean): Promise<Gate> {
  if (lane.paused_at !== null || lane.reserved !== null || contended) return { lane, room: 0, rate: null, rule: null };
  const running = lane.limit_max === null ? 0 : await countRunning(tx, lane.seq);
  const rule = laneRule(lane);
  const rate = rule === null ? null : await roomInRate(tx, rule);
  const free = lane.limit_max === null ? Number.POSITIVE_INFINITY : Math.max(0, lane.limit_max - running);
  return { lane, room: Math.min(free, rate?.room ?? free), rate, rule };
}

const lockOfLane = rawSql(lockKey("value ->> 1"));

// SQLite's only writer needs no lock.
async function tryShare(tx: Tx, seqs: readonly number[]): Promise<Set<number>> {
  if (tx.dialect === "sqlite") return new Set();
  const busy = await tx.all<{ seq: number }>(sql`select (value ->> 0)::bigint as seq
    from jsonb_array_elements(${lanesToLock(seqs)}::jsonb)
    where not pg_catalog.pg_try_advisory_xact_lock_shared(${lockOfLane})`);
  return new Set(busy.map(({ seq }) => seq));
}

/** PostgreSQL only: enters those of the lanes that no transaction is changing, and leaves their numbers for the next statement
 *  in the transaction's setting `daybook.lanes`, so that the claim need not wait for the answer. */
export async function enterTogether(tx: Tx, seqs: readonly number[]): Promise<void> {
  await tx.all(sql`select pg_catalog.set_config('daybook.lanes', coalesce((select string_agg(value ->> 0, ',' order by ordinality)
    from jsonb_array_elements(${lanesToLock(seqs)}::jsonb) with ordinality
    where pg_catalog.pg_try_advisory_xact_lock_shared(${lockOfLane})), ''), true)`);
}

/** Waits for the claims that are under way in the lane, and keeps new ones out until this transaction ends. */
export async function closeLane(tx: Tx, seq: number): Promise<void> {
  await lockNames(tx, [lockName(seq)]);
}

function lanesToLock(seqs: readonly number[]): string {
  return JSON.stringify(seqs.map((seq) => [seq, lockName(seq)]));
}

function lockName(seq: number): string {
  return `enter\n${seq}`;
}

export function laneLock({ seq }: Pick<LaneRow, "seq">): string {
  return `lane\n${seq}`;
}

/** When the first of the lanes that their rates have closed opens again. */
export function nextOpening(gates: readonly Gate[]): number | null {
  const times = gates.flatMap(({ rate }) => (rate !== null && rate.room <= 0 ? [rate.opensAt] : []));
  return times.length === 0 ? null : Math.min(...times);
}

/** Counts the jobs that were taken against the lane's limit and rate. */
export async function countStarts(tx: Tx, gate: Gate, started: number): Promise<void> {
  gate.room -= started;
  if (gate.rate !== null) gate.rate.room -= started;
  if (gate.rule !== null && started > 0) await roomInRate(tx, gate.rule, started);
}

/** The key of a lane's rate. Those of jobs begin with a name, this one cannot. */
export function laneRateKey(queue: string): string {
  return `\n${queue}`;
}

function laneRule(lane: LaneRow): RateRule | null {
  if (lane.rate_max === null || lane.rate_ms === null) return null;
  return { tenant: lane.tenant_id, key: laneRateKey(lane.queue), max: lane.rate_max, ms: lane.rate_ms };
}

/** How many of a lane run. A claim from a lane with a limit holds its lock, so the count stays true. */
export async function countRunning(tx: Pick<Tx, "get">, lane: number): Promise<number> {
  const row = await tx.get<{ n: number }>(sql`select count(*) as n from daybook_line ${indexedBy("jobs_running")}
    where status = 'running' and lane_seq = ${lane}`);
  return row?.n ?? 0;
}
