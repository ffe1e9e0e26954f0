// Deliveries as a kind of job. However one ends, its dead letter is written or ended, and the next of its key may go.
//
// Order: an ordered listener runs only the oldest unfinished delivery of each key. A waiting retry, a dead letter and a redrive
// are unfinished. The claim decides this, because it sees everything that is committed: a publisher's transaction may have
// begun before an older event was committed. A delivery that must wait is parked, and the transaction that ends the oldest
// releases the next, under the same lock.
//
// A listener that was rewound hears the old events first: the delivery of an event waits until the listener has reached it.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forShare, lockNames } from "../storage/word.ts";
import { tellLeft } from "../jobs/group/group.ts";
import { jobsChannel, seqOf, type JobRow } from "../jobs/job.ts";
import { plainKind, type Ended, type JobEnded, type JobKind, type OrderedJob } from "../jobs/kind.ts";
import { cancelInLine, queueOne } from "../jobs/state.ts";
import { waitsKey } from "../jobs/wait/park.ts";
import { endLetter, letterOf, setLetterDead, writeLetter } from "./dead-letter.ts";
import { deliveryKind } from "./event.ts";
import { deliveryName, listenerOfOrder, type ListenerState } from "./listener.ts";

export function deliveries(): JobKind {
  const letter = "a dead letter stands before it, to be redriven or discarded";
  const kind: JobKind = {
    ...plainKind,
    ended: (tx, ended) => deliveriesEnded(tx, kind, ended),
    // Most deliveries end at their first attempt and have no letter. One with a key is always settled, because the next may wait.
    quiet: (attempt) => attempt === 1,
    mustWait,
    finished: letNextGo,
    order: { behind: "An older event of its key is not finished", instead: letter },
    sweep: createOrderSweep(),
    ownsName: (name) => name.startsWith(deliveryName("")),
  };
  return kind;
}

async function deliveriesEnded(tx: Tx, kind: JobKind, ended: readonly Ended[]): Promise<void> {
  for (const { job, outcome } of ended) {
    if (outcome.retriedBy === null) await chainEnded(tx, job, outcome);
    else if (await isRemoved(tx, job)) {
      // Nobody would run it. It ends as what waited when its listener was removed.
      const retry = { tenant: job.tenant_id, id: outcome.retriedBy };
      await tellLeft(tx, { kinds: { [deliveryKind]: kind } }, await cancelInLine(tx, seqOf(retry)));
    }
  }
}

// Under a lock: a removal that is under way either is seen here, or waits and then sees the retry.
async function isRemoved(tx: Tx, { tenant_id: tenant, name }: JobRow): Promise<boolean> {
  const listener = await tx.get<{ state: ListenerState }>(sql`select state from daybook_listener
    where tenant_id = ${tenant} and name = ${name.slice(deliveryName("").length)} ${forShare}`);
  return listener?.state === "removed";
}

async function chainEnded(tx: Tx, job: JobRow, ended: JobEnded): Promise<void> {
  if (ended.status === "failed") return writeLetter(tx, job, ended);
  const letter = job.attempt === 1 ? undefined : await letterOf(tx, job);
  if (letter !== undefined && letter.ended_at === null) {
    // A cancelled redrive leaves the letter dead: a person asked for the redrive, and decides what to do next.
    if (ended.status === "cancelled") return setLetterDead(tx, letter);
    // A sink that does not take the event any more will never take it: nobody could redrive the letter to an end.
    const reason = ended.status === "skipped" ? (ended.run?.error?.message ?? "it was skipped") : null;
    await endLetter(tx, letter, { status: reason === null ? "recovered" : "discarded", reason });
  }
  await letNextGo(tx, job);
}

type Ordered = Pick<OrderedJob, "tenant_id" | "limit_key">;

/** Whether an older delivery of the key is unfinished. The caller holds the lock of the key, as claim and settle do. */
async function mustWait(tx: Tx, job: OrderedJob): Promise<boolean> {
  const { tenant_id: tenant, limit_key: key, kind_seq: event } = job;
  const before = await tx.get(sql`select 1 as found where exists (
      select 1 from daybook_line where order_key = ${lineKey(job)} and order_key is not null
        and kind_seq < ${event})
    or exists (select 1 from daybook_dead_letter where ended_at is null and order_key is not null
        and tenant_id = ${tenant} and order_key = ${key} and event_seq < ${event})
    or exists (select 1 from daybook_listener where tenant_id = ${tenant} and name = ${listenerOfOrder(key ?? "")}
        and state = 'catching_up' and heard_seq < ${event})`);
  return before !== undefined;
}

type Next = { readonly seq: number; readonly kind_seq: number; readonly waits_for: string | null };

/** Releases the oldest delivery of a key if it waits and nothing is before it. Returns how many it released. */
export async function letNextGo(tx: Tx, { tenant_id, limit_key }: Ordered): Promise<number> {
  if (limit_key === null) return 0;
  const ordered = { tenant_id, limit_key };
  await lockNames(tx, [lockName(ordered)]);
  const next = await tx.get<Next>(sql`select seq, kind_seq, waits_for from daybook_line
    where order_key = ${lineKey(ordered)} and order_key is not null order by kind_seq limit 1`);
  if (next?.waits_for !== "order") return 0;
  if (await mustWait(tx, { ...ordered, kind: null, kind_seq: next.kind_seq })) return 0;
  if (!(await queueOne(tx, next.seq, "order"))) return 0;
  tx.wake(jobsChannel);
  return 1;
}

/** The same for many keys. It locks all of them first, in one order. */
export async function letAllGo(tx: Tx, waiting: readonly Ordered[]): Promise<void> {
  const keys = new Map(waiting.map((each) => [lockName(each), each]));
  if (keys.size === 0) return;
  await lockNames(tx, [...keys.keys()]);
  for (const each of keys.values()) await letNextGo(tx, each);
}

function lockName({ tenant_id: tenant, limit_key: key }: Ordered): string {
  return `${tenant}\n${key}`;
}

function lineKey({ tenant_id: tenant, limit_key: key }: Ordered): string {
  return waitsKey({ tenant, waitsFor: "order", key: key ?? "" });
}

/** Looks again at every key with open deliveries, some at a time, for those that a transaction with an old view left waiting. */
function createOrderSweep(): (tx: Tx) => Promise<number> {
  let reached = "";
  return async (tx) => {
    // A local copy: two sweeps at once would lock keys out of order.
    let from = reached;
    let released = 0;
    for (let looked = 0; looked < limits.claimParkedMax; looked++) {
      const next = await tx.get<{ order_key: string }>(sql`select order_key from daybook_line
        where order_key is not null and order_key > ${from} and kind = 'delivery' order by order_key limit 1`);
      from = next?.order_key ?? "";
      if (next === undefined) break;
      const [tenant_id = "", ...key] = from.split("\n");
      released += await letNextGo(tx, { tenant_id, limit_key: key.join("\n") });
    }
    tx.afterCommit(() => (reached = from));
    return released;
  };
}
