// Fires slots because somebody asked for it: one now, or those of a stretch of the past.
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { Ports } from "../jobs/kind.ts";
import { insertJobs, type NewJob } from "../jobs/insert.ts";
import { jobsChannel } from "../jobs/job.ts";
import { slotsAfter, type Fire } from "./decide.ts";
import { jobFor, sayFor } from "./fire.ts";
import { nextFireAt, timingOf, type DecisionKind, type ScheduleRow } from "./schedule.ts";
import { targetOf } from "./target.ts";
import { findSchedule } from "./find-schedule.ts";
import { insertDecisions, insertSkips, type DecisionRow } from "./write-decisions.ts";
import type { Slot } from "./timing/slot.ts";

/** The job that it made, or the event that it published. */
export type Triggered =
  | { readonly jobId: string; readonly eventId: null }
  | { readonly jobId: null; readonly eventId: string };

/** Fires once, now, whatever the schedule says; also while it is paused. */
export async function triggerSchedule(tx: Tx, ports: Ports, name: string): Promise<Triggered> {
  const row = await findSchedule(tx, name);
  const taken = await decidedSlots(tx, row, tx.now, tx.now + 1000);
  const timing = timingOf(row);
  // Never in the place of a slot of its own, which is still to be decided.
  let at = tx.now;
  while (taken.has(at) || timing.next(at - 1)?.at === at) at++;
  const [made] = await fireSlots(tx, ports, row, { slots: [{ at, local: "", dst: null }], kind: "manual" });
  return row.target === "event" ? { jobId: null, eventId: made ?? "" } : { jobId: made ?? "", eventId: null };
}

export type Backfilled = {
  readonly dryRun: boolean;
  /** The slots that were, or would be, fired. */
  readonly slots: readonly number[];
  /** Slots of the stretch that had been fired before, and are not fired again. */
  readonly already: number;
};

/** Fires the slots from `from` up to `to` that were not fired before. What was skipped there is fired now. */
export async function backfillSchedule(
  tx: Tx,
  ports: Ports,
  {
    name,
    from,
    to,
    dryRun,
  }: { readonly name: string; readonly from: number; readonly to: number; readonly dryRun: boolean },
): Promise<Backfilled> {
  if (to < from) throw invalid("backfill: the end is before the start");
  if (to > tx.now) throw invalid("backfill is for the past: the end is in the future");
  const row = await findSchedule(tx, name);
  if (row.pruned_until !== null && from <= row.pruned_until) {
    const until = isoTime(row.pruned_until);
    throw invalid(
      `backfill: the decisions up to ${until} were pruned, so nobody knows what was fired; begin after that`,
    );
  }
  const slots = slotsAfter(timingOf(row), from - 1, to, limits.backfillSlotsMax + 1);
  if (slots.length > limits.backfillSlotsMax) {
    throw invalid(`more than ${limits.backfillSlotsMax} slots in that stretch: backfill it in parts`);
  }
  const taken = await firedSlots(tx, row, from, to);
  const open = slots.filter((slot) => !taken.has(slot.at));
  if (!dryRun && open.length > 0) {
    await forgetSkipped(tx, row, { first: open[0]?.at ?? 0, last: open.at(-1)?.at ?? 0 });
    await fireSlots(tx, ports, row, { slots: open, kind: "backfilled" });
    await moveCursor(tx, row, open);
  }
  return { dryRun, slots: open.map((slot) => slot.at), already: slots.length - open.length };
}

// The ticker must not decide again what is filled, and what was due before it and not decided is passed by.
async function moveCursor(tx: Tx, row: ScheduleRow, open: readonly Slot[]): Promise<void> {
  const last = open.at(-1)?.at ?? row.cursor_at;
  if (last <= row.cursor_at) return;
  const timing = timingOf(row);
  const first = open.find((slot) => slot.at > row.cursor_at)?.at ?? last;
  await insertSkips(tx, row, timing, { until: first - 1, note: "a later stretch was filled in" });
  const next = { ...row, cursor_at: last };
  await tx.run(
    sql`update daybook_schedule set cursor_at = ${last}, next_at = ${nextFireAt(next, timing)} where seq = ${row.seq}`,
  );
}

async function fireSlots(
  tx: Tx,
  ports: Ports,
  row: ScheduleRow,
  { slots, kind }: { readonly slots: readonly Slot[]; readonly kind: DecisionKind },
): Promise<string[]> {
  const target = await targetOf(tx, row);
  if ("refused" in target) throw new DaybookError("conflict", `schedule "${row.name}" cannot fire: ${target.refused}`);
  const ids: string[] = [];
  const decisions: DecisionRow[] = [];
  const jobs: NewJob[] = [];
  for (const slot of slots) {
    const fire: Fire = { slot, kind, missed: 0, lateMs: tx.now - slot.at };
    const job = "said" in target ? null : await jobFor(tx, row, fire, target, false);
    const event = "said" in target ? await sayFor(tx, ports, row, { fire, said: target.said }) : null;
    if (job !== null) jobs.push(job);
    ids.push(event ?? job?.id ?? "");
    decisions.push({
      ...{ tenant_id: row.tenant_id, schedule_seq: row.seq, slot_at: slot.at, until_at: slot.at, slots: 1, kind },
      ...{
        decided_at: tx.now,
        local: slot.local === "" ? null : slot.local,
        job_id: job?.id ?? null,
        event_id: event,
        note: null,
      },
    });
  }
  await insertDecisions(tx, decisions);
  if (jobs.length > 0) {
    await insertJobs(tx, jobs);
    tx.wake(jobsChannel);
  }
  await tx.run(sql`update daybook_schedule set last_fired_at = ${tx.now} where seq = ${row.seq}`);
  return ids;
}

async function firedSlots(tx: Tx, row: ScheduleRow, from: number, to: number): Promise<Set<number>> {
  const rows = await tx.all<{
    slot_at: number;
  }>(sql`select slot_at from daybook_decision where tenant_id = ${row.tenant_id}
    and schedule_seq = ${row.seq} and slot_at between ${from} and ${to} and coalesce(job_id, event_id) is not null`);
  return new Set(rows.map((each) => each.slot_at));
}

async function decidedSlots(tx: Tx, row: ScheduleRow, from: number, to: number): Promise<Set<number>> {
  const rows = await tx.all<{
    slot_at: number;
  }>(sql`select slot_at from daybook_decision where tenant_id = ${row.tenant_id}
    and schedule_seq = ${row.seq} and slot_at between ${from} and ${to}`);
  return new Set(rows.map((each) => each.slot_at));
}

/** Takes back that slots of this stretch were skipped: one that is decided anew has one decision, the new one. A span keeps the rest
 *  of its count. */
export async function forgetSkipped(
  tx: Tx,
  row: ScheduleRow,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<void> {
  await tx.run(sql`delete from daybook_decision where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq}
    and job_id is null and event_id is null and slot_at >= ${first} and until_at <= ${last}`);
  const cut = await tx.all<{ seq: number; slot_at: number; until_at: number; slots: number }>(sql`select seq, slot_at,
      until_at, slots from daybook_decision where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq}
    and job_id is null and event_id is null and slot_at <= ${last} and until_at >= ${first}`);
  const timing = timingOf(row);
  for (const span of cut) {
    // What remains of it lies before, behind, or on both sides of what is filled.
    const before = timing.span(span.slot_at - 1, Math.min(span.until_at, first - 1), limits.missedSlotsMax);
    const behind = timing.span(Math.max(last, span.slot_at - 1), span.until_at, limits.missedSlotsMax);
    const part = before ?? behind;
    if (part === null) {
      // It was about a timing that has been edited since, and nothing of it is left by the present one.
      await tx.run(sql`delete from daybook_decision where seq = ${span.seq}`);
      continue;
    }
    await tx.run(sql`update daybook_decision set slot_at = ${part.first.at}, until_at = ${part.last.at}, slots = ${part.count},
      local = ${part.first.local} where seq = ${span.seq}`);
    if (before === null || behind === null) continue;
    await tx.run(sql`insert into daybook_decision (tenant_id, schedule_seq, slot_at, until_at, slots, kind, decided_at, local,
        job_id, note)
      select tenant_id, schedule_seq, ${behind.first.at}, ${behind.last.at}, ${behind.count}, kind, decided_at,
        ${behind.first.local}, null, note from daybook_decision where seq = ${span.seq}`);
  }
}
