// Fires what is due: reads the schedules that are due, decides their slots, and writes decisions, jobs or events, and cursors in
// one transaction. On PostgreSQL other processes skip the rows that this one has locked; the unique slot is the last guard. When a
// job of a schedule ends, failures in a row may pause the schedule, and the next queued job may go.
//
// The order of locks on PostgreSQL: jobs, then schedules by their numbers. A transaction that ends jobs holds them and waits for
// their schedules; so one that fires holds schedules and never waits, neither for a schedule nor for a job.
import { DaybookError } from "../core/error.ts";
import { killPoint } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { rowSet, skipLocked, anyOf, skipLockedOf, forUpdate } from "../storage/word.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import type { Prepared } from "../jobs/define.ts";
import { jobsChannel, type JobRow } from "../jobs/job.ts";
import { plainKind, type Ports, type ToSay, type Ended, type JobEnded, type JobKind } from "../jobs/kind.ts";
import { cancelJob } from "../jobs/settle/cancel.ts";
import { park, queueOne } from "../jobs/state.ts";
import { waitsKey, release } from "../jobs/wait/park.ts";
import { newJob, insertJobs, type NewJob } from "../jobs/enqueue.ts";
import { decide, type Fire } from "./decide.ts";
import { undecided, decisionRow, insertDecisions, skipped, type DecisionRow } from "./decision.ts";
import { nextFireAt, readTiming, scheduleKind, schedulesChannel } from "./schedule.ts";
import type { DecisionKind, FireInfo, ScheduleRow } from "./schedule.ts";
import { targetOf, type Target } from "./target.ts";

type Written = { decisions: DecisionRow[]; jobs: NewJob[]; rows: ScheduleRow[] };

/** Fires the schedules that are due, at most some hundred; true when there may be more. */
export async function fireDue(tx: Tx, ports: Ports, { only }: { only?: number } = {}): Promise<boolean> {
  const which = only === undefined ? sql`` : sql`and seq = ${only}`;
  const due = await tx.all<ScheduleRow>(sql`select * from daybook_schedule where next_at <= ${tx.now} ${which}
    order by next_at limit ${limits.schedulesPerTickMax} ${skipLocked}`);
  if (due.length === 0) return false;
  const { busy, putOff } = await openFires(tx, due);
  const written: Written = { decisions: [], jobs: [], rows: [] };
  let full = false;
  for (const row of due) {
    if (putOff.has(row.seq)) continue;
    // The next look decides the rest.
    full = written.decisions.length >= limits.decisionsPerTickMax;
    if (full) break;
    const whole = readTiming(row);
    if ("unreadable" in whole) {
      // A timing that this machine cannot read must not stop the others: the schedule pauses and says why.
      written.rows.push({ ...row, paused_at: tx.now, paused_note: whole.unreadable, next_at: null });
      continue;
    }
    const timing = await undecided(tx, row, whole);
    const plan = decide(row, timing, tx.now);
    for (const each of plan.skips) written.decisions.push(skipped(tx, row, each));
    const pausedNote = await fireAll(tx, ports, row, plan.fires, busy, written);
    const next: ScheduleRow = {
      ...row,
      cursor_at: plan.cursorAt,
      ...(pausedNote === null ? {} : { paused_at: tx.now, paused_note: pausedNote }),
    };
    written.rows.push({ ...next, next_at: nextFireAt(next, timing) });
  }
  await write(tx, written);
  await tellSkipped(tx, ports, due, written.decisions);
  if (full || due.length >= limits.schedulesPerTickMax) return true;
  return written.rows.some((row) => (row.next_at ?? tx.now + 1) <= tx.now);
}

async function tellSkipped(tx: Tx, { announce }: Ports, rows: ScheduleRow[], decisions: DecisionRow[]): Promise<void> {
  for (const decision of decisions) {
    if ((decision.job_id ?? decision.event_id) !== null) continue;
    const { slot_at: at, until_at: until, slots, kind, note, schedule_seq: seq } = decision;
    const schedule = rows.find((row) => row.seq === seq)?.name;
    if (schedule === undefined) continue;
    const payload = { schedule, at, until, slots, kind, note };
    const fact = { topic: "schedule.skipped", payload, key: schedule, inOrder: true } as const;
    await announce?.tell(tx, decision.tenant_id, fact);
  }
}

/** Makes the jobs, or publishes the events, of these slots, and counts them in `row`. Returns why the schedule must pause, or null. */
async function fireAll(
  tx: Tx,
  ports: Ports,
  row: ScheduleRow,
  fires: readonly Fire[],
  busy: Map<number, string[]>,
  written: Written,
): Promise<string | null> {
  for (const fire of fires) {
    if (row.max_fires !== null && row.fires >= row.max_fires) return null;
    const open = busy.get(row.seq) ?? [];
    if (open.length > 0 && row.overlap === "skip" && !inLine(row, fire)) {
      written.decisions.push(refusedFire(tx, row, fire, "skipped_overlap", `job ${open.at(-1)} has not ended`));
      continue;
    }
    const target = await targetOf(tx, row);
    if ("refused" in target) {
      written.decisions.push(refusedFire(tx, row, fire, "skipped_paused", target.refused));
      return target.refused;
    }
    if (open.length > 0 && row.overlap === "cancel") {
      for (const id of open) await cancelJob(tx, ports, id, row.tenant_id);
    }
    const waits = open.length > 0 && (row.overlap === "queue" || inLine(row, fire));
    const fired = await fireSlot(tx, ports, row, { fire, target, waits, jobs: written.jobs });
    written.decisions.push({ ...decisionOf(tx, row, fire), ...fired });
    if (fired.job_id !== null) {
      busy.set(row.seq, row.overlap === "cancel" ? [fired.job_id] : [...open, fired.job_id]);
    }
    Object.assign(row, { fires: row.fires + 1, last_fired_at: tx.now });
  }
  return null;
}

// Slots that are caught up are made at the same moment, with those that are due just now, and with "skip" each would make the next
// one be skipped. A schedule that asked for all of them wants each, so they run one after another.
function inLine({ overlap }: ScheduleRow, { kind, behindMissed }: Fire): boolean {
  return overlap === "skip" && (kind === "caught_up" || behindMissed);
}

type Fired = Pick<DecisionRow, "job_id" | "event_id">;
type Firing = { readonly fire: Fire; readonly target: Target; readonly waits?: boolean; readonly jobs: NewJob[] };

/** Publishes the event of one slot, or adds its job to `jobs`. */
export async function fireSlot(tx: Tx, ports: Ports, row: ScheduleRow, firing: Firing): Promise<Fired> {
  const { fire, target, waits = false, jobs } = firing;
  if ("said" in target) return { job_id: null, event_id: await sayFor(tx, ports, row, fire, target.said) };
  const job = await jobFor(tx, row, fire, target.prepared);
  const order = { tenant: row.tenant_id, waitsFor: "order", key: row.id } as const;
  const waiting = { status: "waiting", waits_for: "order", waits_key: waitsKey(order) } as const;
  jobs.push(waits ? { ...job, ...waiting } : job);
  return { job_id: job.id, event_id: null };
}

async function jobFor(tx: Tx, row: ScheduleRow, fire: Fire, prepared: Prepared): Promise<NewJob> {
  const about: FireInfo = {
    name: row.name,
    nominalAt: fire.slot.at,
    firedAt: tx.now,
    lateMs: Math.max(0, fire.lateMs),
    reason: fire.kind,
    missed: fire.missed,
  };
  return {
    ...newJob(tx, await laneOf(tx, row.tenant_id, prepared.queue), prepared),
    tenant_id: row.tenant_id,
    kind: scheduleKind,
    kind_seq: row.seq,
    registration: prepared.registration ?? row.name,
    about: JSON.stringify({ schedule: about }),
  };
}

// The headers of the event say which slot it is of, as `job.schedule` does for a job.
async function sayFor(tx: Tx, { announce }: Ports, row: ScheduleRow, fire: Fire, said: ToSay): Promise<string> {
  if (announce === undefined) throw new DaybookError("internal", "this process has no room of events: report it");
  return announce.say(tx, row.tenant_id, said, {
    schedule: row.name,
    slot: isoTime(fire.slot.at),
    reason: fire.kind,
  });
}

function decisionOf(tx: Tx, row: ScheduleRow, { slot, kind, missed }: Fire): DecisionRow {
  const note = missed > 0 ? `${missed} before it were missed` : null;
  return decisionRow(tx, row, { slot_at: slot.at, kind, local: slot.local, note });
}

function refusedFire(tx: Tx, row: ScheduleRow, fire: Fire, kind: DecisionKind, note: string): DecisionRow {
  return { ...decisionOf(tx, row, fire), kind, note };
}

const rowColumns = {
  seq: "integer",
  cursor_at: "integer",
  next_at: "integer",
  fires: "integer",
  last_fired_at: "integer",
  paused_at: "integer",
  paused_note: "text",
} as const;

export async function insertFires(tx: Tx, { decisions, jobs }: Pick<Written, "decisions" | "jobs">): Promise<void> {
  await insertDecisions(tx, decisions);
  killPoint("schedules.decided");
  if (jobs.length === 0) return;
  await insertJobs(tx, jobs);
  tx.wake(jobsChannel);
}

async function write(tx: Tx, written: Written): Promise<void> {
  await insertFires(tx, written);
  killPoint("schedules.fired");
  await tx.run(sql`update daybook_schedule as schedule set cursor_at = v.cursor_at, next_at = v.next_at, fires = v.fires,
      last_fired_at = v.last_fired_at, paused_at = v.paused_at, paused_note = v.paused_note
    from ${rowSet("v", rowColumns, written.rows)} where schedule.seq = v.seq`);
}

/** The open jobs of schedules, which a new slot may overlap with. */
type OpenFires = {
  /** By the schedule's number: the ids of its open jobs, oldest first, retries included. */
  readonly busy: Map<number, string[]>;
  /** Schedules whose open jobs should be cancelled while another transaction has one of those jobs locked. That transaction may
   *  wait for the schedule that this one holds, so this one does not wait for the job: the next look decides the slot. */
  readonly putOff: ReadonlySet<number>;
};

async function openFires(tx: Tx, rows: readonly ScheduleRow[]): Promise<OpenFires> {
  const busy = new Map<number, string[]>();
  const putOff = new Set<number>();
  const asked = rows.filter((row) => row.overlap !== "allow");
  for (const tenant of new Set(asked.map((row) => row.tenant_id))) {
    const own = asked.filter((row) => row.tenant_id === tenant);
    for (const { kind_seq, id } of await read(tx, tenant, own, false)) {
      busy.set(kind_seq, [...(busy.get(kind_seq) ?? []), id]);
    }
    const cancelling = own.filter((row) => row.overlap === "cancel" && busy.has(row.seq));
    if (cancelling.length === 0) continue;
    const ours = new Set((await read(tx, tenant, cancelling, true)).map(({ id }) => id));
    for (const { seq } of cancelling) {
      const open = busy.get(seq) ?? [];
      if (open.some((id) => !ours.has(id))) putOff.add(seq);
    }
  }
  return { busy, putOff };
}

async function read(
  tx: Tx,
  tenant: string,
  rows: readonly ScheduleRow[],
  locking: boolean,
): Promise<{ kind_seq: number; id: string }[]> {
  const seqs = rows.map((row) => row.seq);
  return tx.all(sql`select line.kind_seq, job.id from daybook_line line cross join daybook_job job
    where line.kind = ${scheduleKind} and line.kind_seq ${anyOf("integer", seqs)} and line.kind is not null
      and job.seq = line.seq and job.tenant_id = ${tenant} order by line.seq ${locking ? skipLockedOf("line") : sql``}`);
}

type Row = Pick<ScheduleRow, "seq" | "id" | "failures" | "pause_after" | "paused_at">;

/** Locks the schedules of a batch of ended jobs, before the first of them needs its own. */
async function lockSchedules(tx: Tx, seqs: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await tx.all(sql`select seq from daybook_schedule where seq ${anyOf("integer", seqs)} order by seq ${forUpdate}`);
}

/** The jobs that schedules make, as a kind. */
export const fires: JobKind = {
  ...plainKind,
  ended: scheduledJobEnded,
  lock: lockSchedules,
  order: { behind: "It comes after the one that was made before it, by the order of its schedule", instead: null },
};

async function scheduledJobEnded(tx: Tx, ended: readonly Ended[]): Promise<void> {
  for (const { job, outcome } of ended) if (outcome.retriedBy === null) await chainEnded(tx, job, outcome);
}

async function chainEnded(tx: Tx, job: JobRow, { status }: JobEnded): Promise<void> {
  const row = await tx.get<Row>(sql`select seq, id, failures, pause_after, paused_at from daybook_schedule
    where seq = ${job.kind_seq} ${forUpdate}`);
  if (row === undefined) return;
  await letNextGo(tx, job, row.id);
  if (row.pause_after === null || (status !== "failed" && status !== "completed")) return;
  const failures = status === "failed" ? row.failures + 1 : 0;
  const pauses = row.paused_at === null && failures >= row.pause_after;
  if (failures === row.failures) return;
  await tx.run(sql`update daybook_schedule set failures = ${failures} where seq = ${row.seq}`);
  if (!pauses) return;
  await tx.run(sql`update daybook_schedule set paused_at = ${tx.now}, next_at = null,
      paused_note = ${`${failures} jobs in a row failed, the last one was ${job.id}`} where seq = ${row.seq}`);
  tx.wake(schedulesChannel);
}

type Next = { readonly seq: number; readonly lane_seq: number; readonly available_at: number };

// Whatever the policy is now: the jobs that wait were made while it was "queue". A waiting job that is cancelled ends too, and
// then the running one still goes on.
async function letNextGo(tx: Tx, job: JobRow, scheduleId: string): Promise<void> {
  const order = { tenant: job.tenant_id, waitsFor: "order", key: scheduleId } as const;
  const next = await tx.get<Next>(sql`select seq, lane_seq, available_at from daybook_line
    where kind = ${scheduleKind} and kind_seq = ${job.kind_seq} and kind is not null
      and waits_for = 'order' and waits_key = ${waitsKey(order)} order by seq limit 1`);
  if (next === undefined) return;
  const ahead = await tx.get(sql`select seq from daybook_line
    where kind = ${scheduleKind} and kind_seq = ${job.kind_seq} and kind is not null and seq <> ${job.seq} and (waits_for is null or waits_for <> 'order') limit 1`);
  if (ahead !== undefined) return;
  // Behind a job that was held in a copy of the book, the next one is held too.
  if (job.waits_for === "release") {
    return park(tx, [{ ...next, waits_for: "release", waits_key: scheduleKind }]);
  }
  if ((await release(tx, order, 1, [next.lane_seq])) > 0) return;
  // Another transaction has it locked, to move or edit it. Wait for it: no sweep would release it later.
  if (await queueOne(tx, next.seq, "order")) tx.wake(jobsChannel);
}
