// Renumbers a lane by hand. Moves make their own room, so this is for those who like to read the numbers.
import { DaybookError } from "../../core/error.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { amongThe, forUpdate, indexedBy } from "../../storage/word.ts";
import { findLane } from "../lane.ts";
import { holdLines } from "../lock-order.ts";

export type NormaliseOptions = {
  /** Only counts. */
  readonly dryRun?: boolean;
};

export type Normalised = {
  /** How many jobs of the queue are open. */
  readonly jobs: number;
  /** How many of them got, or would get, another number. */
  readonly changed: number;
};

export async function normaliseLane(tx: Tx, queue: string, options: NormaliseOptions): Promise<Normalised> {
  refuseUnknown(options, ["dryRun"], "normalise");
  const lane = await findLane(tx, tx.tenant, checkName(queue, "queue"));
  if (lane === undefined) throw new DaybookError("not_found", `there is no queue ${quote(queue)}`);
  await holdLines(tx, [lane.seq]);
  const counted = await tx.get<Normalised>(sql`with ${numbered(lane.seq, sql``)}
    select count(*) as jobs, coalesce(sum(case when old <> spot then 1 else 0 end), 0) as changed from numbered`);
  const { jobs = 0, changed = 0 } = counted ?? {};
  if (options.dryRun === true || changed === 0) return { jobs, changed };
  return {
    jobs,
    changed: await tx.run(sql`with ${numbered(lane.seq, sql`${forUpdate}`)}
      update daybook_line as line set position = numbered.spot from numbered
      where line.seq = numbered.seq and numbered.old <> numbered.spot`),
  };
}

/** The open jobs of a lane with the number that each should have: 50, 150, 250 … per priority. Multiples of 100 are left
 *  to the rows whose sequence they are (room.ts). What runs is numbered as well, because it may be lost, and is then
 *  tried again where it stood. All of them are locked before the first is numbered, and no other: who came after that has its
 *  own number, and whoever holds it may wait for one of these. */
function numbered(lane: number, lock: Sql): Sql {
  return sql`held as materialized (select seq, priority, position from daybook_line where seq ${amongThe(sql`
      select seq from daybook_line ${indexedBy("jobs_to_claim")} where status = 'queued' and lane_seq = ${lane}
      union all select seq from daybook_line ${indexedBy("jobs_standing_by")} where status = 'waiting' and lane_seq = ${lane}
      union all select seq from daybook_line ${indexedBy("jobs_running")} where status = 'running' and lane_seq = ${lane}`)}
      order by seq ${lock}),
    numbered as (select seq, position as old,
      row_number() over (partition by priority order by position, seq) * 100 - 50 as spot from held)`;
}
