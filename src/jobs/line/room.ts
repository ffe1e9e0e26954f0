// A number for a place in line, wherever it is. The caller holds the line.
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { rowsInto, rowSet } from "../../storage/word.ts";
import { lockLines } from "../lock-order.ts";
import { firstFrom, lastUpTo, standingUpTo, type Line, type Neighbour } from "./neighbours.ts";
import { beforeFirst, behindLast, between, spread, spreadFromFront } from "./spot.ts";

/** Between these two; null stands for an end of the line. */
export type Gap = { readonly low: number | null; readonly high: number | null };
export type Where = "first" | "last" | { readonly before: number } | { readonly after: number };

const front = Number.MIN_SAFE_INTEGER;
const back = Number.MAX_SAFE_INTEGER;

export async function gapAt(tx: Tx, line: Line, where: Where): Promise<Gap> {
  if (where === "first") return { low: null, high: await firstFrom(tx, line, front) };
  if (where === "last") return { low: await lastUpTo(tx, line, back), high: null };
  if ("before" in where) return { low: await lastUpTo(tx, line, where.before - 1), high: where.before };
  return { low: where.after, high: await firstFrom(tx, line, where.after + 1) };
}

export async function roomIn(tx: Tx, line: Line, { low, high }: Gap): Promise<number> {
  if (low === null) return high === null ? line.except * 100 : beforeFirst(high);
  const end = high ?? (await endOfLine(tx));
  const spot = high === null ? behindLast(low, end) : between(low, high);
  return spot ?? makeRoom(tx, line, low, end);
}

/** Where the next row will stand. Those that others are just making stand there or behind. */
async function endOfLine(tx: Tx): Promise<number> {
  const row = await tx.get<{ seq: number }>(sql`select max(seq) as seq from daybook_job`);
  return ((row?.seq ?? 0) + 1) * 100;
}

// When there is no number left between two neighbours, those before the gap are spread anew: as few as have enough room
// between them. What stands behind the gap stays, so nobody ever comes to stand where new rows will.
//
// The windows grow by four, and a larger one must find more room. So one that was spread has to take in many more
// before it is too full again, and over many moves each costs a number of rows that grows with the logarithm of the line.
const windowMin = 16;
const windowGrowth = 4;
const spacingMin = 16;
const spacingGrowth = 1.25;
// Rows are made 100 apart; a window of those must always be roomy enough.
const spacingMax = 90;

/** Frees a number behind `low` and before `high`. */
async function makeRoom(tx: Tx, line: Line, low: number, high: number): Promise<number> {
  let spacing = spacingMin;
  for (let size = windowMin; ; size *= windowGrowth) {
    const found = await standingUpTo(tx, line, low, size + 1);
    const atFront = found.length <= size;
    const window = (atFront ? found : found.slice(0, size)).reverse();
    const before = atFront ? null : (found.at(-1)?.position ?? null);
    if (before === null || (high - before) / (window.length + 2) >= spacing) {
      const count = window.length + 1;
      const spots = before === null ? spreadFromFront(high, count) : spread(before, high, count);
      await renumber(tx, before === null ? inTheWay(window, spots) : paired(window, spots));
      return spots.at(-1) ?? high - 1;
    }
    spacing = Math.min(spacingMax, spacing * spacingGrowth);
  }
}

function paired(window: readonly Neighbour[], spots: readonly number[]): Neighbour[] {
  return window.map(({ seq }, index) => ({ seq, position: spots[index] ?? 0 }));
}

// With no end of room before the first, whoever stands before the number meant for it may stay, and so may all before.
function inTheWay(window: readonly Neighbour[], spots: readonly number[]): Neighbour[] {
  const staying = window.findLastIndex(({ position }, index) => position <= (spots[index] ?? 0));
  return paired(window, spots).slice(staying + 1);
}

// For each row by itself, as state.ts does.
const setPosition = Object.freeze([
  "update daybook_line set position = ? where seq = ? and started_at is null",
] as const);

async function renumber(tx: Tx, places: readonly Neighbour[]): Promise<void> {
  for (let from = 0; from < places.length; from += limits.bulkRowsMax) {
    const slice = places.slice(from, from + limits.bulkRowsMax);
    const columns = { position: "integer", seq: "integer" } as const;
    await lockLines(tx, sql`select v.seq from ${rowSet("v", columns, slice)}`);
    await tx.run(
      tx.dialect === "sqlite"
        ? rowsInto(setPosition, Object.keys(columns), slice)
        : sql`update daybook_line as line set position = v.position
            from ${rowSet("v", columns, slice)} where line.seq = v.seq and line.started_at is null`,
    );
  }
}
