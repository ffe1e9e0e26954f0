// A job whose process was lost or shut down is tried again where it stood in line. Running jobs are nobody's neighbours, so
// another job may have been moved onto its number meanwhile; then the new one stands just before that.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import type { JobRow } from "../job.ts";
import { firstFrom, holdLines, type Line } from "./neighbours.ts";
import { gapAt, roomIn } from "./room.ts";

/** Holds the lines of those jobs whose number another may have been given. Multiples of 100 are never given to anybody else. */
export async function holdMoved(tx: Tx, seqs: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite" || seqs.length === 0) return;
  const moved = await tx.all<{ lane_seq: number }>(
    sql`select lane_seq from daybook_line where seq ${anyOf("integer", seqs)} and position % 100 <> 0`,
  );
  await holdLines(
    tx,
    moved.map((job) => job.lane_seq),
  );
}

/** The place of the job that tries again, where the old one stood. */
export async function keptPlace(
  tx: Tx,
  { seq, lane_seq: lane, priority, position }: Pick<JobRow, "seq" | "lane_seq" | "priority" | "position">,
): Promise<number | null> {
  if (position === null || position % 100 === 0) return position;
  const line: Line = { lane, priority, except: seq };
  if ((await firstFrom(tx, line, position)) !== position) return position;
  return roomIn(tx, line, await gapAt(tx, line, { before: position }));
}
