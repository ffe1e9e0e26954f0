// Why a lane lets nothing through: its pause, a reservation, its limit or its rate.
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { explainReservation } from "./explain-turn.ts";
import { laneRateKey } from "./gate.ts";
import type { LaneRow } from "./lane.ts";
import { windowAt, type RateWindow } from "./rate.ts";

/** The gate in one word and a sentence about it; undefined when the lane is open. */
export async function explainGate(store: Store, lane: LaneRow): Promise<string[] | undefined> {
  if (lane.paused_at !== null) {
    return [
      "paused",
      `The queue ${lane.queue} is paused since ${isoTime(lane.paused_at)}${noteText(lane.paused_note)}.`,
    ];
  }
  return (
    (await explainReservation(store, lane)) ?? (await explainLimit(store, lane)) ?? (await explainRate(store, lane))
  );
}

async function explainLimit(store: Store, { seq, queue, limit_max: most }: LaneRow): Promise<string[] | undefined> {
  if (most === null) return undefined;
  const [live] = await store.read<{ n: number }>(
    sql`select count(*) as n from daybook_line where status = 'running' and lane_seq = ${seq}`,
  );
  if (live === undefined || live.n < most) return undefined;
  return ["limit", `The queue ${queue} lets ${most} jobs run at the same time, and ${live.n} do.`];
}

async function explainRate(store: Store, lane: LaneRow): Promise<string[] | undefined> {
  const { tenant_id: tenant, queue, rate_max: most, rate_ms: ms } = lane;
  if (most === null || ms === null) return undefined;
  const [last] = await store.read<RateWindow>(
    sql`select window_at, used, let_in from daybook_rate_window rate_window where tenant_id = ${tenant} and rate_key = ${laneRateKey(queue)}`,
  );
  const window = windowAt(store.clock.now(), ms, last);
  if (window.used < most) return undefined;
  const opens = window.window_at + ms;
  const per = formatDuration(ms);
  return [
    "rate",
    `The queue ${queue} starts at most ${most} jobs per ${per}; the next window opens ${isoTime(opens)}.`,
  ];
}

export function noteText(note: string | null): string {
  return note === null ? "" : `: ${note}`;
}
