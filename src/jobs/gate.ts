// The gates of a lane: pause, reservation, limit and rate. A claim enters its lanes and reads their gates once, before any of
// their jobs, so a closed lane costs the same however many jobs stand in it. Whoever pauses, limits or reserves a lane waits for
// the claims that are under way in it, and every later claim sees what was changed.
import { lockKey } from "../storage/lock-key.ts";
import { rawSql, sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, indexedBy } from "../storage/word.ts";
import type { LaneRow } from "./lane.ts";
import { lockLimits, tryLimits } from "./limit.ts";
import { roomInRate, type RateRoom, type RateRule } from "./rate.ts";

export type Gate = {
  readonly lane: LaneRow;
  /** How many jobs may start now; what is taken is taken off. */
  room: number;
  /** What is left of the lane's rate, and when its next window opens; null when it has no rate. */
  readonly rate: RateRoom | null;
  readonly rule: RateRule | null;
};

/** A lane as it is while this transaction takes from it. `reserved` when somebody holds its next turn. */
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
  const counting = await tryLimits(tx, limited.map(laneLock));
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
    from jsonb_array_elements(${lockNames(seqs)}::jsonb)
    where not pg_catalog.pg_try_advisory_xact_lock_shared(${lockOfLane})`);
  return new Set(busy.map(({ seq }) => seq));
}

/** PostgreSQL only: enters those of the lanes that nobody is changing, and leaves their numbers for the next statement of the
 *  transaction in its setting `daybook.lanes`, so that nobody has to wait for the answer. */
export async function enterTogether(tx: Tx, seqs: readonly number[]): Promise<void> {
  await tx.all(sql`select pg_catalog.set_config('daybook.lanes', coalesce((select string_agg(value ->> 0, ',' order by ordinality)
    from jsonb_array_elements(${lockNames(seqs)}::jsonb) with ordinality
    where pg_catalog.pg_try_advisory_xact_lock_shared(${lockOfLane})), ''), true)`);
}

/** Waits for the claims that are under way in the lane, and keeps new ones out until this transaction ends. */
export async function closeLane(tx: Tx, seq: number): Promise<void> {
  await lockLimits(tx, [lockName(seq)]);
}

function lockNames(seqs: readonly number[]): string {
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

/** How many of a lane run. Whoever takes from a lane with a limit holds its lock, so the count stays true. */
export async function countRunning(tx: Pick<Tx, "get">, lane: number): Promise<number> {
  const row = await tx.get<{ n: number }>(sql`select count(*) as n from daybook_line ${indexedBy("jobs_running")}
    where status = 'running' and lane_seq = ${lane}`);
  return row?.n ?? 0;
}
