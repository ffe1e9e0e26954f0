// Before a claim takes from lanes it makes sure that what it knows of them is true and stays so: whoever pauses, limits or
// reserves a lane waits for the claims that are under way in it, and every later claim sees what was changed.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { LaneRow } from "./lane.ts";
import { lockLimits } from "./limit.ts";

/** A lane as it is while this transaction takes from it. `reserved` when somebody holds its next turn. */
export type EnteredLane = LaneRow & { readonly reserved: number | null };

export async function enterLanes(
  tx: Tx,
  seqs: readonly number[],
): Promise<{ lanes: EnteredLane[]; contended: boolean }> {
  if (seqs.length === 0) return { lanes: [], contended: false };
  const busy = await tryShare(tx, seqs);
  const free = seqs.filter((seq) => !busy.has(seq));
  // Read after the locks: a statement's snapshot is older than the locks it takes.
  const rows = await tx.all<EnteredLane>(sql`select lane.*, (select 1 from daybook_reservation reservation
      where reservation.lane_seq = lane.seq and reservation.status = 'active' and reservation.expires_at > ${tx.now}
    ) as reserved
    from daybook_lane lane where seq ${anyOf("integer", free)}`);
  const place = new Map(free.map((seq, index) => [seq, index]));
  return {
    lanes: rows.sort((a, b) => (place.get(a.seq) ?? 0) - (place.get(b.seq) ?? 0)),
    contended: busy.size > 0,
  };
}

/** PostgreSQL only: enters those of the lanes that nobody is changing, and leaves their numbers for the next statement of the
 *  transaction in its setting `daybook.lanes`, so that nobody has to wait for the answer. */
export async function enterTogether(tx: Tx, seqs: readonly number[]): Promise<void> {
  const names = JSON.stringify(seqs.map((seq) => [seq, lockName(seq)]));
  await tx.all(sql`select set_config('daybook.lanes', coalesce((select string_agg(value ->> 0, ',' order by ordinality)
    from jsonb_array_elements(${names}::jsonb) with ordinality
    where pg_try_advisory_xact_lock_shared(hashtextextended(value ->> 1, 0))), ''), true)`);
}

/** Waits for the claims that are under way in the lane, and keeps new ones out until this transaction ends. */
export async function closeLane(tx: Tx, seq: number): Promise<void> {
  await lockLimits(tx, [lockName(seq)]);
}

// SQLite's only writer needs no lock. A claim never waits: it leaves a lane that somebody is changing for the next look.
async function tryShare(tx: Tx, seqs: readonly number[]): Promise<Set<number>> {
  if (tx.dialect === "sqlite") return new Set();
  const names = JSON.stringify(seqs.map(lockName));
  const busy = await tx.all<{ value: string }>(sql`select value from jsonb_array_elements_text(${names}::jsonb)
    where not pg_try_advisory_xact_lock_shared(hashtextextended(value, 0))`);
  const taken = new Set(busy.map(({ value }) => value));
  return new Set(seqs.filter((seq) => taken.has(lockName(seq))));
}

function lockName(seq: number): string {
  return `enter\n${seq}`;
}
