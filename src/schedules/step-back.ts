// A clock that ran ahead has decided slots that are still to come. Once it is right again, those decisions are void and the cursor
// steps back, so that the slots are decided at their time. What had fired stays, and is not fired again.
import { limits } from "../core/limits.ts";
import { isoTime, timeMs } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { skipLocked } from "../storage/word.ts";
import { undecided } from "./fired-ahead.ts";
import { forgetSkipped } from "./fire-by-hand.ts";
import { nextFireAt, offsetOf, readTiming, schedulesChannel, type ScheduleRow } from "./schedule.ts";

/** Steps back the schedules whose cursor is ahead, if the clock is to be believed. */
export async function stepBackAll(store: Store): Promise<void> {
  const now = store.time.settled(limits.clockAheadMs);
  if (now === null) return;
  const ahead = await store.read<{ seq: number }>(sql`select seq from daybook_schedule
    where cursor_at > ${now + limits.clockAheadMs} and removed_at is null order by seq`);
  for (const { seq } of ahead) await store.write((tx) => stepBack(tx, seq));
}

/** Steps back one schedule whose cursor is further ahead than clocks of two machines may differ; false when it is not. */
export async function stepBack(tx: Tx, seq: number): Promise<boolean> {
  const row = await tx.get<ScheduleRow>(sql`select * from daybook_schedule
    where seq = ${seq} and cursor_at > ${tx.now + limits.clockAheadMs} and removed_at is null ${skipLocked}`);
  if (row === undefined) return false;
  const timing = readTiming(row);
  // Slots whose turn has not come, the schedule's own jitter counted in. Of those whose decisions were pruned nobody knows what was
  // fired, so they stay decided.
  const cursorAt = Math.max(tx.now - offsetOf(row), row.pruned_until ?? 0);
  const next: ScheduleRow = { ...row, cursor_at: cursorAt, ahead_until: Math.max(row.cursor_at, row.ahead_until ?? 0) };
  let nextAt = row.next_at;
  if (!("unreadable" in timing)) {
    await forgetSkipped(tx, row, { first: cursorAt + 1, last: Number.MAX_SAFE_INTEGER });
    nextAt = nextFireAt(next, await undecided(tx, next, timing));
  }
  await tx.run(sql`update daybook_schedule set cursor_at = ${cursorAt}, ahead_until = ${next.ahead_until}, next_at = ${nextAt}
    where seq = ${seq}`);
  tx.wake(schedulesChannel);
  return true;
}

/** "In ten minutes", written by a clock that ran ahead, is counted from now; false when it is not such a schedule. */
export async function countAnew(tx: Tx, seq: number): Promise<boolean> {
  const row = await tx.get<ScheduleRow>(sql`select * from daybook_schedule where seq = ${seq} and kind = 'once'
    and anchor_at > ${tx.now + limits.clockAheadMs} and removed_at is null ${skipLocked}`);
  if (row === undefined || row.anchor_at === null) return false;
  const at = tx.now + timeMs(row.expression, "at") - row.anchor_at;
  const next: ScheduleRow = { ...row, expression: isoTime(at), anchor_at: tx.now, cursor_at: tx.now };
  await tx.run(sql`update daybook_schedule set expression = ${next.expression}, anchor_at = ${tx.now}, cursor_at = ${tx.now},
    next_at = ${nextFireAt(next)} where seq = ${seq}`);
  tx.wake(schedulesChannel);
  return true;
}
