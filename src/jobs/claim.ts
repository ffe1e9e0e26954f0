// Claim: takes the jobs that come first, lane by lane in turn, and makes them this session's. The open run is the
// job's own row, so from here on "running" and "has a run" are one fact.
//
//   lanes in turn ──► gates ──► candidates in order ──► take; park what cannot run; leave what must run alone
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy, rowSet, skipLocked } from "../storage/word.ts";
import { passOn } from "./free-slots.ts";
import { countStarts, nextOpening, readGates, takeLaneSlot, type Gate } from "./gate.ts";
import { hostChannel, type JobRow } from "./job.ts";
import { lanesInTurn, type LaneRow } from "./lane.ts";
import { createSlots, lockNames, tryLimits, type Slots } from "./limit.ts";
import { park, type Parked } from "./park.ts";

/** Who claims, and what it remembers between claims. */
export type Claimer = {
  readonly sessionSeq: number;
  /** The names this process runs. */
  readonly hosts: ReadonlySet<string>;
  /** The queues it serves; null means all. */
  readonly queues: ReadonlySet<string> | null;
  /** The lane that was served last; the next claim begins behind it. */
  cursor: number;
  /** Per name, the tenant whose jobs were last released because they have a host now. */
  readonly hostCursors: Map<string, string>;
};

type Candidate = Pick<
  JobRow,
  | ("seq" | "id" | "tenant_id" | "name" | "params" | "attempt" | "attempts" | "timeout_ms" | "available_at" | "alone")
  | ("losses_max" | "cause_run_id" | "root_run_id" | "created_at" | "tags" | "limits" | "limit_key")
>;

export type ClaimedJob = Candidate & { readonly run_id: string; readonly lane_seq: number; readonly queue: string };

/** A job that was claimed, and the run id that proves it. */
export type Claimed = { readonly seq: number; readonly run_id: string };

export type Claim = {
  readonly jobs: readonly ClaimedJob[];
  /** A job that must run alone was left, because others run here. */
  readonly leftAlone: boolean;
  /** There may be more that this claim did not get to. */
  readonly more: boolean;
  /** When a lane that its rate closed opens again. */
  readonly opensAt: number | null;
  /** A job was parked until a time, so the next due time may have changed. */
  readonly parkedForTime: boolean;
};

type Batch = {
  readonly claimer: Claimer;
  readonly want: number;
  readonly idle: boolean;
  readonly mayDrain: boolean;
  readonly paused: ReadonlySet<string>;
  readonly slots: ReturnType<typeof createSlots>;
  readonly jobs: ClaimedJob[];
  readonly attempted: Claimed[];
  parked: number;
  parkedForTime: boolean;
  leftAlone: boolean;
  tookAlone: boolean;
  /** Another claimer is just counting one of our limits; what it names was left in line. */
  contended: boolean;
};

/** Takes at most `want` jobs for this session. Two sessions never receive the same one: SQLite has one writer, and
 *  PostgreSQL skips rows that another session has locked. `idle` says that nothing runs here, so that a job which must
 *  run alone may be taken; `mayDrain`, that one which cannot be taken yet is waited for; `attempted` gets what is taken, also when the commit's fate stays unknown. May return fewer,
 *  or none. */
export async function claim(
  tx: Tx,
  claimer: Claimer,
  want: number,
  { idle, attempted, mayDrain = false }: { idle: boolean; attempted: Claimed[]; mayDrain?: boolean },
): Promise<Claim> {
  const { lanes, last, more } = await nextLanes(tx, claimer);
  const gates = await readGates(tx, lanes);
  const paused = gates.every((gate) => gate.room <= 0) ? new Set<string>() : await pausedNames(tx);
  const batch: Batch = {
    ...{
      claimer,
      want,
      idle,
      attempted,
      mayDrain,
      paused,
      slots: createSlots(tx),
      jobs: [],
      parked: 0,
      parkedForTime: false,
    },
    ...{ leftAlone: false, tookAlone: false, contended: gates.some((gate) => gate.contended) },
  };
  // Every lane gets its share; what some do not need goes to the others in the next pass.
  let pass = gates.filter((gate) => gate.room > 0);
  while (pass.length > 0 && roomLeft(batch) > 0) {
    const share = Math.ceil(roomLeft(batch) / pass.length);
    const hasMore: Gate[] = [];
    for (const gate of pass) {
      if (roomLeft(batch) > 0 && (await claimFromLane(tx, batch, gate, share))) hasMore.push(gate);
    }
    pass = hasMore;
  }
  claimer.cursor = batch.jobs.at(-1)?.lane_seq ?? last;
  return {
    jobs: inTurn(batch.jobs),
    leftAlone: batch.leftAlone,
    more: pass.length > 0 || more || batch.contended || batch.tookAlone,
    opensAt: nextOpening(gates),
    parkedForTime: batch.parkedForTime,
  };
}

function roomLeft(batch: Batch): number {
  if (batch.tookAlone || batch.parked >= limits.claimParkedMax) return 0;
  if (batch.leftAlone && batch.mayDrain) return 0;
  return batch.want - batch.jobs.length;
}

/** Up to a round of lanes that have something in line; `last` is where the next look goes on, also when none of them is
 *  ours to serve. */
async function nextLanes(
  tx: Tx,
  { cursor, queues }: Claimer,
): Promise<{ lanes: LaneRow[]; last: number; more: boolean }> {
  const most = limits.claimLanesMax;
  const ahead = await lanesInTurn(tx, cursor, most);
  const around = ahead.length < most && cursor > 0 ? await lanesInTurn(tx, 0, most - ahead.length) : [];
  const all = [...ahead, ...around.filter((lane) => lane.seq <= cursor)];
  const lanes = queues === null ? all : all.filter((lane) => queues.has(lane.queue));
  return { lanes, last: all.at(-1)?.seq ?? 0, more: all.length === most };
}

/** Takes up to `share` jobs of one lane; true when it may have more. */
async function claimFromLane(tx: Tx, batch: Batch, gate: Gate, share: number): Promise<boolean> {
  const room = Math.min(share, roomLeft(batch), gate.room);
  if (room <= 0) return false;
  const found = await candidates(tx, batch, gate.lane.seq, room);
  const busy = await tryLimits(tx, lockNames(found));
  const taken: (Candidate & Slots)[] = [];
  const parked: (Candidate & Parked)[] = [];
  for (const job of found) {
    const verdict = busy.size > 0 && isNamed(busy, job) ? "contended" : await decide(batch, job, gate, taken.length);
    if (verdict === "leave") batch.leftAlone = true;
    else if (verdict === "contended") batch.contended = true;
    else if ("waits_for" in verdict) parked.push(Object.assign(job, verdict));
    else taken.push(Object.assign(job, verdict));
    if (batch.tookAlone) break;
  }
  await parkAll(tx, batch, parked);
  batch.jobs.push(...(await take(tx, batch.claimer, gate.lane, taken, batch.attempted)));
  await countStarts(tx, gate, taken.length);
  return found.length === room && taken.length + parked.length > 0;
}

function isNamed(busy: ReadonlySet<string>, job: Candidate): boolean {
  return lockNames([job]).some((name) => busy.has(name));
}

// What is parked may have come to the front because a slot was free; if it waits for something else, the slot is the
// next one's. And whoever runs its name should know that it is there.
async function parkAll(tx: Tx, batch: Batch, parked: readonly (Candidate & Parked)[]): Promise<void> {
  await park(tx, parked);
  batch.parked += parked.length;
  await passOn(tx, parked);
  for (const job of parked) {
    if (job.waits_for === "time") batch.parkedForTime = true;
    if (job.waits_for === "host" && !batch.claimer.hosts.has(job.name)) tx.wake(hostChannel);
  }
}

/** The jobs so that lanes alternate, each in its own order: the first of one does not wait for all of another. */
function inTurn(jobs: readonly ClaimedJob[]): readonly ClaimedJob[] {
  const lanes = Map.groupBy(jobs, (job) => job.lane_seq);
  if (lanes.size <= 1) return jobs;
  const turns: ClaimedJob[] = [];
  for (let place = 0; turns.length < jobs.length; place++) {
    for (const lane of lanes.values()) if (place < lane.length) turns.push(lane[place] as ClaimedJob);
  }
  return turns;
}

async function decide(batch: Batch, job: Candidate, gate: Gate, taken: number): Promise<Slots | Parked | "leave"> {
  const { seq, name, available_at } = job;
  if (!batch.claimer.hosts.has(name) || batch.paused.has(`${job.tenant_id}\n${name}`)) {
    return { seq, waits_for: "host", waits_key: name, available_at };
  }
  if (job.alone === 1 && (!batch.idle || batch.jobs.length + taken > 0)) return "leave";
  const slots = job.limits === null ? { name_slot: null, key_slot: null } : await batch.slots.take(job, gate.lane);
  if ("waitsFor" in slots) return { seq, waits_for: slots.waitsFor, waits_key: slots.key, available_at: slots.until };
  batch.tookAlone = job.alone === 1;
  return { ...slots, lane_slot: takeLaneSlot(gate) };
}

// One that must run alone and cannot now must not keep those behind it from running.
async function candidates(tx: Tx, batch: Batch, lane: number, most: number): Promise<Candidate[]> {
  const first = await firstInLine(tx, lane, most, everyone);
  if ((batch.idle && batch.jobs.length === 0) || first.every((job) => job.alone === 0)) return first;
  batch.leftAlone = true;
  // What runs here is about to be waited for, so no more is put beside it than stands in front.
  if (batch.mayDrain)
    return first.slice(
      0,
      first.findIndex((job) => job.alone !== 0),
    );
  return firstInLine(tx, lane, most, notAlone);
}

const everyone = sql``;
const notAlone = sql`and alone = 0`;

// Beside any other index on status SQLite would sort the whole backlog for each claim, so the index is pinned. A place is
// unique within a lane and priority (J7), so `priority desc, position, seq` is the whole order.
async function firstInLine(tx: Tx, lane: number, most: number, who: Sql): Promise<Candidate[]> {
  return tx.all<Candidate>(sql`select seq, id, tenant_id, name, params, attempt, attempts, timeout_ms, available_at,
      alone, losses_max, cause_run_id, root_run_id, created_at, tags, limits, limit_key
    from job ${indexedBy("jobs_to_claim")}
    where status = 'queued' and lane_seq = ${lane} ${who}
    order by priority desc, position, seq limit ${most} ${skipLocked}`);
}

async function take(
  tx: Tx,
  claimer: Claimer,
  lane: LaneRow,
  jobs: readonly (Candidate & Slots)[],
  attempted: Claimed[],
): Promise<ClaimedJob[]> {
  if (jobs.length === 0) return [];
  // The rows are ours alone, so they are filled in rather than copied: this runs once for every job.
  const rows = jobs.map((job) => Object.assign(job, { run_id: tx.ids(), lane_seq: lane.seq, queue: lane.queue }));
  for (const { seq, run_id } of rows) attempted.push({ seq, run_id });
  const columns = {
    seq: "integer",
    run_id: "text",
    name_slot: "integer",
    key_slot: "integer",
    lane_slot: "integer",
  } as const;
  // A key that is taken only while its job is queued is free from here on.
  await tx.run(sql`update job set status = 'running', run_id = v.run_id, session_seq = ${claimer.sessionSeq},
      started_at = ${tx.now}, timeout_at = ${tx.now} + timeout_ms, name_slot = v.name_slot, key_slot = v.key_slot,
      lane_slot = v.lane_slot, key_held = case when key_scope = 'queued' then null else key_held end
    from ${rowSet("v", columns, rows)} where job.seq = v.seq`);
  return rows;
}

async function pausedNames(tx: Tx): Promise<Set<string>> {
  const rows = await tx.all<{ tenant_id: string; name: string }>(sql`select tenant_id, name from paused_name`);
  return new Set(rows.map((row) => `${row.tenant_id}\n${row.name}`));
}
