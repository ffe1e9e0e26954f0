// Jobs that wait for a host are queued again by a worker that runs their name and serves their queue.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { Claimer } from "./claim.ts";
import { lanesThatWait, release } from "./park.ts";

type Host = Pick<Claimer, "hosts" | "queues" | "hostCursors">;

/** Queues about `most` jobs that wait for a host of one of our names, unless the name is paused in their tenant. Names
 *  and lanes take turns, each found by a seek, so neither a paused tenant nor one with many jobs stands before the
 *  others. What stands in a queue that is not ours stays: another would only park it again. True when there may be
 *  more. */
export async function releaseHosted(tx: Tx, { hosts, queues, hostCursors }: Host, most: number): Promise<boolean> {
  const share = Math.max(hostShare, Math.ceil(most / hosts.size));
  let more = false;
  for (const name of hosts) {
    const from = hostCursors.get(name) ?? 0;
    const reason = { tenant: "", waitsFor: "host", key: name } as const;
    const lanes = await lanesThatWait(tx, reason, from);
    let released = 0;
    let seen = 0;
    for (const lane of lanes) {
      if (released >= share || seen >= limits.claimLanesMax) break;
      hostCursors.set(name, lane);
      seen++;
      if (await isOpen(tx, lane, name, queues)) released += await release(tx, reason, hostShare, [lane]);
    }
    // After the last lane the round is over. It may have begun in the middle, or left something for the next.
    const over = seen === lanes.length && lanes.length < limits.releaseLanesMax;
    if (over) hostCursors.delete(name);
    more ||= !over || from !== 0 || released > 0;
  }
  return more;
}

/** So many jobs of one lane are released before the next lane has its turn. */
const hostShare = 5;

async function isOpen(tx: Tx, lane: number, name: string, queues: ReadonlySet<string> | null): Promise<boolean> {
  const row = await tx.get<{ queue: string; paused: number | null }>(sql`select lane.queue,
      (select 1 from daybook_paused_name paused where paused.tenant_id = lane.tenant_id and paused.name = ${name}) as paused
    from daybook_lane lane where lane.seq = ${lane}`);
  return row !== undefined && row.paused === null && (queues === null || queues.has(row.queue));
}
