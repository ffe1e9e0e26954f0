// Fires what is due: reads the schedules that are due, decides their slots, and writes decisions, jobs or events, and cursors in
// one transaction. On PostgreSQL other processes skip the rows that this one has locked; the unique slot is the last guard.
import { DaybookError } from "../core/error.ts";
import { killPoint } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { rowSet, skipLocked, anyOf, skipLockedOf } from "../storage/word.ts";
import { cancelJob } from "../jobs/settle/cancel.ts";
import { newJob, insertJobs, type NewJob } from "../jobs/enqueue.ts";
import { jobsChannel } from "../jobs/job.ts";
import type { Ports, ToSay } from "../jobs/kind.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import { waitsKey } from "../jobs/wait/park.ts";
import { decide, type Fire } from "./decide.ts";
import { undecided } from "./fired-ahead.ts";
import {
  nextFireAt,
  readTiming,
  scheduleKind,
  type DecisionKind,
  type FireInfo,
  type ScheduleRow,
} from "./schedule.ts";
import { targetOf, type Target } from "./target.ts";
import { decisionRow, insertDecisions, skipped, type DecisionRow } from "./write-decisions.ts";

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

async function tellSkipped(
  tx: Tx,
  ports: Ports,
  rows: readonly ScheduleRow[],
  decisions: readonly DecisionRow[],
): Promise<void> {
  for (const { job_id: job, event_id: event, tenant_id: tenant, schedule_seq: seq, ...decision } of decisions) {
    if ((job ?? event) !== null) continue;
    const { slot_at: at, until_at: until, slots, kind, note } = decision;
    const schedule = rows.find((row) => row.seq === seq)?.name ?? null;
    await ports.announce?.tell(tx, tenant, {
      topic: "schedule.skipped",
      payload: { schedule, at, until, slots, kind, note },
    });
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
    if ("said" in target) {
      const id = await sayFor(tx, ports, row, { fire, said: target.said });
      written.decisions.push({ ...decisionOf(tx, row, fire), event_id: id });
      Object.assign(row, { fires: row.fires + 1, last_fired_at: tx.now });
      continue;
    }
    const waits = open.length > 0 && (row.overlap === "queue" || inLine(row, fire));
    const job = await jobFor(tx, row, fire, target, waits);
    written.jobs.push(job);
    written.decisions.push({ ...decisionOf(tx, row, fire), job_id: job.id });
    busy.set(row.seq, row.overlap === "cancel" ? [job.id] : [...open, job.id]);
    Object.assign(row, { fires: row.fires + 1, last_fired_at: tx.now });
  }
  return null;
}

// Slots that are caught up are made at the same moment, and with "skip" each would make the next one be skipped. A schedule that
// asked for all of them wants each, so they run one after another.
function inLine({ overlap }: ScheduleRow, { kind }: Fire): boolean {
  return overlap === "skip" && kind === "caught_up";
}

export async function jobFor(
  tx: Tx,
  row: ScheduleRow,
  fire: Fire,
  target: Extract<Target, { prepared: unknown }>,
  waits: boolean,
): Promise<NewJob> {
  const about: FireInfo = {
    name: row.name,
    nominalAt: fire.slot.at,
    firedAt: tx.now,
    lateMs: Math.max(0, fire.lateMs),
    reason: fire.kind,
    missed: fire.missed,
  };
  const lane = await laneOf(tx, row.tenant_id, target.prepared.queue);
  const order = { tenant: row.tenant_id, waitsFor: "order", key: row.id } as const;
  return {
    ...newJob(tx, lane, target.prepared),
    ...(waits ? ({ status: "waiting", waits_for: "order", waits_key: waitsKey(order) } as const) : {}),
    tenant_id: row.tenant_id,
    kind: scheduleKind,
    kind_seq: row.seq,
    registration: target.prepared.registration ?? row.name,
    about: JSON.stringify({ schedule: about }),
  };
}

/** Publishes the event of this slot. Its headers say which slot that is, as `job.schedule` does for a job. */
export async function sayFor(
  tx: Tx,
  { announce }: Ports,
  { tenant_id: tenant, name }: ScheduleRow,
  { fire: { slot, kind }, said }: { readonly fire: Fire; readonly said: ToSay },
): Promise<string> {
  if (announce === undefined) throw new DaybookError("internal", "this process has no room of events: report it");
  return announce.say(tx, tenant, said, { schedule: name, slot: isoTime(slot.at), reason: kind });
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

async function write(tx: Tx, { decisions, jobs, rows }: Written): Promise<void> {
  await insertDecisions(tx, decisions);
  killPoint("schedules.decided");
  if (jobs.length > 0) {
    await insertJobs(tx, jobs);
    tx.wake(jobsChannel);
  }
  killPoint("schedules.fired");
  await tx.run(sql`update daybook_schedule as schedule set cursor_at = v.cursor_at, next_at = v.next_at, fires = v.fires,
      last_fired_at = v.last_fired_at, paused_at = v.paused_at, paused_note = v.paused_note
    from ${rowSet("v", rowColumns, rows)} where schedule.seq = v.seq`);
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
