// Fires slots by hand: one now, or those of a stretch of the past.
import { systemClock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { isoTime } from "../core/time.ts";
import { inSlices } from "../storage/slices.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { NewJob } from "../jobs/enqueue.ts";
import type { Ports } from "../jobs/kind.ts";
import { slotsAfter, type Fire } from "./decide.ts";
import { decisionRow, insertSkips, passedBy, type DecisionRow } from "./decision.ts";
import { fireSlot, insertFires } from "./fire.ts";
import { nextFireAt, findSchedule, type DecisionKind, type ScheduleRow } from "./schedule.ts";
import { targetOf } from "./target.ts";
import type { Slot } from "./timing/slot.ts";
import { restoreTiming, type Timing } from "./timing/timing.ts";

/** The job that was made, or the event that was published. */
export type Triggered =
  | { readonly jobId: string; readonly eventId: null }
  | { readonly jobId: null; readonly eventId: string };

/** Fires once, now, whatever the schedule says, even while it is paused. */
export async function triggerSchedule(tx: Tx, ports: Ports, name: string): Promise<Triggered> {
  const row = await findSchedule(tx, name);
  const taken = await slotsIn(tx, row, { from: tx.now, to: tx.now + 1000 });
  const timing = restoreTiming(row);
  // Never at the time of a regular slot, which is still to be decided.
  let at = tx.now;
  while (taken.has(at) || timing.next(at - 1)?.at === at) at++;
  const [made] = await fireSlots(tx, ports, row, { slots: [{ at, local: "", dst: null }], kind: "manual" });
  return { jobId: made?.job_id ?? null, eventId: made?.event_id ?? null } as Triggered;
}

export type Backfilled = {
  readonly dryRun: boolean;
  /** The slots that were, or would be, fired. */
  readonly slots: readonly number[];
  /** How many slots had been fired before, and are not fired again. */
  readonly already: number;
};

type Stretch = { readonly name: string; readonly from: number; readonly to: number; readonly dryRun: boolean };

/** Fires the slots from `from` to `to` that were not fired before, including those that were skipped. */
export async function backfillSchedule(tx: Tx, ports: Ports, { name, from, to, dryRun }: Stretch): Promise<Backfilled> {
  if (to < from) throw invalid("backfill: the end is before the start");
  if (to > tx.now) throw invalid("backfill is for the past: the end is in the future");
  const row = await findSchedule(tx, name);
  if (row.pruned_until !== null && from <= row.pruned_until) {
    const gone = `the decisions up to ${isoTime(row.pruned_until)} have left by retention`;
    throw invalid(`backfill: ${gone}, so it is not known what was fired; begin after that`);
  }
  const slots = await slotsBetween(restoreTiming(row), from, to);
  if (slots.length > limits.backfillSlotsMax) {
    throw invalid(`more than ${limits.backfillSlotsMax} slots in that stretch: backfill it in parts`);
  }
  const taken = await slotsIn(tx, row, { from, to }, sql`and coalesce(job_id, event_id) is not null`);
  const open = slots.filter((slot) => !taken.has(slot.at));
  if (!dryRun && open.length > 0) {
    await forgetSkipped(tx, row, { from: open[0]?.at ?? 0, to: open.at(-1)?.at ?? 0 });
    await fireSlots(tx, ports, row, { slots: open, kind: "backfilled" });
    await moveCursor(tx, row, open);
  }
  return { dryRun, slots: open.map((slot) => slot.at), already: slots.length - open.length };
}

/** One more than may be filled, if there are so many. To find those of an expression takes long. */
async function slotsBetween(timing: Timing, from: number, to: number): Promise<Slot[]> {
  const slots: Slot[] = [];
  for (let after = from - 1; slots.length <= limits.backfillSlotsMax;) {
    const some = slotsAfter(timing, after, to, limits.sliceRowsMax);
    slots.push(...some);
    if (some.length < limits.sliceRowsMax) break;
    after = some.at(-1)?.at ?? to;
    await systemClock.nextTurn();
  }
  return slots;
}

// The ticker must not decide the filled slots again. Undecided slots before them are passed by.
async function moveCursor(tx: Tx, row: ScheduleRow, open: readonly Slot[]): Promise<void> {
  const last = open.at(-1)?.at ?? row.cursor_at;
  if (last <= row.cursor_at) return;
  const timing = restoreTiming(row);
  const first = open.find((slot) => slot.at > row.cursor_at)?.at ?? last;
  await insertSkips(tx, row, timing, { until: first - 1, note: passedBy.filled });
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
): Promise<DecisionRow[]> {
  const target = await targetOf(tx, row);
  if ("refused" in target) throw new DaybookError("conflict", `schedule "${row.name}" cannot fire: ${target.refused}`);
  const decisions: DecisionRow[] = [];
  await inSlices(slots, async (slice) => {
    const jobs: NewJob[] = [];
    const decided: DecisionRow[] = [];
    for (const slot of slice) {
      const fire: Fire = { slot, kind, missed: 0, lateMs: tx.now - slot.at, behindMissed: false };
      const fired = await fireSlot(tx, ports, row, { fire, target, jobs });
      const local = slot.local === "" ? null : slot.local;
      decided.push(decisionRow(tx, row, { slot_at: slot.at, kind, local, ...fired }));
    }
    await insertFires(tx, { decisions: decided, jobs });
    decisions.push(...decided);
  });
  await tx.run(sql`update daybook_schedule set last_fired_at = ${tx.now} where seq = ${row.seq}`);
  return decisions;
}

type Between = { readonly from: number; readonly to: number };

async function slotsIn(tx: Tx, row: ScheduleRow, { from, to }: Between, which = sql``): Promise<Set<number>> {
  const rows = await tx.all<Pick<DecisionRow, "slot_at">>(sql`select slot_at from daybook_decision
    where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq} and slot_at between ${from} and ${to} ${which}`);
  return new Set(rows.map((each) => each.slot_at));
}

/** Removes the skips of this stretch, so that a slot that is decided anew has one decision, the new one. A span that reaches beyond
 *  the stretch keeps the rest of its slots. */
export async function forgetSkipped(tx: Tx, row: ScheduleRow, { from: first, to: last }: Between): Promise<void> {
  const skipped = sql`daybook_decision where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq}
    and job_id is null and event_id is null`;
  await tx.run(sql`delete from ${skipped} and slot_at >= ${first} and until_at <= ${last}`);
  const cut = await tx.all<{ seq: number; slot_at: number; until_at: number }>(
    sql`select seq, slot_at, until_at from ${skipped} and slot_at <= ${last} and until_at >= ${first}`,
  );
  const timing = restoreTiming(row);
  for (const span of cut) {
    // The rest of the span lies before the stretch, behind it, or on both sides.
    const before = timing.span(span.slot_at - 1, Math.min(span.until_at, first - 1), limits.missedSlotsMax);
    const behind = timing.span(Math.max(last, span.slot_at - 1), span.until_at, limits.missedSlotsMax);
    const part = before ?? behind;
    if (part === null) {
      // The span belongs to a timing that has been edited since: the present timing has no slot in the rest of it.
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
