// Claim: takes the jobs that come first, lane by lane in turn, and makes them this session's. The open run is the
// job's own row, so from here on "running" and "has a run" are one fact.
//
//   lanes in turn ──► gates ──► candidates in order ──► take; park what cannot run; leave what must run alone
import { limits } from "../core/limits.ts";
import type { Tx } from "../storage/store.ts";
import { firstInLine, type Candidate } from "./candidate.ts";
import { enterLanes } from "./enter-lanes.ts";
import { passOn } from "./free-slots.ts";
import { countStarts, nextOpening, readGates, takeLaneSlot, type Gate } from "./gate.ts";
import type { JobHooks } from "./hooks.ts";
import { hostChannel, jobsChannel } from "./job.ts";
import { nextLanes } from "./lane.ts";
import type { Reserved } from "./direct/claim-reserved.ts";
import { createSlots, lockNames, tryLimits, type Slots } from "./limit.ts";
import { park, type Parked } from "./park.ts";
import { pausedNames } from "./pause.ts";
import { take, type Claimed, type ClaimedJob } from "./take.ts";

export type { Claimed, ClaimedJob } from "./take.ts";

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
  /** It serves one reservation, and nothing else. */
  readonly reserved?: Reserved;
  /** What the rooms above say of jobs that keep an order. */
  readonly mustWait?: JobHooks["mustWait"];
};

export type Claim = {
  readonly jobs: readonly ClaimedJob[];
  /** A job that must run alone was left, because others run here. */
  readonly leftAlone: boolean;
  /** There may be more that this claim did not get to. */
  readonly more: boolean;
  /** How many were found unable to run, and parked. */
  readonly parked: number;
  /** The last lane that has something in line was passed or reached. */
  readonly wentRound: boolean;
  /** Another claimer was just counting one of our limits; what it names was left in line. */
  readonly contended: boolean;
  /** A lane was seen to its end, and what another transaction holds was passed by: on PostgreSQL it may be there again. */
  readonly passedBy: boolean;
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
  passedBy: boolean;
};

/** Takes at most `want` jobs for this session. Two sessions never receive the same one: SQLite has one writer, and
 *  PostgreSQL skips rows that another session has locked. `idle` says that nothing runs here, so that a job which must
 *  run alone may be taken; `mayDrain`, that one which cannot be taken yet is waited for; `attempted` gets what is
 *  taken, also when the commit's fate stays unknown. May return fewer, or none. */
export async function claim(
  tx: Tx,
  claimer: Claimer,
  want: number,
  { idle, attempted, mayDrain = false }: { idle: boolean; attempted: Claimed[]; mayDrain?: boolean },
): Promise<Claim> {
  const from = claimer.cursor;
  const { lanes: next, last, more, wentRound } = await nextLanes(tx, claimer, limits.claimLanesMax);
  // On PostgreSQL both are on the way at the same time.
  const [{ lanes, contended }, paused] = await Promise.all([enterLanes(tx, next), pausedIn(tx, next)]);
  const gates = await readGates(tx, lanes);
  const batch: Batch = {
    ...{ claimer, want, idle, attempted, mayDrain, paused, slots: createSlots(tx), jobs: [], parked: 0 },
    ...{ parkedForTime: false, leftAlone: false, tookAlone: false, contended, passedBy: false },
  };
  batch.contended ||= gates.some((gate) => gate.contended);
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
  // Beside another turn it goes on from where that one came to: one that is late must not carry it past the lanes between.
  if (claimer.cursor === from) claimer.cursor = batch.jobs.at(-1)?.lane_seq ?? last;
  return {
    jobs: inTurn(batch.jobs),
    leftAlone: batch.leftAlone,
    more: pass.length > 0 || more || batch.contended || batch.tookAlone,
    ...{ parked: batch.parked, wentRound, contended: batch.contended },
    // What must run alone was seen, and left: it would be seen again.
    passedBy: batch.passedBy && !batch.leftAlone,
    opensAt: nextOpening(gates),
    parkedForTime: batch.parkedForTime,
  };
}

async function pausedIn(tx: Tx, lanes: readonly unknown[]): Promise<ReadonlySet<string>> {
  return lanes.length === 0 ? new Set() : pausedNames(tx);
}

function roomLeft(batch: Batch): number {
  if (batch.tookAlone || batch.parked >= limits.claimParkedMax) return 0;
  if (batch.leftAlone && batch.mayDrain) return 0;
  return batch.want - batch.jobs.length;
}

/** Takes up to `share` jobs of one lane; true when it may have more. */
async function claimFromLane(tx: Tx, batch: Batch, gate: Gate, share: number): Promise<boolean> {
  const room = Math.min(share, roomLeft(batch), gate.room);
  if (room <= 0) return false;
  const found = await candidates(tx, batch, gate.lane.seq, room);
  if (found.length < room && tx.dialect === "postgres") batch.passedBy = true;
  const busy = await tryLimits(tx, lockNames(found));
  const taken: (Candidate & Slots)[] = [];
  const parked: (Candidate & Parked)[] = [];
  for (const job of found) {
    // Only limits and orders are looked up in the book; without them nothing is awaited, because every await costs each job.
    const asked =
      busy.size > 0 && isNamed(busy, job) ? "contended" : decide(tx, batch, job, { gate, taken: taken.length });
    const verdict = asked instanceof Promise ? await asked : asked;
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
    // The others know of no such time yet, and we may have our hands full when it comes.
    if (job.waits_for === "time" && job.waits_key === null) tx.wake(jobsChannel);
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

// One that must run alone and cannot now must not keep those behind it from running.
async function candidates(tx: Tx, batch: Batch, lane: number, most: number): Promise<Candidate[]> {
  const first = await firstInLine(tx, lane, most, "all");
  const alone = first.findIndex((job) => job.alone !== 0);
  if (alone < 0 || (batch.idle && batch.jobs.length === 0)) return first;
  batch.leftAlone = true;
  // What runs here is about to be waited for, so no more is put beside it than stands in front.
  return batch.mayDrain ? first.slice(0, alone) : firstInLine(tx, lane, most, "together");
}

type Verdict = Slots | Parked | "leave";

function decide(
  tx: Tx,
  batch: Batch,
  job: Candidate,
  { gate, taken }: { readonly gate: Gate; readonly taken: number },
): Verdict | Promise<Verdict> {
  const { seq, name, available_at } = job;
  if (!batch.claimer.hosts.has(name) || (batch.paused.size > 0 && batch.paused.has(`${job.tenant_id}\n${name}`))) {
    return { seq, waits_for: "host", waits_key: name, available_at };
  }
  if (job.alone === 1 && (!batch.idle || batch.jobs.length + taken > 0)) return "leave";
  if (job.limits !== null || job.limit_key !== null) return takeSlots(tx, batch, job, gate);
  batch.tookAlone = job.alone === 1;
  return { name_slot: null, key_slot: null, lane_slot: takeLaneSlot(gate) };
}

async function takeSlots(tx: Tx, batch: Batch, job: Candidate, gate: Gate): Promise<Slots | Parked> {
  const { seq, available_at } = job;
  if (job.kind !== null && job.limit_key !== null) {
    const waits = (await batch.claimer.mustWait?.[job.kind]?.(tx, job)) ?? false;
    if (waits === true) return { seq, waits_for: "order", waits_key: job.limit_key, available_at };
    if (waits !== false) return { seq, waits_for: "time", waits_key: null, available_at: waits.until };
  }
  const slots = job.limits === null ? { name_slot: null, key_slot: null } : await batch.slots.take(job, gate.lane);
  if ("waitsFor" in slots) return { seq, waits_for: slots.waitsFor, waits_key: slots.key, available_at: slots.until };
  batch.tookAlone = job.alone === 1;
  return { ...slots, lane_slot: takeLaneSlot(gate) };
}
