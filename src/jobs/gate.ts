// The gates of a lane: pause, reservation, limit and rate. They are read once per claim, before any of the lane's jobs, so a closed
// lane costs the same however many jobs stand in it.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy } from "../storage/word.ts";
import type { EnteredLane } from "./enter-lanes.ts";
import type { LaneRow } from "./lane.ts";
import { tryLimits } from "./limit.ts";
import { roomInRate, type RateRoom, type RateRule } from "./rate.ts";

export type Gate = {
  readonly lane: LaneRow;
  /** How many jobs may start now; what is taken is taken off. */
  room: number;
  /** What is left of the lane's rate, and when its next window opens; null when it has no rate. */
  readonly rate: RateRoom | null;
  readonly rule: RateRule | null;
  /** Another claimer is just taking from the lane. */
  readonly contended: boolean;
};

/** The gates of `lanes`. One whose limits another claimer has locked stays closed to us. */
export async function readGates(tx: Tx, lanes: readonly EnteredLane[]): Promise<Gate[]> {
  const limited = lanes.filter((lane) => lane.limit_max !== null || lane.rate_max !== null);
  const busy = await tryLimits(tx, limited.map(laneLock));
  const gates: Gate[] = [];
  for (const lane of lanes) gates.push(await readGate(tx, lane, busy.has(laneLock(lane))));
  return gates;
}

async function readGate(tx: Tx, lane: EnteredLane, contended: boolean): Promise<Gate> {
  if (lane.paused_at !== null || lane.reserved !== null || contended)
    return { lane, room: 0, rate: null, rule: null, contended };
  const running = lane.limit_max === null ? 0 : await countRunning(tx, lane.seq);
  const rule = laneRule(lane);
  const rate = rule === null ? null : await roomInRate(tx, rule);
  const room = Math.min(
    lane.limit_max === null ? Number.POSITIVE_INFINITY : Math.max(0, lane.limit_max - running),
    rate?.room ?? Number.POSITIVE_INFINITY,
  );
  return { lane, room, rate, rule, contended };
}

/** The lock of a lane's limit and rate. */
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
