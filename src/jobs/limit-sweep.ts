// A second look at jobs that wait for a limit or a rate: if there is room, the first of them are released, lane by lane. Slots are
// freed by whoever ends a run, so this only finds what a changed limit, an edited book or more lanes than are looked at
// then left behind, and on PostgreSQL what another transaction was just moving or editing.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy } from "../storage/word.ts";
import type { WaitsFor } from "./job.ts";
import { keptForDirect, limitsOf, lockLimits, nameOfKey, rateLock, tryLimits } from "./limit.ts";
import { release } from "./park.ts";
import { roomInRate } from "./rate.ts";
import { ruleOfFirst } from "./release-rates.ts";

export type Key = {
  readonly waits_for?: WaitsFor;
  readonly waits_key: string;
  readonly tenant_id: string;
  readonly lane_seq?: number;
};

/** Looks at a slice of the keys and rates that jobs wait for. `next` is where the next slice begins; undefined after the
 *  last. */
export async function releaseFreeKeys(
  tx: Tx,
  from: Key = { tenant_id: "", waits_key: "" },
): Promise<{ released: number; next: Key | undefined }> {
  let released = 0;
  let next: Key | undefined = from;
  for (let looked = 0; looked < limits.claimParkedMax; looked++) {
    next = await nextKey(tx, next);
    if (next === undefined) break;
    released += await releaseFreeKey(tx, next);
  }
  return { released, next };
}

/** For one who has held a job that waits for a limit, and not let it in: whoever freed a slot meanwhile passed it by. That
 *  one has the lock until it commits, so it is waited for, by a transaction that holds nothing else. */
export async function offerFreeKey(tx: Tx, of: Key): Promise<void> {
  await lockLimits(tx, [lockOf(of)]);
  await releaseFreeKey(tx, of);
}

function lockOf({ waits_for, tenant_id: tenant, waits_key: key }: Key): string {
  return waits_for === "time" ? rateLock(tenant, key) : `${tenant}\n${key}`;
}

/** Lets in as many as there is room for: of the lane, or of every lane when none is named. */
export async function releaseFreeKey(tx: Tx, of: Key): Promise<number> {
  const { waits_for: waitsFor = "key", tenant_id: tenant, waits_key: key, lane_seq: lane } = of;
  // Whoever has the lock is just freeing or taking a slot, and lets the next one in if there is room.
  if ((await tryLimits(tx, [lockOf(of)])).size > 0) return 0;
  const room = waitsFor === "time" ? await roomOfRate(tx, of) : await roomOf(tx, of);
  return room > 0 ? release(tx, { tenant, waitsFor, key }, room, lane === undefined ? undefined : [lane]) : 0;
}

// Each lane of a key costs one seek, however many jobs wait in it.
async function nextKey(tx: Tx, after: Key): Promise<Key | undefined> {
  const { waits_for: reason = "key", waits_key, tenant_id, lane_seq = 0 } = after;
  const found =
    await tx.get<Key>(sql`select waits_for, waits_key, tenant_id, lane_seq from job ${indexedBy("jobs_waiting")}
    where status = 'waiting' and waits_key is not null
      and (waits_for, waits_key, tenant_id, lane_seq) > (${reason}, ${waits_key}, ${tenant_id}, ${lane_seq})
    order by waits_for, waits_key, tenant_id, lane_seq limit 1`);
  if (found === undefined || found.waits_for === "key" || found.waits_for === "time") return found;
  // What stands between the two is not ours to release.
  return nextKey(tx, { waits_for: "time", waits_key: "", tenant_id: "" });
}

async function roomOfRate(tx: Tx, { tenant_id, waits_key }: Key): Promise<number> {
  const rule = await ruleOfFirst(tx, tenant_id, waits_key);
  return rule === undefined ? 0 : Math.min((await roomInRate(tx, rule)).room, limits.claimParkedMax);
}

async function roomOf(tx: Tx, { tenant_id, waits_key }: Key): Promise<number> {
  const name = nameOfKey(waits_key);
  const first = await tx.get<{ limits: string | null }>(
    sql`select limits from job where status = 'waiting' and waits_for = 'key'
      and tenant_id = ${tenant_id} and waits_key = ${waits_key}
      order by lane_seq, priority desc, position, seq limit 1`,
  );
  const used = await tx.get<{ count: number }>(
    name !== undefined
      ? sql`select count(*) as count from (
          select name_slot as slot from job where tenant_id = ${tenant_id} and name = ${name} and name_slot is not null
          union all ${keptForDirect(sql`job.tenant_id = ${tenant_id} and job.name = ${name}`)}) as taken`
      : sql`select count(*) as count from (
          select key_slot as slot from job
          where tenant_id = ${tenant_id} and limit_key = ${waits_key} and key_slot is not null
          union all ${keptForDirect(sql`job.tenant_id = ${tenant_id} and job.limit_key = ${waits_key}`)}) as taken`,
  );
  const { name: nameMax = 0, key: keyMax = 0 } = limitsOf({ limits: first?.limits ?? null });
  return Math.max(0, (name === undefined ? keyMax : nameMax) - (used?.count ?? 0));
}
