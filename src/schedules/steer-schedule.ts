// Pauses, resumes and removes schedules.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import type { Tx } from "../storage/store.ts";
import { findSchedule, lockSchedule } from "./find-schedule.ts";
import { nextFireAt, timingOf, type ScheduleRow } from "./schedule.ts";
import { insertSkips } from "./write-decisions.ts";
import { refuseCode, save } from "./write-schedule.ts";

export async function pauseSchedule(tx: Tx, name: string, note: string | null): Promise<void> {
  if (note !== null) checkNote(note);
  const row = await findSchedule(tx, name);
  await save(tx, { ...row, paused_at: row.paused_at ?? tx.now, paused_note: note, next_at: null }, false);
}

function checkNote(note: unknown): void {
  const most = limits.noteBytesMax;
  if (typeof note !== "string") throw invalid(`the note is ${quote(note)}; it must be text`);
  if (note.includes("\0")) throw invalid("the note holds the character U+0000, which cannot be stored: leave it out");
  if (Buffer.byteLength(note) > most) throw invalid(`the note is longer than ${most} bytes: say it shorter`);
}

/** What was due while it was paused is one decision, and is not made up for. */
export async function resumeSchedule(tx: Tx, name: string): Promise<void> {
  const row = await findSchedule(tx, name);
  if (row.paused_at === null) return;
  await insertSkips(tx, row, timingOf(row), { until: tx.now, note: "it was paused" });
  const cursor_at = Math.max(row.cursor_at, tx.now);
  const next = { ...row, paused_at: null, paused_note: null, failures: 0, cursor_at };
  await save(tx, { ...next, next_at: nextFireAt(next) }, false);
}

/** Its decisions stay, and what it fired runs on. */
export async function removeSchedule(tx: Tx, name: string): Promise<void> {
  const row = await findSchedule(tx, name);
  refuseCode(row, "remove");
  await end(tx, row);
}

/** The code that defined it does so no more. One that is not there any more, or not of code, stays as it is. */
export async function retireSchedule(tx: Tx, name: string): Promise<void> {
  const row = await lockSchedule(tx, name);
  if (row !== undefined && row.removed_at === null && row.source === "code") await end(tx, row);
}

async function end(tx: Tx, row: ScheduleRow): Promise<void> {
  await save(tx, { ...row, removed_at: tx.now, next_at: null, paused_at: null, paused_note: null }, false);
}
