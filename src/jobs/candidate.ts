// The jobs that come first in a lane, in its order.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy, skipLocked } from "../storage/word.ts";
import type { JobRow } from "./job.ts";

export type Candidate = Pick<
  JobRow,
  | ("seq" | "id" | "tenant_id" | "name" | "params" | "attempt" | "attempts" | "timeout_ms" | "available_at" | "alone")
  | (
      | "losses_max"
      | "cause_run_id"
      | "root_run_id"
      | "created_at"
      | "tags"
      | "limits"
      | "limit_key"
      | "about"
      | "chain_seq"
    )
  | ("group_seq" | "kind" | "kind_seq" | "traceparent")
>;

/** The first `most` of a lane: all of them, or only those that may run together with others. Nobody else takes them
 *  until the transaction ends. */
export async function firstInLine(tx: Tx, lane: number, most: number, who: "all" | "together"): Promise<Candidate[]> {
  // Beside any other index on status SQLite would sort the whole backlog for each claim, so the index is pinned. A place
  // is unique within a lane and priority (J7), so `priority desc, position, seq` is the whole order.
  return tx.all<Candidate>(sql`select seq, id, tenant_id, name, params, attempt, attempts, timeout_ms, available_at,
      alone, losses_max, cause_run_id, root_run_id, created_at, tags, limits, limit_key, chain_seq, about,
      group_seq, kind, kind_seq, traceparent
    from job ${indexedBy("jobs_to_claim")}
    where status = 'queued' and lane_seq = ${lane} ${who === "all" ? everyone : notAlone}
    order by priority desc, position, seq limit ${most} ${skipLocked}`);
}

const everyone = sql``;
const notAlone = sql`and alone = 0`;
