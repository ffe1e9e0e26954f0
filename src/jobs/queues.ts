// What a user does with queues: look at them and their lines, pause, resume, limit, renumber.
import { openStatuses, hostChannel, jobsChannel } from "./job.ts";
import { shape } from "../storage/shape.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Row, Store, Tx } from "../storage/store.ts";
import type { Within } from "./jobs.ts";
import { notFound, DaybookError } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { indexedBy, amongThe, forUpdate, lockNames } from "../storage/word.ts";
import { checkLimit, cutPage, notACursor, type Page, type PageOptions } from "../core/page.ts";
import { quote } from "../core/quote.ts";
import { findLane, laneOf, closeLane, laneLock } from "./claim/lane.ts";
import { holdLines } from "./lock-order.ts";
import { checkRate } from "./claim/limit.ts";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { limits } from "../core/limits.ts";
import { lanesThatWait, release } from "./wait/park.ts";

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
    limit: (queue: string, to: QueueLimits) => within((tx) => limitLane(tx, queue, to)),
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

/** How many jobs of each queue are open, by status. Each count walks an index of its own, for which the status must be a literal. */
export async function readOpenCounts(store: Store, tenant: string): Promise<OpenCount[]> {
  const counts = openStatuses.map(
    (status) => sql`select lane.queue, '${rawSql(status)}' as status, count(*) as jobs
    from daybook_lane lane join daybook_line line on line.lane_seq = lane.seq
    where lane.tenant_id = ${tenant} and line.status = '${rawSql(status)}' group by lane.queue order by lane.queue`,
  );
  return (await Promise.all(counts.map((count) => store.readHeavy<OpenCount>(count)))).flat();
}

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

/** A queue in the order of dispatch, the next one first; what waits for something does not stand there. One statement, so that the
 *  places are of one moment. A job that is moved between two pages may be on both or on neither. */
async function readLine(store: Store, tenant: string, queue: string, options: LineOptions): Promise<LinePage> {
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

/** One statement, so that place and line are of one moment. The line may be long, so it is not counted on this thread. */
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

export type NormaliseOptions = {
  /** Only counts. */
  readonly dryRun?: boolean;
};

export type Normalised = {
  /** How many jobs of the queue are open. */
  readonly jobs: number;
  /** How many of them got, or would get, another number. */
  readonly changed: number;
};

/** Renumbers a lane by hand. Moves make their own room, so this is for people who like to read the numbers. */
async function normaliseLane(tx: Tx, queue: string, options: NormaliseOptions): Promise<Normalised> {
  refuseUnknown(options, ["dryRun"], "normalise");
  const lane = await findLane(tx, tx.tenant, checkName(queue, "queue"));
  if (lane === undefined) throw new DaybookError("not_found", `there is no queue ${quote(queue)}`);
  await holdLines(tx, [lane.seq]);
  const counted = await tx.get<Normalised>(sql`with ${numbered(lane.seq, sql``)}
    select count(*) as jobs, coalesce(sum(case when old <> spot then 1 else 0 end), 0) as changed from numbered`);
  const { jobs = 0, changed = 0 } = counted ?? {};
  if (options.dryRun === true || changed === 0) return { jobs, changed };
  return {
    jobs,
    changed: await tx.run(sql`with ${numbered(lane.seq, sql`${forUpdate}`)}
      update daybook_line as line set position = numbered.spot from numbered
      where line.seq = numbered.seq and numbered.old <> numbered.spot`),
  };
}

/** The open jobs of a lane with the number that each should have: 50, 150, 250 … per priority. Multiples of 100 are left
 *  to the rows whose sequence they are (room.ts). What runs is numbered as well, because it may be lost, and is then
 *  tried again where it stood. All of them are locked before the first is numbered, and no other: a job that came after that has its
 *  own number, and the transaction that holds it may wait for one of these. */
function numbered(lane: number, lock: Sql): Sql {
  return sql`held as materialized (select seq, priority, position from daybook_line where seq ${amongThe(sql`
      select seq from daybook_line ${indexedBy("jobs_to_claim")} where status = 'queued' and lane_seq = ${lane}
      union all select seq from daybook_line ${indexedBy("jobs_standing_by")} where status = 'waiting' and lane_seq = ${lane}
      union all select seq from daybook_line ${indexedBy("jobs_running")} where status = 'running' and lane_seq = ${lane}`)}
      order by seq ${lock}),
    numbered as (select seq, position as old,
      row_number() over (partition by priority order by position, seq) * 100 - 50 as spot from held)`;
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
