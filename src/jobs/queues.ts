// What a user does with queues: look at them and their lines, pause, resume, limit.
import { shape } from "../storage/shape.ts";
import { rawSql, sql } from "../storage/sql.ts";
import type { Row, Store } from "../storage/store.ts";
import { normaliseLane, type NormaliseOptions } from "./line/normalise.ts";
import { readLine, type LineOptions } from "./line/read-line.ts";
import { limitLane, pauseLane, resumeLane, type LaneLimits } from "./pause.ts";
import type { Within } from "./jobs.ts";

export type QueueVerbs = ReturnType<typeof queueVerbs>;
export type Queues = QueueVerbs & ReturnType<typeof queueReads>;

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

export function queueVerbs(within: Within) {
  return {
    /** Nothing of the queue starts until it is resumed; what runs goes on. */
    pause: (queue: string, note?: string) => within((tx) => pauseLane(tx, queue, note ?? null)),
    resume: (queue: string) => within((tx) => resumeLane(tx, queue)),
    limit: (queue: string, to: LaneLimits) => within((tx) => limitLane(tx, queue, to)),
    /** Renumbers the positions of a queue's open jobs to 50, 150, 250 … per priority; the order stays. */
    normalise: (queue: string, options: NormaliseOptions = {}) => within((tx) => normaliseLane(tx, queue, options)),
  };
}

export function queueReads(store: Store, tenant: string) {
  return {
    list: () => listQueues(store, tenant),
    /** Who stands in line in a queue, in the order in which they will be claimed. What waits, for its time or for a limit, is
     *  not among them; `jobs.list({ queue, status: "waiting" })` has it.
     *
     *  ```ts
     *  for (const { place, id } of (await book.queues.line("default", { limit: 10 })).items) console.log(place, id);
     *  ``` */
    line: (queue: string, options: LineOptions = {}) => readLine(store, tenant, queue, options),
  };
}

/** Counts what is open and what failed; finished work is counted by rollups, not by reading all of it. */
async function listQueues(store: Store, tenant: string): Promise<QueueRecord[]> {
  const rows = await store.readHeavy<Row>(sql`select lane.queue,
      (select count(*) from daybook_line where status = 'waiting' and lane_seq = lane.seq) as waiting,
      (select count(*) from daybook_line where status = 'queued' and lane_seq = lane.seq) as queued,
      (select count(*) from daybook_line where status = 'running' and lane_seq = lane.seq) as running,
      (select count(*) from daybook_run run join daybook_job job on job.seq = run.job_seq
        where run.tenant_id = lane.tenant_id and run.status <> 'success' and run.status in ('error', 'timed_out', 'lost')
          and job.lane_seq = lane.seq) as failed,
      (select min(job.created_at) from daybook_line line join daybook_job job on job.seq = line.seq
        where line.status = 'queued' and line.lane_seq = lane.seq) as "oldestAt",
      lane.paused_at as "paused.at", lane.paused_note as "paused.note", lane.limit_max as concurrency,
      lane.rate_max as "rate.max", lane.rate_ms as "rate.perMs"
    from daybook_lane lane where tenant_id = ${tenant} order by lane.queue`);
  return shape(rows);
}

export type OpenCount = { readonly queue: string; readonly status: string; readonly jobs: number };

/** How many jobs of each queue have not ended, by status. Each count walks an index that holds nothing else, which the planner
 *  only uses where the status is a literal. */
export async function readOpenCounts(store: Store, tenant: string): Promise<OpenCount[]> {
  const counts = ["queued", "waiting", "running"].map(
    (status) => sql`select lane.queue, '${rawSql(status)}' as status, count(*) as jobs
    from daybook_lane lane join daybook_line line on line.lane_seq = lane.seq
    where lane.tenant_id = ${tenant} and line.status = '${rawSql(status)}' group by lane.queue order by lane.queue`,
  );
  return (await Promise.all(counts.map((count) => store.readHeavy<OpenCount>(count)))).flat();
}
