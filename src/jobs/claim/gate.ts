// The gates of a lane: pause, reservation, limit and rate. A claim enters its lanes and reads their gates once, before any of
// their jobs, so a closed lane costs the same however many jobs stand in it. Whoever pauses, limits or reserves a lane waits for
// the claims that are under way in it, and every later claim sees what was changed.
import { anyOf, indexedBy, lockKey, lockNames, tryNames } from "../../storage/word.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { laneOf, type LaneRow } from "./lane.ts";
import { roomInRate, checkRate, type RateRoom, type RateRule } from "./limit.ts";
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { hostChannel, jobsChannel } from "../job.ts";
import { lanesThatWait, release } from "../wait/park.ts";

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
  const counting = await tryNames(tx, limited.map(laneLock));
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

/** PostgreSQL only: enters those of the lanes that nobody is changing, and leaves their numbers for the next statement of the
 *  transaction in its setting `daybook.lanes`, so that nobody has to wait for the answer. */
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

/** How many of a lane run. Whoever takes from a lane with a limit holds its lock, so the count stays true. */
export async function countRunning(tx: Pick<Tx, "get">, lane: number): Promise<number> {
  const row = await tx.get<{ n: number }>(sql`select count(*) as n from daybook_line ${indexedBy("jobs_running")}
    where status = 'running' and lane_seq = ${lane}`);
  return row?.n ?? 0;
}

export async function pauseLane(tx: Tx, queue: string, note: string | null): Promise<void> {
  const lane = await laneOf(tx, tx.tenant, checkName(queue, "queue"));
  await closeLane(tx, lane);
  await tx.run(sql`update daybook_lane as lane set paused_at = coalesce(paused_at, ${tx.now}), paused_note = ${note}
    where seq = ${lane}`);
}

export async function resumeLane(tx: Tx, queue: string): Promise<void> {
  const lane = await laneOf(tx, tx.tenant, checkName(queue, "queue"));
  await tx.run(sql`update daybook_lane as lane set paused_at = null, paused_note = null where seq = ${lane}`);
  tx.wake(jobsChannel);
}

/** The jobs of a paused name are parked as they come to the front, and released when it is resumed. */
export async function pauseName(tx: Tx, name: string, note: string | null): Promise<void> {
  await tx.run(sql`insert into daybook_paused_name (tenant_id, name, paused_at, note)
    values (${tx.tenant}, ${checkName(name, "job name")}, ${tx.now}, ${note})
    on conflict (tenant_id, name) do update set note = excluded.note`);
}

export async function resumeName(tx: Tx, name: string): Promise<void> {
  await tx.run(sql`delete from daybook_paused_name where tenant_id = ${tx.tenant} and name = ${name}`);
  // The rest follow as claims look for hosted jobs; the wakes make them look.
  const reason = { tenant: tx.tenant, waitsFor: "host", key: name } as const;
  const lanes = await lanesThatWait(tx, reason);
  await release(tx, reason, Math.ceil(limits.bulkRowsMax / Math.max(1, lanes.length)), lanes);
  tx.wake(hostChannel);
  tx.wake(jobsChannel);
}

/** The names that are paused, each after its tenant. */
export async function pausedNames(tx: Tx): Promise<Set<string>> {
  const rows = await tx.all<{ tenant_id: string; name: string }>(sql`select tenant_id, name
    from daybook_paused_name paused_name`);
  return new Set(rows.map((row) => `${row.tenant_id}\n${row.name}`));
}

export type QueueLimits = {
  /** How many of the lane's jobs may run at the same time; null lifts the limit. */
  readonly concurrency?: number | null;
  /** How many may start per window; null lifts the rate. */
  readonly rate?: { readonly max: number; readonly per: Duration } | null;
};

export async function limitLane(tx: Tx, queue: string, to: QueueLimits): Promise<void> {
  refuseUnknown(to, ["concurrency", "rate"], "the limit of a queue");
  if (to.rate != null) checkRate(to.rate);
  const lane = await laneOf(tx, tx.tenant, checkName(queue, "queue"));
  await closeLane(tx, lane);
  await lockNames(tx, [laneLock({ seq: lane })]);
  if (to.concurrency !== undefined) {
    const most = to.concurrency === null ? null : checkCount(to.concurrency, "concurrency", 1);
    await tx.run(sql`update daybook_lane as lane set limit_max = ${most} where seq = ${lane}`);
  }
  if (to.rate !== undefined) {
    const max = to.rate?.max ?? null;
    const ms = to.rate === null ? null : durationMs(to.rate.per);
    await tx.run(sql`update daybook_lane as lane set rate_max = ${max}, rate_ms = ${ms} where seq = ${lane}`);
  }
  tx.wake(jobsChannel);
}
