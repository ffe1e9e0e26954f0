// A second look at jobs that wait for a limit or a rate: if there is room, the first of them are released, lane by lane. Permits
// are freed by whoever ends a run, so this only finds what a changed limit, an edited book or more lanes than are looked at
// then left behind, and on PostgreSQL what another transaction was just moving or editing.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy } from "../storage/word.ts";
import { lockLimits, nameOfKey, rateLock, takenPermits, tryLimits } from "./limit.ts";
import { release } from "./park.ts";
import { roomInRate } from "./rate.ts";
import { limitsOfFirst, ruleOfFirst } from "./release-rates.ts";

/** A limit that jobs wait for, or with `time` a rate. */
export type LimitKey = { readonly waitsFor?: "key" | "time"; readonly tenant: string; readonly key: string };

/** Where a slice of the sweep begins. */
export type From = { readonly waits_for: "key" | "time"; readonly waits_key: string; readonly lane_seq: number };

const first: From = { waits_for: "key", waits_key: "", lane_seq: 0 };

/** Looks at a slice of the keys and rates that jobs wait for. `next` is where the next slice begins; undefined after the
 *  last. */
export async function releaseFreeKeys(
  tx: Tx,
  from: From = first,
): Promise<{ released: number; next: From | undefined }> {
  let released = 0;
  let next: From | undefined = from;
  for (let looked = 0; looked < limits.claimParkedMax; looked++) {
    next = await nextKey(tx, next);
    if (next === undefined) break;
    const [tenant = "", ...key] = next.waits_key.split("\n");
    released += await releaseFreeKey(tx, { waitsFor: next.waits_for, tenant, key: key.join("\n") }, [next.lane_seq]);
  }
  return { released, next };
}

/** For one who has held a job that waits for a limit, and not let it in: whoever freed a permit meanwhile passed it by. That
 *  one has the lock until it commits, so it is waited for, by a transaction that holds nothing else. */
export async function offerFreeKey(tx: Tx, of: LimitKey): Promise<void> {
  await lockLimits(tx, [lockOf(of)]);
  await releaseFreeKey(tx, of);
}

function lockOf({ waitsFor, tenant, key }: LimitKey): string {
  return waitsFor === "time" ? rateLock(tenant, key) : `${tenant}\n${key}`;
}

/** Lets in as many as there is room for: of the lanes, or of every lane when none is named. */
export async function releaseFreeKey(tx: Tx, of: LimitKey, lanes?: readonly number[]): Promise<number> {
  const { waitsFor = "key", tenant, key } = of;
  // Whoever has the lock is just freeing or taking a permit, and lets the next one in if there is room.
  if ((await tryLimits(tx, [lockOf(of)])).size > 0) return 0;
  const room = waitsFor === "time" ? await roomOfRate(tx, of) : await roomOf(tx, of);
  return room > 0 ? release(tx, { tenant, waitsFor, key }, room, lanes) : 0;
}

// Each lane of a key costs one seek, however many jobs wait in it.
async function nextKey(tx: Tx, { waits_for, waits_key, lane_seq }: From): Promise<From | undefined> {
  const found =
    await tx.get<From>(sql`select waits_for, waits_key, lane_seq from daybook_line ${indexedBy("jobs_waiting")}
    where status = 'waiting' and waits_key is not null
      and (waits_for, waits_key, lane_seq) > (${waits_for}, ${waits_key}, ${lane_seq})
    order by waits_for, waits_key, lane_seq limit 1`);
  if (found === undefined || found.waits_for === "key" || found.waits_for === "time") return found;
  // What stands between the two is not ours to release.
  return nextKey(tx, { waits_for: "time", waits_key: "", lane_seq: 0 });
}

async function roomOfRate(tx: Tx, { tenant, key }: LimitKey): Promise<number> {
  const rule = await ruleOfFirst(tx, tenant, key);
  return rule === undefined ? 0 : Math.min((await roomInRate(tx, rule)).room, limits.claimParkedMax);
}

async function roomOf(tx: Tx, { tenant, key }: LimitKey): Promise<number> {
  const { name: nameMax = 0, key: keyMax = 0 } = await limitsOfFirst(tx, { tenant, waitsFor: "key", key });
  const used = await tx.get<{ count: number }>(
    sql`select count(*) as count from (${takenPermits(tenant, key)}) as taken`,
  );
  return Math.max(0, (nameOfKey(key) === undefined ? keyMax : nameMax) - (used?.count ?? 0));
}
