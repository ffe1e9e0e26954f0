// Where a job stands in line, and when its turn may come.
import { DaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";
import type { JobStatus } from "../job.ts";

export type Place = {
  /** 1 is the next one. */
  readonly place: number;
  /** How many stand in line in its queue. */
  readonly of: number;
  /** An estimate in epoch milliseconds, from how long the last runs of the queue took and how many run there now; null
   *  when there is nothing to go by, or the queue is paused. */
  readonly startsAt: number | null;
};

type Row = {
  status: JobStatus;
  paused_at: number | null;
  line: number;
  ahead: number;
  running: number;
  mean_ms: number | null;
};

// The runs of a lane are found among the tenant's last ones: enough of them to be typical, few enough to be read.
const lookedAtMax = 1000;
const countedMax = 100;

/** One statement, so that whatever is claimed meanwhile, place and line are of one moment. The line may be long, so it is
 *  not counted on this thread. */
export async function placeOf(store: Store, tenant: string, id: string): Promise<Place | null> {
  const [row] = await store.readHeavy<Row>(sql`select coalesce(line.status, 'completed') as status, lane.paused_at,
      (select count(*) from daybook_line other ${indexedBy("jobs_to_claim")}
        where other.status = 'queued' and other.lane_seq = job.lane_seq) as line,
      (select count(*) from daybook_line other ${indexedBy("jobs_to_claim")}
        where other.status = 'queued' and other.lane_seq = job.lane_seq and other.priority > line.priority)
      + (select count(*) from daybook_line other ${indexedBy("jobs_to_claim")}
        where other.status = 'queued' and other.lane_seq = job.lane_seq and other.priority = line.priority
          and (other.position, other.seq) < (line.position, line.seq)) as ahead,
      (select count(*) from daybook_line other ${indexedBy("jobs_running")}
        where other.status = 'running' and other.lane_seq = job.lane_seq) as running,
      (select avg(duration_ms) from (select late.duration_ms
        from (select job_seq, duration_ms, status from daybook_run where tenant_id = ${tenant} and job_seq is not null
          order by id desc limit ${lookedAtMax}) as late
        join daybook_job ran on ran.seq = late.job_seq
        where ran.lane_seq = job.lane_seq and late.status in ('success', 'error', 'timed_out')
        limit ${countedMax}) as counted) as mean_ms
    from daybook_job job join daybook_lane lane on lane.seq = job.lane_seq left join daybook_line line on line.seq = job.seq
    where job.tenant_id = ${tenant} and job.id = ${id}`);
  if (row === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  if (row.status !== "queued") return null;
  return { place: row.ahead + 1, of: row.line, startsAt: estimate(row, store.clock.now()) };
}

// With nothing running it is only those ahead that take time; else one of those that run has to end as well.
function estimate({ paused_at, mean_ms, ahead, running }: Row, now: number): number | null {
  if (paused_at !== null || mean_ms === null) return null;
  const turns = running === 0 ? ahead : (ahead + 1) / running;
  return now + Math.round(turns * mean_ms);
}
