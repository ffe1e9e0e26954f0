// A durable listener as the book keeps it, by its name. Its deliveries are jobs of one name, so that they are hosted,
// paused, limited and explained like any other.
import { lockKeyOf, lockNames } from "../storage/lock-key.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forShare } from "../storage/word.ts";

export type ListenerState = "live" | "catching_up" | "removed";

export type ListenerRow = {
  seq: number;
  tenant_id: string;
  name: string;
  /** JSON: the patterns it hears. */
  topics: string;
  queue: string;
  ordered: number;
  attempts: number;
  backoff: string | null;
  timeout_ms: number | null;
  losses: number;
  concurrency: number | null;
  starts_from: "now" | "beginning" | "time" | "event";
  starts_at: number | null;
  /** It hears what comes after this. */
  starts_seq: number;
  state: ListenerState;
  /** While it catches up: what was said up to here has its delivery, if it needs one. */
  heard_seq: number;
  /** While it catches up: everything up to here is committed. */
  heard_to: number | null;
  /** 1: it is one of each tenant. */
  for_all: number;
  registered_at: number;
  updated_at: number;
  removed_at: number | null;
};

/** A listener for all tenants is one listener of each of them, with its own position, pause and dead letters. The book also
 *  keeps it once under this name, for tenants that come later: the first publish in a new tenant makes that tenant's own copy
 *  in the same transaction, so the listener hears that first event too. No tenant can have this name. */
export const newTenants = "*";

/** The name of a listener's deliveries among jobs. A job of that name cannot be defined beside it. */
export function deliveryName(listener: string): string {
  return `listener:${listener}`;
}

/** The order that a delivery keeps: of one listener, by the key of the event. */
export function orderKey(listener: string, key: string): string {
  return `${deliveryName(listener)}\n${key}`;
}

/** The listener of such an order. A name holds no line break, whatever a key holds. */
export function listenerOfOrder(order: string): string {
  return order.slice(deliveryName("").length, order.indexOf("\n"));
}

// Which listeners there are must not change between the moment a publisher looks and its commit: else an event could be
// committed after a listener has begun, and have no delivery for it. SQLite has one writer. On PostgreSQL publishers share
// a lock and whoever changes listeners holds it alone; an advisory one, because those who wait for it do so in turn, and
// steady publishers cannot keep a new listener out for ever. The row is read after the lock, and locked as well: a
// serializable transaction that began before the change is refused and run again instead of seeing the old row.
const lockName = "listeners";

/** The stamp of what listeners there are; it stays true until the transaction ends. */
export async function holdListeners(tx: Tx): Promise<string> {
  const read = sql`select stamp from daybook_listener_change where one = 1 ${forShare}`;
  if (tx.dialect === "sqlite") return (await tx.get<{ stamp: string }>(read))?.stamp ?? "";
  // Both are on the way at once; the server takes one after the other.
  const [, row] = await Promise.all([
    tx.all(sql`select pg_catalog.pg_advisory_xact_lock_shared(${lockKeyOf(lockName)})`),
    tx.get<{ stamp: string }>(read),
  ]);
  return row?.stamp ?? "";
}

/** Waits for publishers that are under way, and keeps new ones out until the transaction ends. Everything that was
 *  published is committed then, and has a lower number than whatever comes. */
export async function closeListeners(tx: Tx): Promise<void> {
  await lockNames(tx, [lockName]);
}

/** Tells publishers, in this process and in others, that what they know of listeners is old. */
export async function stampListeners(tx: Tx): Promise<void> {
  await tx.run(sql`update daybook_listener_change set stamp = ${tx.ids()} where one = 1`);
}

/** The number of the last event of a tenant; all before it are committed while listeners are closed. */
export async function lastSeq(tx: Tx, tenant: string): Promise<number> {
  const row = await tx.get<{ seq: number | null }>(
    sql`select max(seq) as seq from daybook_event where tenant_id = ${tenant}`,
  );
  return row?.seq ?? 0;
}
