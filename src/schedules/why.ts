// Why a schedule did, or did not, run at a time: the decision about that slot, or what else the time is.
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { toDecision, type DecisionRead, type DecisionRecord } from "./read-schedule.ts";
import type { Timing } from "./timing/timing.ts";
import { offsetOf, timingOf, type DecisionKind, type ScheduleRow } from "./schedule.ts";

export type Why = {
  /** False when the schedule is not due at that time. */
  readonly isSlot: boolean;
  readonly decision: DecisionRecord | null;
  /** The answer, in sentences. */
  readonly because: readonly string[];
};

const meanings: Readonly<Record<DecisionKind, string>> = {
  fired: "It ran: the slot was fired on time.",
  late: "It ran late: nobody was there at the time, and the latest missed slot was made up for.",
  caught_up: "It ran late: nobody was there at the time, and every missed slot was caught up.",
  shifted_dst: "It ran at the first valid moment: the local time of the slot did not exist on that day.",
  backfilled: "It ran because somebody asked for this stretch to be filled in.",
  manual: "It ran because somebody triggered it by hand.",
  skipped_missed: "It did not run: nobody was there at the time, and it was not made up for.",
  skipped_overlap: "It did not run: the job of the slot before had not ended.",
  skipped_paused: "It did not run: the schedule was paused.",
};

export async function whySchedule(store: Store, row: ScheduleRow, at: number): Promise<Why> {
  const timing = timingOf(row);
  // A person names a minute, and the slot lies somewhere in it.
  const until = at % 60_000 === 0 ? at + 59_999 : at;
  const [found] =
    await store.readHeavy<DecisionRead>(sql`select slot_at, until_at, slots, kind, decided_at, local, job_id,
      event_id, note from daybook_decision where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq}
      and slot_at <= ${until} and until_at >= ${at} order by slot_at limit 1`);
  const slot = timing.next(at - 1);
  const isSlot = slot !== null && slot.at <= until;
  // A slot by a timing that has been edited since has its decision all the same.
  if (found !== undefined && (isSlot || found.slots === 1)) {
    const decision = toDecision(found);
    const because = [meanings[found.kind]];
    if (found.slots > 1) {
      because.push(
        `The decision is about ${found.slots} slots, from ${isoTime(found.slot_at)} to ${isoTime(found.until_at)}.`,
      );
    }
    if (found.note !== null) because.push(`Its note: ${found.note}.`);
    if (found.job_id !== null) because.push(`Its job is ${found.job_id}; "jobs explain" tells what became of that.`);
    if (found.event_id !== null) because.push(`Its event is ${found.event_id}; "events show" tells who heard it.`);
    return { isSlot: true, decision, because };
  }
  return { isSlot, decision: null, because: undecided(store, row, isSlot ? slot.at : at, isSlot) };
}

function undecided(store: Store, row: ScheduleRow, at: number, isSlot: boolean): string[] {
  const timing = timingOf(row);
  const now = store.clock.now();
  const fireAt = at + offsetOf(row);
  if (!isSlot) return noSlot(row, timing, at);
  if (row.paused_at !== null && at >= row.paused_at) {
    const note = row.paused_note === null ? "" : ` (${row.paused_note})`;
    return [`It is paused since ${isoTime(row.paused_at)}${note}: resume it, and it goes on with what is due then.`];
  }
  if (at <= row.created_at) return [`The schedule was made at ${isoTime(row.created_at)}, after that slot.`];
  if (row.pruned_until !== null && at <= row.pruned_until) {
    return [`Its decision is not kept any more: those up to ${isoTime(row.pruned_until)} were pruned.`];
  }
  // Before the cursor too: one that has fired as often as it may passes by what is left of the same look.
  if (row.max_fires !== null && row.fires >= row.max_fires) return [`It has fired ${row.fires} times, which is all.`];
  if (at <= row.cursor_at) {
    return [
      `The slot is not in the ledger: the schedule was edited after it, or began after it.`,
      `Edited or made again at ${isoTime(row.updated_at)}.`,
    ];
  }
  if (fireAt > now) {
    const jitter = row.jitter_ms > 0 ? `; with its jitter it fires at ${isoTime(fireAt)}` : "";
    return [`It is due then, which is ${at > now ? "in the future" : "now"}${jitter}.`];
  }
  return ["It is due and not decided yet: no process that works has looked since. Start a worker."];
}

function noSlot(row: ScheduleRow, timing: Timing, at: number): string[] {
  const { starts_at: start, ends_at: end } = row;
  const next = timing.next(at);
  const before = timing.span(at - 366 * 86_400_000, at - 1, 1)?.last;
  return [
    `It is not due at ${isoTime(at)}: ${timing.words}.`,
    ...(start !== null && at < start ? [`It begins at ${isoTime(start)}.`] : []),
    ...(end !== null && at >= end ? [`It ended at ${isoTime(end)}.`] : []),
    ...(before === undefined ? [] : [`The slot before is ${isoTime(before.at)}.`]),
    next === null ? "There is none after it." : `The next one is ${isoTime(next.at)}.`,
  ];
}
