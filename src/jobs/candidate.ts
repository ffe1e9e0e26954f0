// The jobs that come first in a lane, in its order.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy, skipLockedOf } from "../storage/word.ts";
import type { Candidate } from "./job.ts";

/** What a claim reads of a job, whoever claims it. */
export const candidateColumns = sql`job.seq, job.id, job.tenant_id, job.name, job.params, job.attempt, job.attempts,
  job.timeout_ms, line.available_at, job.alone, job.losses_max, job.cause_run_id, job.root_run_id, job.created_at,
  job.tags, job.limits, job.limit_key, job.key_scope, job.chain_seq, job.about, job.group_seq, job.kind, job.kind_seq,
  job.traceparent`;

/** A candidate with room for what its start will say. These are columns, because to add them to each row costs more than to read
 *  the row. */
export type Startable = Candidate & { readonly lane_seq: number; queue: string; run_id: string };

export const startableColumns = sql`${candidateColumns}, line.lane_seq, '' as queue, '' as run_id`;

/** The first `most` of a lane. Nobody else takes them until the transaction ends. */
export async function firstInLine(tx: Tx, lane: number, most: number): Promise<Startable[]> {
  // Beside any other index on status SQLite would sort the whole backlog for each claim, so the index is pinned. A place
  // is unique within a lane and priority (J7), so `priority desc, position, seq` is the whole order.
  return tx.all<Startable>(sql`select ${startableColumns}
    from daybook_line line ${indexedBy("jobs_to_claim")} cross join daybook_job job
    where line.status = 'queued' and line.lane_seq = ${lane} and job.seq = line.seq
    order by line.priority desc, line.position, line.seq limit ${most} ${skipLockedOf("line")}`);
}
