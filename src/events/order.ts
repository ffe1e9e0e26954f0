// Order: an ordered listener runs only the oldest unfinished delivery of each key. A waiting retry, a dead letter and a redrive
// are unfinished. The claim decides this, because it sees everything that is committed: a publisher's transaction may have
// begun before an older event was committed. A delivery that must wait is parked, and the transaction that ends the oldest
// releases the next, under the same lock.
//
// A listener that was rewound hears the old events first: the delivery of an event waits until the listener has reached it.
import { lockNames } from "../storage/word.ts";
import { waitsKey } from "../jobs/wait/park.ts";
import { queueOne } from "../jobs/state.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { OrderedJob } from "../jobs/kind.ts";
import { jobsChannel } from "../jobs/job.ts";
import { listenerOfOrder } from "./listener.ts";

/** Whether an older delivery of the key is unfinished. The caller holds the lock of the key, as claim and settle do. */
export async function mustWait(tx: Tx, job: OrderedJob): Promise<boolean> {
  const { tenant_id: tenant, limit_key: key, kind_seq: event } = job;
  const before = await tx.get(sql`select 1 as found where exists (
      select 1 from daybook_line where order_key = ${lineKey({ tenant, key })} and order_key is not null
        and kind_seq < ${event})
    or exists (select 1 from daybook_dead_letter where ended_at is null and order_key is not null
        and tenant_id = ${tenant} and order_key = ${key} and event_seq < ${event})
    or exists (select 1 from daybook_listener where tenant_id = ${tenant} and name = ${listenerOfOrder(key ?? "")}
        and state = 'catching_up' and heard_seq < ${event})`);
  return before !== undefined;
}

/** Releases the oldest delivery of a key if it waits and nothing is before it. Returns how many it released. */
export async function letNextGo(tx: Tx, { tenant_id: tenant, limit_key: key }: Ordered): Promise<number> {
  if (key === null) return 0;
  await lockNames(tx, [`${tenant}\n${key}`]);
  const next = await tx.get<{
    seq: number;
    kind_seq: number;
    waits_for: string | null;
  }>(sql`select seq, kind_seq, waits_for
    from daybook_line where order_key = ${lineKey({ tenant, key })} and order_key is not null order by kind_seq limit 1`);
  if (next?.waits_for !== "order") return 0;
  if (await mustWait(tx, { tenant_id: tenant, limit_key: key, kind: null, kind_seq: next.kind_seq })) return 0;
  if (!(await queueOne(tx, next.seq, "order"))) return 0;
  tx.wake(jobsChannel);
  return 1;
}

function lineKey({ tenant, key }: { readonly tenant: string; readonly key: string | null }): string {
  return waitsKey({ tenant, waitsFor: "order", key: key ?? "" });
}

/** The same for many keys. It locks all of them first, in one order. */
export async function letAllGo(tx: Tx, waiting: readonly Ordered[]): Promise<void> {
  const keys = new Map(waiting.map((each) => [`${each.tenant_id}\n${each.limit_key}`, each]));
  if (keys.size === 0) return;
  await lockNames(tx, [...keys.keys()]);
  for (const each of keys.values()) await letNextGo(tx, each);
}

type Ordered = Pick<OrderedJob, "tenant_id" | "limit_key">;

/** Looks again at every key with open deliveries, some at a time, for those that a transaction with an old view left waiting. */
export function createOrderSweep(): (tx: Tx) => Promise<number> {
  let reached = "";
  return async (tx) => {
    // A local copy: two sweeps at once would lock keys out of order.
    let from = reached;
    let released = 0;
    for (let looked = 0; looked < limits.claimParkedMax; looked++) {
      const next = await nextKey(tx, from);
      from = next ?? "";
      if (next === undefined) break;
      const [tenant_id = "", ...key] = next.split("\n");
      released += await letNextGo(tx, { tenant_id, limit_key: key.join("\n") });
    }
    tx.afterCommit(() => (reached = from));
    return released;
  };
}

async function nextKey(tx: Tx, after: string): Promise<string | undefined> {
  const row = await tx.get<{ order_key: string }>(sql`select order_key from daybook_line
    where order_key is not null and order_key > ${after} and kind = 'delivery' order by order_key limit 1`);
  return row?.order_key;
}
