// Who stands next to a place: those in line, and those that wait for something and come back to their place.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";

/** The jobs of one lane and priority, without the one whose place is sought. */
export type Line = { readonly lane: number; readonly priority: number; readonly except: number };
export type Neighbour = { readonly seq: number; readonly position: number };

/** The last `most` at `position` or before it, the nearest first. */
// One statement for both indexes: on PostgreSQL one that is queued between two would be in neither.
export async function standingUpTo(tx: Tx, line: Line, position: number, most: number): Promise<Neighbour[]> {
  const { lane, priority, except } = line;
  const found =
    await tx.all<Neighbour>(sql`select * from (select seq, position from daybook_line ${indexedBy("jobs_to_claim")}
      where status = 'queued' and lane_seq = ${lane} and priority = ${priority} and position <= ${position}
        and seq <> ${except}
      order by position desc limit ${most}) as in_line
    union all select * from (select seq, position from daybook_line ${indexedBy("jobs_standing_by")}
      where status = 'waiting' and lane_seq = ${lane} and priority = ${priority} and position <= ${position}
        and seq <> ${except}
      order by position desc limit ${most}) as standing_by`);
  return found.sort((a, b) => b.position - a.position).slice(0, most);
}

/** The first at `position` or behind it. */
export async function firstFrom(tx: Tx, line: Line, position: number): Promise<number | null> {
  const { lane, priority, except } = line;
  const found =
    await tx.all<Neighbour>(sql`select * from (select seq, position from daybook_line ${indexedBy("jobs_to_claim")}
      where status = 'queued' and lane_seq = ${lane} and priority = ${priority} and position >= ${position}
        and seq <> ${except}
      order by position limit 1) as in_line
    union all select * from (select seq, position from daybook_line ${indexedBy("jobs_standing_by")}
      where status = 'waiting' and lane_seq = ${lane} and priority = ${priority} and position >= ${position}
        and seq <> ${except}
      order by position limit 1) as standing_by`);
  return found.length === 0 ? null : Math.min(...found.map((job) => job.position));
}

/** The last at `position` or before it. */
export async function lastUpTo(tx: Tx, line: Line, position: number): Promise<number | null> {
  return (await standingUpTo(tx, line, position, 1))[0]?.position ?? null;
}
