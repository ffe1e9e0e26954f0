// A durable listener as the book keeps it, by its name. All its deliveries are jobs with one name, so jobs' own means to host,
// pause, limit and explain serve them too.
import { conflict, notFound, type DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { lockKeyOf, lockNames, forShare } from "../storage/word.ts";

export type ListenerState = "live" | "catching_up" | "removed";

export type ListenerRow = {
  seq: number;
  tenant_id: string;
  name: string;
  /** JSON: the patterns it hears. */
  topics: string;
  /** Which of their events it takes, in words; null when it takes all. */
  predicate: string | null;
  queue: string;
  ordered: number;
  attempts: number;
  backoff: string | null;
  timeout_ms: number | null;
  losses: number;
  concurrency: number | null;
  starts_from: "now" | "beginning" | "time" | "event";
  starts_at: number | null;
  /** It hears events after this one. */
  starts_seq: number;
  state: ListenerState;
  /** While it catches up: every event up to here that it hears has a delivery. */
  heard_seq: number;
  /** While it catches up: every event up to here is committed. */
  heard_to: number | null;
  /** 1: every tenant has this listener. */
  for_all: number;
  registered_at: number;
  updated_at: number;
  removed_at: number | null;
};

/** A listener for all tenants is one listener of each of them, with its own position, pause and dead letters. The book also
 *  keeps it once under this name, for tenants that come later: the first publish in a new tenant makes that tenant's own copy
 *  in the same transaction, so the listener hears that first event too. No tenant can have this name. */
export const newTenants = "*";

/** The name of a listener's deliveries among jobs. No job with that name can be defined beside it. */
export function deliveryName(listener: string): string {
  return `listener:${listener}`;
}

/** What an ordered delivery is ordered by: its listener and the key of its event. */
export function orderKey(listener: string, key: string): string {
  return `${deliveryName(listener)}\n${key}`;
}

/** The listener of an order key. A listener's name has no line break, whatever the event's key has. */
export function listenerOfOrder(order: string): string {
  return order.slice(deliveryName("").length, order.indexOf("\n"));
}

// The set of listeners must not change between a publisher's look and its commit: otherwise an event could be committed after
// a listener has begun, without a delivery for it. SQLite has one writer. On PostgreSQL publishers share a lock, and a change
// of listeners takes it exclusively. It is an advisory lock because those are granted in turn, so steady publishers cannot
// keep a new listener out for ever. The row is read after the lock and locked too: PostgreSQL then refuses and reruns a
// serializable transaction that began before the change, instead of showing it the old row.
const lockName = "listeners";

/** The stamp of the set of listeners, which cannot change until the transaction ends. */
export async function holdListeners(tx: Tx): Promise<string> {
  const read = sql`select stamp from daybook_listener_change where one = 1 ${forShare}`;
  if (tx.dialect === "sqlite") return (await tx.get<{ stamp: string }>(read))?.stamp ?? "";
  // Both statements travel together; the server runs them in this order.
  const [, row] = await Promise.all([
    tx.all(sql`select pg_catalog.pg_advisory_xact_lock_shared(${lockKeyOf(lockName)})`),
    tx.get<{ stamp: string }>(read),
  ]);
  return row?.stamp ?? "";
}

/** Waits for publishers that are under way, and keeps new ones out until the transaction ends. By then every published event
 *  is committed and has a lower number than any later one. */
export async function closeListeners(tx: Tx): Promise<void> {
  await lockNames(tx, [lockName]);
}

/** Tells the publishers of every process to read the listeners anew. */
export async function stampListeners(tx: Tx): Promise<void> {
  await tx.run(sql`update daybook_listener_change set stamp = ${tx.ids()} where one = 1`);
}

/** The number of a tenant's last event. While listeners are closed, all events before it are committed. */
export async function lastSeq(tx: Tx, tenant: string): Promise<number> {
  const row = await tx.get<{ seq: number | null }>(
    sql`select max(seq) as seq from daybook_event where tenant_id = ${tenant}`,
  );
  return row?.seq ?? 0;
}

/** The listener with this name, unless it was removed. */
export async function findListener(tx: Tx, name: string, { removed = false } = {}): Promise<ListenerRow> {
  const row = await tx.get<ListenerRow>(
    sql`select * from daybook_listener where tenant_id = ${tx.tenant} and name = ${name}`,
  );
  if (row !== undefined && (removed || row.state !== "removed")) return row;
  throw noListener(name);
}

export function noListener(name: string): DaybookError {
  return notFound(`there is no listener ${quote(name)}`, { name });
}

/** The listener that is live; `advice` says what to do while it still catches up. */
export async function findLive(tx: Tx, name: string, advice: string): Promise<ListenerRow> {
  const row = await findListener(tx, name);
  if (row.state === "live") return row;
  throw conflict(`listener "${name}" still catches up: ${advice}`, { name, state: row.state });
}

export function topicsOf({ topics }: Pick<ListenerRow, "topics">): readonly string[] {
  return JSON.parse(topics) as string[];
}
