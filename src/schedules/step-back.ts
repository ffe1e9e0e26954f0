// A clock that ran ahead has decided slots that are still to come. Once it is right again, what it decided in a future that never
// was is void, and the cursor steps back to before the first of these slots, so that they are decided at their time, or as missed
// when that has passed. What had fired stays, and is not fired again.
import type { Behind } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import { isoTime, timeMs } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { skipLocked, assigned } from "../storage/word.ts";
import { undecided, passedBy } from "./decision.ts";
import { forgetSkipped } from "./fire-by-hand.ts";
import { nextFireAt, offsetOf, readTiming, schedulesChannel, type ScheduleRow } from "./schedule.ts";

type Which = {
  /** How far ahead a cursor is taken for another machine's: as far as clocks may differ, unless this process saw its own be wrong. */
  readonly aheadMs?: number;
};

const isPassedBy = sql`(decision.kind = 'skipped_paused' or decision.note in (${passedBy.restored}, ${passedBy.filled}))`;

/** A schedule that has decided slots after this time, or did it after this time and left its last one out. */
export function isAhead(ofMs: number): Sql {
  return sql`(cursor_at > ${ofMs} or updated_at <= ${ofMs} and (select case when ${isPassedBy} then null
      when job_id is null and event_id is null then decided_at end
    from daybook_decision decision where decision.tenant_id = daybook_schedule.tenant_id
      and decision.schedule_seq = daybook_schedule.seq order by slot_at desc limit 1) > ${ofMs})`;
}

/** Steps back the schedules whose cursor is ahead, if the clock is to be believed. False when it is not, or when another transaction
 *  held one of them: look again. */
export async function stepBackAll(store: Store, { aheadMs = limits.clockAheadMs }: Which = {}): Promise<boolean> {
  const now = store.time.settled(limits.clockAheadMs);
  if (now === null) return false;
  const ahead = await store.read<{ seq: number }>(sql`select seq from daybook_schedule
    where ${isAhead(now + aheadMs)} and removed_at is null order by seq`);
  const rightSince = store.time.rightSince();
  let done = true;
  for (const { seq } of ahead) done = (await store.write((tx) => stepBack(tx, seq, { aheadMs, rightSince }))) && done;
  return done;
}

/** Steps back one schedule whose cursor is ahead; false when it is not, or another transaction holds it. */
export async function stepBack(
  tx: Tx,
  seq: number,
  { aheadMs = limits.clockAheadMs, rightSince = tx.now }: Which & { readonly rightSince?: number } = {},
): Promise<boolean> {
  const row = await tx.get<ScheduleRow>(sql`select * from daybook_schedule
    where seq = ${seq} and ${isAhead(tx.now + aheadMs)} and removed_at is null ${skipLocked}`);
  if (row === undefined) return false;
  const timing = readTiming(row);
  // Slots whose turn has not come, the schedule's own jitter counted in.
  const toCome = Math.min(rightSince, tx.now, row.cursor_at + offsetOf(row)) - offsetOf(row);
  const cursorAt = Math.max(Math.min(toCome, (await firstVoid(tx, row)) - 1), await knownFrom(tx, row));
  const next: ScheduleRow = { ...row, cursor_at: cursorAt, ahead_until: Math.max(row.cursor_at, row.ahead_until ?? 0) };
  let nextAt = row.next_at;
  if (!("unreadable" in timing)) {
    await forgetSkipped(tx, row, { from: cursorAt + 1, to: row.cursor_at });
    nextAt = nextFireAt(next, await undecided(tx, next, timing));
  }
  await tx.run(sql`update daybook_schedule set cursor_at = ${cursorAt}, ahead_until = ${next.ahead_until}, next_at = ${nextAt}
    where seq = ${seq}`);
  tx.wake(schedulesChannel);
  return true;
}

const none = Number.MAX_SAFE_INTEGER;

/** The first slot that a clock which ran ahead left out. A person who made, changed, resumed, filled or released the schedule by that
 *  clock has passed by what was due before, and that is not made up for. */
async function firstVoid(tx: Tx, row: ScheduleRow): Promise<number> {
  if (row.updated_at > tx.now) return none;
  const found = await tx.get<{ first: number | null; passed: number | null }>(sql`select min(slot_at) as first,
      max(case when ${isPassedBy} then 1 end) as passed
    from daybook_decision decision where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq} and job_id is null
      and event_id is null and decided_at > ${tx.now}`);
  return found?.passed === 1 ? none : (found?.first ?? none);
}

/** Of slots up to here it is not known what was fired: decisions were pruned, or there are more than a look at them may read. */
async function knownFrom(tx: Tx, { tenant_id: tenant, seq, pruned_until: prunedUntil }: ScheduleRow): Promise<number> {
  const row = await tx.get<{ slot_at: number }>(sql`select slot_at from daybook_decision
    where tenant_id = ${tenant} and schedule_seq = ${seq} order by slot_at desc limit 1 offset ${limits.bulkRowsMax - 1}`);
  return Math.max(prunedUntil ?? 0, row?.slot_at ?? 0);
}

/** "In ten minutes", written by a clock that ran ahead, is counted from now; false when it is not such a schedule. */
export async function countAnew(tx: Tx, seq: number): Promise<boolean> {
  const row = await tx.get<ScheduleRow>(sql`select * from daybook_schedule where seq = ${seq} and kind = 'once'
    and anchor_at > ${tx.now + limits.clockAheadMs} and removed_at is null ${skipLocked}`);
  if (row === undefined || row.anchor_at === null) return false;
  await moveOnce(tx, { ...row, cursor_at: row.anchor_at }, tx.now - row.anchor_at);
  return true;
}

/** Moves the one moment of a schedule, and all that is counted from it. */
async function moveOnce(tx: Tx, row: ScheduleRow, byMs: number): Promise<void> {
  const expression = isoTime(timeMs(row.expression, "at") + byMs);
  const moved = { expression, anchor_at: (row.anchor_at ?? 0) + byMs, cursor_at: row.cursor_at + byMs };
  const next_at = nextFireAt({ ...row, ...moved });
  await tx.run(sql`update daybook_schedule set ${assigned({ ...moved, next_at })} where seq = ${row.seq}`);
  tx.wake(schedulesChannel);
}

/** "In ten minutes", written by a clock that was behind, is counted from the right time. Returns what it counted, which a second look
 *  must leave alone. */
export async function countOnceFromRight(
  tx: Tx,
  { fromMs, toMs, byMs }: Behind,
  counted: readonly number[] = [],
): Promise<number[]> {
  const found = await tx.all<ScheduleRow>(sql`select * from daybook_schedule where kind = 'once'
    and anchor_at between ${fromMs} and ${toMs} and updated_at between ${fromMs} and ${toMs} and fires = 0
    and removed_at is null ${skipLocked}`);
  const rows = found.filter(({ seq }) => !counted.includes(seq));
  for (const row of rows) await moveOnce(tx, row, byMs);
  return rows.map(({ seq }) => seq);
}
