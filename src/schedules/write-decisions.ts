// Decisions as they are written: one row for a slot, or for a span of slots that none of was fired.
import type { Tx } from "../storage/store.ts";
import { insertInto } from "../storage/word.ts";
import { skip, type Skip } from "./decide.ts";
import { undecided } from "./fired-ahead.ts";
import type { DecisionKind, ScheduleRow } from "./schedule.ts";
import type { Timing } from "./timing/timing.ts";

export type DecisionRow = {
  tenant_id: string;
  schedule_seq: number;
  slot_at: number;
  until_at: number;
  slots: number;
  kind: DecisionKind;
  decided_at: number;
  local: string | null;
  /** What was fired: a job, or an event. */
  job_id: string | null;
  event_id: string | null;
  note: string | null;
};

const decisionColumns = {
  tenant_id: "text",
  schedule_seq: "integer",
  slot_at: "integer",
  until_at: "integer",
  slots: "integer",
  kind: "text",
  decided_at: "integer",
  local: "text",
  job_id: "text",
  event_id: "text",
  note: "text",
} as const;

export async function insertDecisions(tx: Tx, rows: readonly DecisionRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.run(insertInto("daybook_decision", decisionColumns, rows));
}

type Decided = Pick<DecisionRow, "slot_at" | "kind" | "local"> & Partial<DecisionRow>;

/** The row of a decision about one slot, which fired nothing, unless `decided` says otherwise. */
export function decisionRow(tx: Tx, { tenant_id, seq }: ScheduleRow, decided: Decided): DecisionRow {
  const nothing = { job_id: null, event_id: null, note: null };
  const slot = { tenant_id, schedule_seq: seq, until_at: decided.slot_at, slots: 1, decided_at: tx.now };
  return { ...slot, ...nothing, ...decided };
}

export function skipped(tx: Tx, row: ScheduleRow, { first, last, slots, kind, note }: Skip): DecisionRow {
  return decisionRow(tx, row, { slot_at: first.at, until_at: last.at, slots, kind, local: first.local, note });
}

/** Why slots are passed by that somebody else has fired, or will. They are not made up for. */
export const passedBy = {
  restored: "the book was restored from a backup",
  filled: "a later stretch was filled in",
} as const;

/** Writes one decision about all slots after the cursor that an edit, a resume or a backfill passes by. */
export async function insertSkips(
  tx: Tx,
  row: ScheduleRow,
  whole: Timing,
  { until, note }: { readonly until: number; readonly note: string },
): Promise<void> {
  const timing = await undecided(tx, row, whole);
  const skips: Skip[] = [];
  const { cursor_at: after, paused_at: paused } = row;
  if (paused === null) skip(timing, after, until, "skipped_missed", note, skips);
  else {
    // Slots before the pause were missed, not paused; they are not made up for either.
    const before = Math.min(until, paused - 1);
    skip(timing, after, before, "skipped_missed", "it was paused before anybody had decided", skips);
    skip(timing, Math.max(after, before), until, "skipped_paused", pausedWords(row), skips);
  }
  const rows = skips.map((each) => skipped(tx, row, each));
  await insertDecisions(tx, rows);
}

function pausedWords({ paused_note: note }: ScheduleRow): string {
  return note === null ? "it was paused" : `it was paused: ${note}`;
}
