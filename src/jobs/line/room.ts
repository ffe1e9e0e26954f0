// A number for a place in line, wherever it is. The caller holds the line (lock-order.ts).
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { indexedBy, rowsInto, rowSet } from "../../storage/word.ts";
import { seqsOf, type JobRow } from "../job.ts";
import { tryLines } from "../lock-order.ts";

/** The jobs of one lane and priority, without the one whose place is sought. */
export type Line = { readonly lane: number; readonly priority: number; readonly except: number };
/** Between these two; null stands for an end of the line. */
export type Gap = { readonly low: number | null; readonly high: number | null };
export type Where = "first" | "last" | { readonly before: number } | { readonly after: number };
/** A number, and the new numbers of the jobs that must make room for it. */
export type Room = { readonly position: number; readonly others: readonly Neighbour[] };
type Neighbour = { readonly seq: number; readonly position: number };

const front = Number.MIN_SAFE_INTEGER;
const back = Number.MAX_SAFE_INTEGER;

export async function gapAt(tx: Tx, line: Line, where: Where): Promise<Gap> {
  if (where === "first") return { low: null, high: await firstFrom(tx, line, front) };
  if (where === "last") return { low: await lastUpTo(tx, line, back), high: null };
  if ("before" in where) return { low: await lastUpTo(tx, line, where.before - 1), high: where.before };
  return { low: where.after, high: await firstFrom(tx, line, where.after + 1) };
}

export async function roomIn(tx: Tx, line: Line, { low, high }: Gap): Promise<Room> {
  // There is no end of room before the first.
  const first = high === null ? line.except * step : Math.floor((high - step) / step) * step + half;
  if (low === null) return { position: first, others: [] };
  // Where the next row will stand. Those that others are just making stand there or behind.
  const last = high === null ? await tx.get<{ seq: number }>(sql`select max(seq) as seq from daybook_job`) : undefined;
  const end = high ?? ((last?.seq ?? 0) + 1) * step;
  const position = high === null ? behindLast(low, end) : between(low, high);
  return position === null ? makeRoom(tx, line, low, end) : { position, others: [] };
}

/** The place of the job that tries again after its process was lost or shut down: where the old one stood. Running jobs are
 *  not seen by a move, so another may have been moved onto its number meanwhile; then the new one stands just before that. */
export async function keptPlace(
  tx: Tx,
  { seq, lane_seq: lane, priority, position }: Pick<JobRow, "seq" | "lane_seq" | "priority" | "position">,
): Promise<number | null> {
  if (position === null || position % 100 === 0) return position;
  const line: Line = { lane, priority, except: seq };
  if ((await firstFrom(tx, line, position)) !== position) return position;
  // A transaction that holds a job which should make room may wait for what we hold; then the next place has to do.
  for (let gap = await gapAt(tx, line, { before: position }); gap.high !== null;) {
    const { position: place, others } = await roomIn(tx, line, gap);
    if (await tryLines(tx, seqsOf(others))) {
      await renumber(tx, others);
      return place;
    }
    gap = await gapAt(tx, line, { after: gap.high });
  }
  return null;
}

async function firstFrom(tx: Tx, line: Line, position: number): Promise<number | null> {
  const found = await standing(tx, line, sql`position >= ${position} order by position limit 1`);
  return found.length === 0 ? null : Math.min(...found.map((job) => job.position));
}

async function lastUpTo(tx: Tx, line: Line, position: number): Promise<number | null> {
  return (await standingUpTo(tx, line, position, 1))[0]?.position ?? null;
}

/** The last `most` at `position` or before it, the nearest first. */
async function standingUpTo(tx: Tx, line: Line, position: number, most: number): Promise<Neighbour[]> {
  const found = await standing(tx, line, sql`position <= ${position} order by position desc limit ${most}`);
  return found.sort((a, b) => b.position - a.position).slice(0, most);
}

// Those in line, and those that wait for something and come back to their place. One statement for both indexes: on PostgreSQL
// one that is queued between two would be in neither.
async function standing(tx: Tx, { lane, priority, except }: Line, which: Sql): Promise<Neighbour[]> {
  const from = sql`lane_seq = ${lane} and priority = ${priority} and seq <> ${except} and ${which}`;
  return tx.all<Neighbour>(sql`select * from (select seq, position from daybook_line ${indexedBy("jobs_to_claim")}
      where status = 'queued' and ${from}) as in_line
    union all select * from (select seq, position from daybook_line ${indexedBy("jobs_standing_by")}
      where status = 'waiting' and ${from}) as standing_by`);
}

// When there is no number left between two neighbours, those before the gap are spread anew: as few as have enough room
// between them. What stands behind the gap stays, so no job ever comes to stand where new rows will.
//
// The windows grow by four, and a larger one must find more room. So one that was spread has to take in many more
// before it is too full again, and over many moves each costs a number of rows that grows with the logarithm of the line.
const windowMin = 16;
const windowGrowth = 4;
const spacingMin = 16;
const spacingGrowth = 1.25;
// Rows are made 100 apart; a window of those must always be roomy enough.
const spacingMax = 90;

/** A number behind `low` and before `high`. */
async function makeRoom(tx: Tx, line: Line, low: number, high: number): Promise<Room> {
  let spacing = spacingMin;
  for (let size = windowMin; ; size *= windowGrowth) {
    const found = await standingUpTo(tx, line, low, size + 1);
    const atFront = found.length <= size;
    const window = (atFront ? found : found.slice(0, size)).reverse();
    const before = atFront ? null : (found.at(-1)?.position ?? null);
    if (before === null || (high - before) / (window.length + 2) >= spacing) {
      const count = window.length + 1;
      const spots = before === null ? spreadFromFront(high, count) : spread(before, high, count);
      const others = window.map(({ seq }, index) => ({ seq, position: spots[index] ?? 0 }));
      // With no end of room before the first, a job that stands before the number meant for it may stay, and so may all before.
      const staying = window.findLastIndex(({ position }, index) => position <= (spots[index] ?? 0));
      return { position: spots.at(-1) ?? high - 1, others: before === null ? others.slice(staying + 1) : others };
    }
    spacing = Math.min(spacingMax, spacing * spacingGrowth);
  }
}

// For each row by itself, as state.ts does.
const setPosition = "update daybook_line set position = ? where seq = ? and started_at is null";

export async function renumber(tx: Tx, others: readonly Neighbour[]): Promise<void> {
  const columns = { position: "integer", seq: "integer" } as const;
  for (let from = 0; from < others.length; from += limits.bulkRowsMax) {
    const slice = others.slice(from, from + limits.bulkRowsMax);
    await tx.run(
      tx.dialect === "sqlite"
        ? rowsInto(setPosition, Object.keys(columns), slice)
        : sql`update daybook_line as line set position = v.position
            from ${rowSet("v", columns, slice)} where line.seq = v.seq and line.started_at is null`,
    );
  }
}

// Numbers for places. Multiples of 100 above zero belong to the rows of that sequence number: a row that is just being
// made, or one that runs and is given back, finds its own free. So no job is ever moved onto one.
const step = 100;
const half = 50;
// A job that is put next to another leaves room for a few more.
const atLeast = 25;

/** The number in the middle, next to it when that is a row's own, or null when there is none between the two. */
function between(low: number, high: number): number | null {
  const middle = Math.floor((low + high) / 2);
  for (const spot of [middle, middle + 1, middle - 1]) if (spot > low && spot < high && isFree(spot)) return spot;
  return null;
}

/** Behind the last, as long as that is before `end`, where new rows will stand. */
function behindLast(last: number, end: number): number | null {
  const spot = Math.ceil((last + step) / step) * step - half;
  return spot < end ? spot : between(last, end);
}

/** `count` numbers between the two, at even distances, which must be 2 at least. */
function spread(low: number, high: number, count: number): number[] {
  const distance = (high - low) / (count + 1);
  return Array.from({ length: count }, (_, index) => {
    const spot = low + Math.floor(distance * (index + 1));
    return isFree(spot) ? spot : spot - 1;
  });
}

/** `count` numbers that end before `high`, as far apart as those of new rows. */
function spreadFromFront(high: number, count: number): number[] {
  const end = Math.floor((high - half - atLeast) / step) * step + half;
  return Array.from({ length: count }, (_, index) => end - (count - 1 - index) * step);
}

function isFree(spot: number): boolean {
  return spot <= 0 || spot % step !== 0;
}
