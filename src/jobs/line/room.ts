// A number for a place in line, wherever it is. The caller holds the line.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { makeRoom } from "./make-room.ts";
import { firstFrom, lastUpTo, type Line } from "./neighbours.ts";
import { beforeFirst, behindLast, between } from "./spot.ts";

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
