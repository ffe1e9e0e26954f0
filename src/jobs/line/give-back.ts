// A job that was claimed and is given back stands where it stood, unless somebody was moved onto that number meanwhile:
// those who run are nobody's neighbours.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import type { JobRow } from "../job.ts";
import { holdLines } from "./hold.ts";
import { firstFrom, type Line } from "./neighbours.ts";
import { gapAt, roomIn } from "./room.ts";

type Placed = Pick<JobRow, "seq" | "lane_seq" | "priority" | "position">;

/** Those of the jobs whose place is not their own, and may be taken. Their lines are held. */
export async function holdMoved(tx: Tx, seqs: readonly number[]): Promise<Placed[]> {
  const find = async (): Promise<Placed[]> =>
    tx.all<Placed>(sql`select seq, lane_seq, priority, position from job
      where seq ${anyOf("integer", seqs)} and position <> seq * 100`);
  const moved = await find();
  if (moved.length === 0 || tx.dialect === "sqlite") return moved;
  await holdLines(
    tx,
    moved.map((job) => job.lane_seq),
  );
  return find();
}

/** Once they are back in line, each finds a number of its own, before whoever has the one it had. */
export async function standApart(tx: Tx, moved: readonly Placed[]): Promise<void> {
  for (const { seq, lane_seq: lane, priority, position } of moved) {
    const line: Line = { lane, priority, except: seq };
    if ((await firstFrom(tx, line, position)) !== position) continue;
    const spot = await roomIn(tx, line, await gapAt(tx, line, { before: position }));
    await tx.run(sql`update job set position = ${spot} where seq = ${seq} and status = 'queued'`);
  }
}
