// What a user does with queues: look, pause, resume, limit.
import type { Store } from "../storage/store.ts";
import { sql } from "../storage/sql.ts";
import { normaliseLane, type Normalised, type NormaliseOptions } from "./line/normalise.ts";
import { limitLane, pauseLane, resumeLane, type LaneLimits } from "./pause.ts";
import type { Within } from "./jobs.ts";

export type QueueVerbs = {
  /** Nothing of the queue starts until it is resumed; what runs goes on. */
  pause(queue: string, note?: string): Promise<void>;
  resume(queue: string): Promise<void>;
  limit(queue: string, to: LaneLimits): Promise<void>;
  /** Renumbers the positions of a queue's open jobs to 50, 150, 250 … per priority; the order stays. */
  normalise(queue: string, options?: NormaliseOptions): Promise<Normalised>;
};

export type QueueRecord = {
  readonly queue: string;
  readonly waiting: number;
  readonly queued: number;
  readonly running: number;
  readonly failed: number;
  /** When the first job in line was made; null when none is. */
  readonly oldestAt: number | null;
  readonly paused: { readonly at: number; readonly note: string | null } | null;
  readonly concurrency: number | null;
  readonly rate: { readonly max: number; readonly perMs: number } | null;
};

export type Queues = QueueVerbs & { list(): Promise<QueueRecord[]> };

export function queueVerbs(within: Within): QueueVerbs {
  return {
    pause: (queue, note) => within((tx) => pauseLane(tx, queue, note ?? null), { shared: false }),
    resume: (queue) => within((tx) => resumeLane(tx, queue), { shared: false }),
    limit: (queue, to) => within((tx) => limitLane(tx, queue, to), { shared: false }),
    normalise: (queue, options = {}) => within((tx) => normaliseLane(tx, queue, options), { shared: false }),
  };
}

type Row = {
  queue: string;
  waiting: number;
  queued: number;
  running: number;
  failed: number;
  oldest_at: number | null;
  paused_at: number | null;
  paused_note: string | null;
  limit_max: number | null;
  rate_max: number | null;
  rate_ms: number | null;
};

/** Counts what is open and what failed; finished work is counted by rollups, not by reading all of it. */
export async function listQueues(store: Store, tenant: string): Promise<QueueRecord[]> {
  const rows = await store.readHeavy<Row>(sql`select lane.queue, lane.paused_at, lane.paused_note, lane.limit_max,
      lane.rate_max, lane.rate_ms,
      (select count(*) from job where status = 'queued' and lane_seq = lane.seq) as queued,
      (select count(*) from job where status = 'running' and lane_seq = lane.seq) as running,
      (select count(*) from job where status = 'waiting' and lane_seq = lane.seq) as waiting,
      (select count(*) from job where status = 'failed' and tenant_id = lane.tenant_id and lane_seq = lane.seq) as failed,
      (select min(created_at) from job where status = 'queued' and lane_seq = lane.seq) as oldest_at
    from lane where tenant_id = ${tenant} order by lane.queue`);
  return rows.map((row) => ({
    queue: row.queue,
    waiting: row.waiting,
    queued: row.queued,
    running: row.running,
    failed: row.failed,
    oldestAt: row.oldest_at,
    paused: row.paused_at === null ? null : { at: row.paused_at, note: row.paused_note },
    concurrency: row.limit_max,
    rate: row.rate_max === null || row.rate_ms === null ? null : { max: row.rate_max, perMs: row.rate_ms },
  }));
}
