// Takes jobs: from here on they run, and are this session's.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { rowSet } from "../storage/word.ts";
import type { Candidate } from "./candidate.ts";
import type { LaneRow } from "./lane.ts";
import type { Slots } from "./limit.ts";

export type ClaimedJob = Candidate & { readonly run_id: string; readonly lane_seq: number; readonly queue: string };

/** A job that was claimed, and the run id that proves it. */
export type Claimed = { readonly seq: number; readonly run_id: string };

const columns = { seq: "integer", run_id: "text" } as const;
const slotColumns = { name_slot: "integer", key_slot: "integer", lane_slot: "integer" } as const;
const slots = sql`name_slot = v.name_slot, key_slot = v.key_slot, lane_slot = v.lane_slot,`;
const noSlots = sql``;

/** `attempted` gets what is taken, also when the commit's fate stays unknown. */
export async function take(
  tx: Tx,
  { sessionSeq }: { readonly sessionSeq: number },
  lane: LaneRow,
  jobs: readonly (Candidate & Slots)[],
  attempted: Claimed[],
): Promise<ClaimedJob[]> {
  if (jobs.length === 0) return [];
  // The rows are ours alone, so they are filled in rather than copied: this runs once for every job.
  const rows = jobs.map((job) => Object.assign(job, { run_id: tx.ids(), lane_seq: lane.seq, queue: lane.queue }));
  for (const { seq, run_id } of rows) attempted.push({ seq, run_id });
  // A job in line has no slots, and most get none: then they need not travel.
  const limited = rows.some((job) => job.name_slot !== null || job.key_slot !== null || job.lane_slot !== null);
  const set = rowSet("v", limited ? { ...columns, ...slotColumns } : columns, rows);
  // A key that is taken only while its job is queued is free from here on.
  await tx.run(sql`update job set status = 'running', run_id = v.run_id, session_seq = ${sessionSeq},
      started_at = ${tx.now}, ${limited ? slots : noSlots}
      key_held = case when key_scope = 'queued' then null else key_held end
    from ${set} where job.seq = v.seq`);
  return rows;
}
