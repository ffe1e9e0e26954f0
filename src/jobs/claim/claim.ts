// Claim: takes the jobs that come first, lane by lane in turn, and makes them this session's. The open run is the
// job's own row, so from here on "running" and "has a run" are one fact.
//
//   lanes in turn ──► gates ──► candidates in order ──► take; park what cannot run
import { anyOf, indexedBy, rowSet, skipLockedOf, tryNames } from "../../storage/word.ts";
import { isAlive } from "../../telemetry/attach.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { passOn, waitsKey } from "../wait/park.ts";
import { countStarts, enterLanes, nextOpening, inTurn, nextLanes, served } from "./lane.ts";
import type { Gate, Turns } from "./lane.ts";
import { kindOf, type Ports } from "../kind.ts";
import { candidateColumns, hostChannel, jobsChannel, startableColumns } from "../job.ts";
import type { Candidate, Startable, JobRow } from "../job.ts";
import { createPermits, limitNames, writePermits, type Permit } from "./limit.ts";
import { park, queueOne, take, type Claimed, type Parked } from "../state.ts";
import type { Reserved } from "../direct/reservation.ts";

export type ClaimedJob = Candidate & { readonly run_id: string; readonly lane_seq: number; readonly queue: string };

/** The worker that claims, and what it remembers between claims. */
export type Claimer = {
  readonly sessionSeq: number;
  readonly hosts: ReadonlySet<string>;
  /** The queues it serves; null means all. */
  readonly queues: ReadonlySet<string> | null;
  /** Whose jobs it takes; left out, those of every tenant. */
  readonly tenant?: string;
  readonly turns: Turns;
  /** Per name, the lane whose jobs were last released because they have a host now. */
  readonly hostCursors: Map<string, number>;
  /** It serves one reservation, and nothing else. */
  readonly reserved?: Reserved;
  /** What the rooms above say of jobs that keep an order. */
  readonly kinds: Ports["kinds"];
};

/** What a claim took and saw. It is filled as the claim goes from lane to lane. */
export type Claim = ReturnType<typeof noClaim>;

export const noClaim = () => ({
  jobs: [] as ClaimedJob[],
  /** A job that must run alone was found, and parked until a process is empty. */
  leftAlone: false,
  /** There may be more that this claim did not get to. */
  more: false,
  /** How many were found unable to run, and parked. */
  parked: 0,
  looked: [] as readonly number[],
  /** Another claimer was just counting one of our limits; what it names was left in line. */
  contended: false,
  /** When a lane that its rate closed opens again. */
  opensAt: null as number | null,
  /** A job was parked until a time, so the next due time may have changed. */
  parkedForTime: false,
});

type Asked = {
  readonly claimer: Claimer;
  readonly want: number;
  readonly attempted: Claimed[];
  /** It takes one job that must run alone, and nothing else. */
  readonly alone: boolean;
};

/** The claimer that starts jobs, and where what it took is noted. */
export type Starter = Pick<Asked, "claimer" | "attempted">;

type Batch = Asked & {
  readonly paused: ReadonlySet<string>;
  /** Made for the first job that has limits. */
  permits: ReturnType<typeof createPermits> | undefined;
  readonly found: Claim;
};

/** Takes at most `want` jobs for this session. Two sessions never receive the same one: SQLite has one writer, and PostgreSQL
 *  skips rows that another session has locked. `attempted` gets what is taken, also when the commit's fate stays unknown. */
export async function claim(tx: Tx, claimer: Claimer, want: number, attempted: Claimed[]): Promise<Claim> {
  const { lanes: next, looked, more } = await nextLanes(tx, claimer, limits.claimLanesMax);
  const { batch, gates } = await enter(tx, { claimer, want, attempted, alone: false }, next);
  // Every lane gets its share; what some do not need goes to the others in the next pass.
  let pass = gates.filter((gate) => gate.room > 0);
  while (pass.length > 0 && roomLeft(batch) > 0) {
    const share = Math.ceil(roomLeft(batch) / pass.length);
    const hasMore: Gate[] = [];
    for (const gate of pass) {
      // One that is not come to has what it had.
      if (roomLeft(batch) <= 0 || (await claimFromLane(tx, batch, gate, share))) hasMore.push(gate);
    }
    pass = hasMore;
  }
  // The next claim begins behind what was served; when all were closed, behind what was looked at.
  const { jobs } = batch.found;
  const lanes = jobs.length > 0 ? jobs.map((job) => job.lane_seq) : looked;
  served(claimer.turns, lanes);
  return toClaim(batch, gates, { more: pass.length > 0 || more, looked });
}

/** Takes the first job that must run alone, for a process in which nothing runs. */
export async function claimAlone(tx: Tx, claimer: Claimer, attempted: Claimed[]): Promise<Claim> {
  const found = await findAlone(tx, claimer);
  const asked = { claimer, want: 1, attempted, alone: true };
  const { batch, gates } = await enter(tx, asked, found === undefined ? [] : [found.lane_seq]);
  const gate = gates.find(({ room }) => room > 0);
  // What else it waits for it meets in line, like any other.
  if (found !== undefined && gate !== undefined) {
    const { seq } = found;
    if (await queueOne(tx, seq, "alone", { passBy: true }))
      await takeFrom(tx, batch, gate, await readCandidate(tx, seq));
    else batch.found.contended = true;
  }
  return toClaim(batch, gates, { more: false, looked: [] });
}

type Alone = { readonly seq: number; readonly lane_seq: number; readonly name: string; readonly queue: string };

/** A job that waits until it can run alone, and that this claimer could run. */
export async function findAlone(tx: Tx, { hosts, queues, tenant }: Claimer): Promise<Alone | undefined> {
  const isOwn = tenant === undefined ? sql`` : sql`and lane.tenant_id = ${tenant}`;
  const waiting = await tx.all<Alone>(
    sql`select line.seq, line.lane_seq, line.waits_key as name, lane.queue
      from daybook_line line ${indexedBy("jobs_waiting")} cross join daybook_lane lane
      where line.status = 'waiting' and line.waits_key is not null and line.waits_for = 'alone'
        and lane.seq = line.lane_seq ${isOwn} and lane.paused_at is null and not exists (select 1 from daybook_paused_name paused
          where paused.tenant_id = lane.tenant_id and paused.name = line.waits_key)
      order by line.waits_key, line.lane_seq, line.priority desc, line.position, line.seq
      limit ${limits.claimParkedMax}`,
  );
  return waiting.find((job) => hosts.has(job.name) && (queues === null || queues.has(job.queue)));
}

async function enter(tx: Tx, asked: Asked, next: readonly number[]): Promise<{ batch: Batch; gates: Gate[] }> {
  // On PostgreSQL both are on the way at the same time.
  const [{ gates, contended }, paused] = await Promise.all([
    enterLanes(tx, next),
    next.length === 0 ? new Set<string>() : pausedNames(tx),
  ]);
  const found = { ...noClaim(), contended };
  return { batch: { ...asked, paused, permits: undefined, found }, gates };
}

/** The names that are paused, each after its tenant. */
async function pausedNames(tx: Tx): Promise<Set<string>> {
  const rows = await tx.all<{ tenant_id: string; name: string }>(sql`select tenant_id, name
    from daybook_paused_name paused_name`);
  return new Set(rows.map((row) => `${row.tenant_id}\n${row.name}`));
}

function toClaim({ found }: Batch, gates: readonly Gate[], { more, looked }: Pick<Claim, "more" | "looked">): Claim {
  // Lanes alternate, each in its own order: the first of one does not wait for all of another.
  const jobs = inTurn([...Map.groupBy(found.jobs, (job) => job.lane_seq).values()]);
  return { ...found, jobs, more: more || found.contended, looked, opensAt: nextOpening(gates) };
}

function roomLeft({ want, found }: Batch): number {
  return found.parked >= limits.claimParkedMax ? 0 : want - found.jobs.length;
}

/** Takes up to `share` jobs of one lane; true when it may have more. */
async function claimFromLane(tx: Tx, batch: Batch, gate: Gate, share: number): Promise<boolean> {
  const room = Math.min(share, roomLeft(batch), gate.room);
  if (room <= 0) return false;
  const found = await firstInLine(tx, gate.lane.seq, room);
  const changed = await takeFrom(tx, batch, gate, found);
  return found.length === room && changed > 0;
}

/** The first `most` of a lane. No other claim takes them until the transaction ends. */
async function firstInLine(tx: Tx, lane: number, most: number): Promise<Startable[]> {
  // Beside any other index on status SQLite would sort the whole backlog for each claim, so the index is pinned. A place
  // is unique within a lane and priority (J7), so `priority desc, position, seq` is the whole order.
  return tx.all<Startable>(sql`select ${startableColumns}
    from daybook_line line ${indexedBy("jobs_to_claim")} cross join daybook_job job
    where line.status = 'queued' and line.lane_seq = ${lane} and job.seq = line.seq
    order by line.priority desc, line.position, line.seq limit ${most} ${skipLockedOf("line")}`);
}

/** Takes those of the lane's candidates that may run, and parks the others. Says how many left the line. */
async function takeFrom(tx: Tx, batch: Batch, gate: Gate, found: readonly Startable[]): Promise<number> {
  const limited = found.filter((job) => job.limits !== null);
  const busy = limited.length === 0 ? nothingBusy : await tryNames(tx, limitNames(limited));
  const taken: Startable[] = [];
  const permits: Permit[] = [];
  const parked: (Candidate & Parked)[] = [];
  for (const job of found) {
    // Only limits and orders are looked up in the book; without them nothing is awaited, because every await costs each job.
    const isBusy = busy.size > 0 && limitNames([job]).some((name) => busy.has(name));
    const asked = isBusy ? "contended" : decide(tx, batch, job);
    const verdict = asked instanceof Promise ? await asked : asked;
    if (verdict === "contended") batch.found.contended = true;
    else if ("waits_for" in verdict) parked.push(Object.assign(job, verdict));
    else {
      taken.push(job);
      permits.push(...verdict);
    }
  }
  await parkAll(tx, batch, parked);
  batch.found.jobs.push(...(await start(tx, batch, gate.lane.queue, taken)));
  if (permits.length > 0) await writePermits(tx, permits);
  await countStarts(tx, gate, taken.length);
  return taken.length + parked.length;
}

/** From here on they run, and are this session's. */
export async function start(tx: Tx, by: Starter, queue: string, jobs: Startable[]): Promise<ClaimedJob[]> {
  if (jobs.length === 0) return [];
  for (const job of jobs) {
    job.run_id = tx.ids();
    job.queue = queue;
    by.attempted.push(job);
  }
  await take(tx, by.claimer.sessionSeq, jobs);
  // A key that is taken only while its job is queued is free from here on.
  const freed = jobs.filter((job) => job.key_scope === "queued").map((job) => job.seq);
  if (freed.length > 0) await tx.run(sql`delete from daybook_job_key where job_seq ${anyOf("integer", freed)}`);
  return jobs;
}

// What is parked may have come to the front because a slot was free; if it waits for something else, the slot is the
// next one's. And the workers that run its name should know that it is there.
async function parkAll(tx: Tx, batch: Batch, parked: readonly (Candidate & Parked)[]): Promise<void> {
  if (parked.length === 0) return;
  await park(tx, parked);
  const { found, claimer } = batch;
  found.parked += parked.length;
  await passOn(tx, parked);
  for (const job of parked) {
    if (job.waits_for === "time") found.parkedForTime = true;
    if (job.waits_for === "alone") found.leftAlone = true;
    // The others know of no such time yet, and we may have our hands full when it comes.
    if (job.waits_for === "time" && job.waits_key === null) tx.wake(jobsChannel);
    if (job.waits_for === "host" && !claimer.hosts.has(job.name)) tx.wake(hostChannel);
  }
}

type Verdict = readonly Permit[] | Parked;
const noPermits: readonly Permit[] = [];
const nothingBusy: ReadonlySet<string> = new Set();

function decide(tx: Tx, batch: Batch, job: Candidate): Verdict | Promise<Verdict> {
  const { seq, name, available_at } = job;
  if (!batch.claimer.hosts.has(name) || (batch.paused.size > 0 && batch.paused.has(`${job.tenant_id}\n${name}`))) {
    return { seq, waits_for: "host", waits_key: name, available_at };
  }
  if (runsAlone(job) && !batch.alone) return { seq, waits_for: "alone", waits_key: name, available_at };
  return job.limits === null && job.limit_key === null ? noPermits : decideLimited(tx, batch, job);
}

async function decideLimited(tx: Tx, batch: Batch, job: Candidate): Promise<Verdict> {
  const { seq, available_at, tenant_id: tenant } = job;
  if (job.kind !== null && job.limit_key !== null) {
    const waits = await kindOf(batch.claimer, job).mustWait(tx, job);
    const order = waitsKey({ tenant, waitsFor: "order", key: job.limit_key });
    if (waits === true) return { seq, waits_for: "order", waits_key: order, available_at };
    if (waits !== false) return { seq, waits_for: "time", waits_key: null, available_at: waits.until };
  }
  batch.permits ??= createPermits(tx);
  const permits = job.limits === null ? noPermits : await batch.permits.take(job);
  if (!("waitsFor" in permits)) return permits;
  const { waitsFor, key, until } = permits;
  return { seq, waits_for: waitsFor, waits_key: waitsKey({ tenant, waitsFor, key }), available_at: until };
}

async function readCandidate(tx: Tx, seq: number): Promise<Startable[]> {
  return tx.all<Startable>(sql`select ${startableColumns} from daybook_line line cross join daybook_job job
    where line.seq = ${seq} and job.seq = line.seq`);
}

/** What a claim has taken for this session whose commit was not confirmed. On PostgreSQL it may still be under way: its locks make
 *  us wait. */
export async function recallClaim(tx: Tx, by: Claimer, attempted: readonly Claimed[]): Promise<ClaimedJob[]> {
  if (!(await isAlive(tx, by.sessionSeq))) return [];
  if (tx.dialect === "postgres") {
    const seqs = attempted.map(({ seq }) => seq);
    await tx.all(sql`select seq from daybook_line where seq ${anyOf("integer", seqs)} order by seq for update`);
  }
  const taken = await tx.all<ClaimedJob>(sql`select ${candidateColumns}, line.run_id, line.lane_seq,
      (select queue from daybook_lane lane where lane.seq = line.lane_seq) as queue
    from ${rowSet("v", { seq: "integer", run_id: "text" }, attempted)} cross join daybook_line line cross join daybook_job job
    where line.seq = v.seq and line.run_id = v.run_id and job.seq = line.seq`);
  return taken.sort((a, b) => a.seq - b.seq);
}

/** `alone` counts losses among others. After the first a job is tried again as it was, because most losses are not
 *  its fault; after the second it runs alone, so that only it can be to blame for the next. */
export const lostTwice = 2;

export function runsAlone({ alone }: Pick<JobRow, "alone">): boolean {
  return alone === lostTwice;
}
