// Order: of the deliveries to one listener of events with one key, only the oldest that is not finished may run; and a
// waiting retry, a dead letter and one that is redriven are not finished. The claim asks, because it alone sees everything
// that is committed: a publisher's transaction may be older than what stands before it. What must wait is parked, and
// whoever ends the oldest lets the next one go, in the same transaction and under the same lock.
//
// A listener that was set back hears the old events first: until it has come to an event, that one's delivery waits.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { OrderedJob } from "../jobs/hooks.ts";
import { jobsChannel } from "../jobs/job.ts";
import { lockLimits } from "../jobs/limit.ts";
import { listenerOfOrder } from "./listener.ts";

/** Whether one before it is not finished. Asked under the lock of its key, which claim and settle take. */
export async function mustWait(tx: Tx, job: OrderedJob): Promise<boolean> {
  const { tenant_id: tenant, limit_key: key, kind_seq: event } = job;
  const before = await tx.get(sql`select 1 as found where exists (
      select 1 from job where kind = 'delivery' and limit_key is not null and finished_at is null
        and tenant_id = ${tenant} and limit_key = ${key} and kind_seq < ${event})
    or exists (select 1 from dead_letter where ended_at is null and order_key is not null
        and tenant_id = ${tenant} and order_key = ${key} and event_seq < ${event})
    or exists (select 1 from listener where tenant_id = ${tenant} and name = ${listenerOfOrder(key ?? "")}
        and state = 'catching_up' and heard_seq < ${event})`);
  return before !== undefined;
}

/** Lets the oldest go, if it waits for its turn and nothing stands before it. Says how many it let go. */
export async function letNextGo(tx: Tx, { tenant_id: tenant, limit_key: key }: Ordered): Promise<number> {
  if (key === null) return 0;
  await lockLimits(tx, [`${tenant}\n${key}`]);
  const next = await tx.get<
    OrderedJob & { seq: number; waits_for: string | null }
  >(sql`select seq, tenant_id, limit_key,
      kind, kind_seq, waits_for from job
    where kind = 'delivery' and limit_key is not null and finished_at is null
      and tenant_id = ${tenant} and limit_key = ${key} order by kind_seq limit 1`);
  if (next?.waits_for !== "order" || (await mustWait(tx, next))) return 0;
  const released = await tx.run(sql`update job set status = 'queued', waits_for = null, waits_key = null
    where seq = ${next.seq} and status = 'waiting' and waits_for = 'order'`);
  if (released > 0) tx.wake(jobsChannel);
  return released;
}

/** The same for those of many keys, which are locked first, all of them in one order. */
export async function letAllGo(tx: Tx, waiting: readonly Ordered[]): Promise<void> {
  const keys = new Map(waiting.map((each) => [`${each.tenant_id}\n${each.limit_key}`, each]));
  if (keys.size === 0) return;
  await lockLimits(tx, [...keys.keys()]);
  for (const each of keys.values()) await letNextGo(tx, each);
}

type Ordered = Pick<OrderedJob, "tenant_id" | "limit_key">;

/** A second look at every key with open deliveries, some at a time: what a transaction that saw too little left behind. */
export function createOrderSweep(): (tx: Tx) => Promise<number> {
  let from: { tenant_id: string; limit_key: string } = { tenant_id: "", limit_key: "" };
  return async (tx) => {
    let released = 0;
    for (let looked = 0; looked < limits.claimParkedMax; looked++) {
      const next = await nextKey(tx, from);
      from = next ?? { tenant_id: "", limit_key: "" };
      if (next === undefined) break;
      released += await letNextGo(tx, next);
    }
    return released;
  };
}

async function nextKey(
  tx: Tx,
  after: { readonly tenant_id: string; readonly limit_key: string },
): Promise<{ tenant_id: string; limit_key: string } | undefined> {
  return tx.get(sql`select tenant_id, limit_key from job
    where kind = 'delivery' and limit_key is not null and finished_at is null
      and (tenant_id, limit_key) > (${after.tenant_id}, ${after.limit_key})
    order by tenant_id, limit_key limit 1`);
}
