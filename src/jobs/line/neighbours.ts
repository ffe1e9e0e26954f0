// Who stands next to a place: those in line, and those that wait for something and come back to their place.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";

/** The jobs of one lane and priority, without the one whose place is sought. */
export type Line = { readonly lane: number; readonly priority: number; readonly except: number };
export type Neighbour = { readonly seq: number; readonly position: number };

/** The last `most` at `position` or before it, the nearest first. */
export async function standingUpTo(tx: Tx, line: Line, position: number, most: number): Promise<Neighbour[]> {
  const found = await standing(tx, line, sql`position <= ${position} order by position desc limit ${most}`);
  return found.sort((a, b) => b.position - a.position).slice(0, most);
}

/** The first at `position` or behind it. */
export async function firstFrom(tx: Tx, line: Line, position: number): Promise<number | null> {
  const found = await standing(tx, line, sql`position >= ${position} order by position limit 1`);
  return found.length === 0 ? null : Math.min(...found.map((job) => job.position));
}

// One statement for both indexes: on PostgreSQL one that is queued between two would be in neither.
async function standing(tx: Tx, { lane, priority, except }: Line, which: Sql): Promise<Neighbour[]> {
  const from = sql`lane_seq = ${lane} and priority = ${priority} and seq <> ${except} and ${which}`;
  return tx.all<Neighbour>(sql`select * from (select seq, position from daybook_line ${indexedBy("jobs_to_claim")}
      where status = 'queued' and ${from}) as in_line
    union all select * from (select seq, position from daybook_line ${indexedBy("jobs_standing_by")}
      where status = 'waiting' and ${from}) as standing_by`);
}

/** The last at `position` or before it. */
export async function lastUpTo(tx: Tx, line: Line, position: number): Promise<number | null> {
  return (await standingUpTo(tx, line, position, 1))[0]?.position ?? null;
}

/** Holds the lines of these lanes until the transaction ends, so that one at a time changes places. SQLite's only writer needs
 *  none of it. On PostgreSQL the row is written, not only locked: a serializable transaction that began before another's move
 *  then runs again instead of deciding by what it saw. An update that leaves the keys as they are does not hold up those who
 *  enqueue; a `for update` would. */
export async function holdLines(tx: Tx, lanes: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  const inOrder = [...new Set(lanes)].toSorted((a, b) => a - b);
  for (const lane of inOrder)
    await tx.run(sql`update daybook_lane as lane set paused_at = paused_at where seq = ${lane}`);
}
