// A queue in the order of dispatch: who stands in line, the next one first, and where one job stands. What waits for something
// does not stand there.
import { notFound } from "../../core/error.ts";
import { checkName } from "../../core/name.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";
import { checkLimit, cutPage, notACursor, type Page, type PageOptions } from "../../core/page.ts";

export type LineOptions = PageOptions;

export type JobInLine = {
  /** 1 is the next one. */
  readonly place: number;
  readonly id: string;
  readonly name: string;
  readonly priority: number;
  readonly position: number;
  readonly createdAt: number;
};

export type LinePage = Page<JobInLine>;

/** One statement, so that the places are of one moment. A job that is moved between two pages may be on both or on neither. */
export async function readLine(store: Store, tenant: string, queue: string, options: LineOptions): Promise<LinePage> {
  refuseUnknown(options, ["limit", "after"], "the line of a queue");
  const limit = checkLimit(options.limit);
  const lane = sql`(select seq from daybook_lane where tenant_id = ${tenant} and queue = ${checkName(queue, "queue")})`;
  const cut = options.after === undefined ? undefined : toCursor(options.after);
  const before = cut === undefined ? sql`0` : upTo(lane, cut);
  const rows = await store.readHeavy<JobInLine & { seq: number }>(sql`select ${before} as place, job.id, job.name,
      line.priority, line.position, job.created_at as "createdAt", line.seq
    from daybook_line line ${indexedBy("jobs_to_claim")} cross join daybook_job job
    where line.status = 'queued' and line.lane_seq = ${lane} ${cut === undefined ? sql`` : behind(cut)}
      and job.seq = line.seq
    order by line.priority desc, line.position, line.seq limit ${limit + 1}`);
  // What is read is how many stand before the page.
  const placed = rows.map((row, index) => ({ ...row, place: row.place + index + 1 }));
  const cursorOf = (row: JobInLine & { seq: number }): string => `${row.priority}_${row.position}_${row.seq}`;
  return cutPage(placed, limit, cursorOf, ({ seq: _seq, ...job }) => job);
}

type Cut = { readonly priority: Sql; readonly position: Sql; readonly seq: Sql };

function toCursor(text: string): Cut {
  const numbers = String(text).split("_").map(Number);
  const [priority, position, seq] = numbers.map((number) => sql`${number}`);
  if (priority && position && seq && numbers.length === 3 && numbers.every(Number.isSafeInteger))
    return { priority, position, seq };
  throw notACursor(text);
}

/** How many stand up to there, counted in two ranges of the index. */
function upTo(lane: Sql, { priority, position, seq }: Cut): Sql {
  return sql`(${inLine(lane)} and other.priority > ${priority})
    + (${inLine(lane)} and other.priority = ${priority} and (other.position, other.seq) <= (${position}, ${seq}))`;
}

function inLine(lane: Sql): Sql {
  return sql`select count(*) from daybook_line other ${indexedBy("jobs_to_claim")}
    where other.status = 'queued' and other.lane_seq = ${lane}`;
}

function behind({ priority, position, seq }: Cut): Sql {
  return sql`and line.priority <= ${priority}
    and (line.priority < ${priority} or (line.position, line.seq) > (${position}, ${seq}))`;
}

export type Place = {
  /** 1 is the next one. */
  readonly place: number;
  /** How many stand in line in its queue. */
  readonly of: number;
  /** An estimate in epoch milliseconds, from how long the last runs of the queue took and how many run there now; null
   *  when there is nothing to go by, or the queue is paused. */
  readonly startsAt: number | null;
};

type Standing = Omit<Place, "startsAt"> &
  Record<"paused_at" | "mean_ms", number | null> & { readonly status: string; readonly running: number };

// The runs of a lane are found among the tenant's last ones: enough of them to be typical, few enough to be read.
const lookedAtMax = 1000;
const countedMax = 100;

/** One statement, so that whatever is claimed meanwhile, place and line are of one moment. The line may be long, so it is
 *  not counted on this thread. */
export async function placeOf(store: Store, tenant: string, id: string): Promise<Place | null> {
  const own = { priority: sql`line.priority`, position: sql`line.position`, seq: sql`line.seq` };
  const lane = sql`job.lane_seq`;
  const [row] = await store.readHeavy<Standing>(sql`select coalesce(line.status, 'completed') as status, lane.paused_at,
      (${inLine(lane)}) as "of", ${upTo(lane, own)} as place,
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
  if (row === undefined) throw notFound(`there is no job ${id}`, { id });
  if (row.status !== "queued") return null;
  return { place: row.place, of: row.of, startsAt: estimate(row, store.clock.now()) };
}

// With nothing running it is only those ahead that take time; else one of those that run has to end as well.
function estimate({ paused_at, mean_ms, place, running }: Standing, now: number): number | null {
  if (paused_at !== null || mean_ms === null) return null;
  const turns = running === 0 ? place - 1 : place / running;
  return now + Math.round(turns * mean_ms);
}
