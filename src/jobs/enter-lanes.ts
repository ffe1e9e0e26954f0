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
  lanes: readonly LaneRow[],
): Promise<{ lanes: EnteredLane[]; contended: boolean }> {
  if (lanes.length === 0) return { lanes: [], contended: false };
  const busy = await tryShare(
    tx,
    lanes.map(({ seq }) => seq),
  );
  const free = lanes.flatMap(({ seq }) => (busy.has(seq) ? [] : seq));
  // Read after the locks: a statement's snapshot is older than the locks it takes.
  const rows = await tx.all<EnteredLane>(sql`select lane.*, (select 1 from reservation
      where reservation.lane_seq = lane.seq and reservation.status = 'active' and reservation.expires_at > ${tx.now}
    ) as reserved
    from lane where seq ${anyOf("integer", free)}`);
  const place = new Map(free.map((seq, index) => [seq, index]));
  return {
    lanes: rows.sort((a, b) => (place.get(a.seq) ?? 0) - (place.get(b.seq) ?? 0)),
    contended: busy.size > 0,
  };
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
