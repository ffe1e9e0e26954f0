// The live listeners of every tenant, in memory, by the patterns they hear: a publish costs what matches, not what exists. The
// index is valid while its stamp is the book's; a publisher that finds another stamp reads the listeners anew.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import { holdListeners, newTenants, type ListenerRow } from "./listener.ts";
import { openPatternIndex, type PatternIndex } from "./topic.ts";

/** The listeners of one tenant: the live ones by pattern, and the names of all. */
type Own = { readonly live: PatternIndex<ListenerRow>; readonly names: Set<string> };

type Known = {
  readonly stamp: string;
  readonly tenants: Map<string, Own>;
  /** The listeners for all tenants, for tenants that are still to come. */
  readonly forAll: readonly ListenerRow[];
};

/** The live listeners of a tenant that hear the topic. None is missed, and no new one begins until the transaction ends. */
export async function listenersOf(tx: Tx, tenant: string, topic: string): Promise<readonly ListenerRow[]> {
  const found = await knownAt(tx, await holdListeners(tx));
  const own = found.tenants.get(tenant);
  const missing = found.forAll.filter(({ name }) => own?.names.has(name) !== true);
  if (missing.length > 0) return listenersOfNew(tx, found, { tenant, topic, missing });
  return own === undefined ? [] : [...own.live.match(topic)];
}

type New = { readonly tenant: string; readonly topic: string; readonly missing: readonly ListenerRow[] };

// The copies go into the index once they are committed: after a rollback they do not exist.
async function listenersOfNew(tx: Tx, found: Known, { tenant, topic, missing }: New): Promise<ListenerRow[]> {
  const joined = await join(tx, tenant, missing);
  tx.afterCommit(() => {
    for (const row of joined) add(found.tenants, row);
  });
  const all = openPatternIndex<ListenerRow>();
  for (const row of joined) if (row.state === "live") for (const pattern of topicsOf(row)) all.add(pattern, row);
  return [...(found.tenants.get(tenant)?.live.match(topic) ?? []), ...all.match(topic)];
}

/** Gives a tenant its own copy of these listeners. If another transaction has just done so, that copy is used. All copies are
 *  made together and in one order: two transactions that each make some of them could otherwise deadlock. */
async function join(tx: Tx, tenant: string, listeners: readonly ListenerRow[]): Promise<ListenerRow[]> {
  for (const { seq, queue } of listeners.toSorted((a, b) => a.seq - b.seq)) {
    await laneOf(tx, tenant, queue);
    await tx.run(sql`insert into daybook_listener (tenant_id, name, topics, queue, ordered, attempts, backoff, timeout_ms, losses,
        concurrency, starts_from, starts_at, starts_seq, state, heard_seq, for_all, registered_at, updated_at)
      select ${tenant}, name, topics, queue, ordered, attempts, backoff, timeout_ms, losses,
        concurrency, starts_from, starts_at, starts_seq, 'live', 0, 1, ${tx.now}, ${tx.now}
      from daybook_listener where seq = ${seq} on conflict do nothing`);
  }
  const names = listeners.map(({ name }) => name);
  return tx.all<ListenerRow>(
    sql`select * from daybook_listener where tenant_id = ${tenant} and name ${anyOf("text", names)}`,
  );
}

/** Whether a live listener of any tenant hears one of the topics. It takes no lock: a listener that begins meanwhile begins after
 *  what this transaction publishes. */
export async function anybodyHears(tx: Tx, topics: readonly string[]): Promise<boolean> {
  const row = await tx.get<{ stamp: string }>(sql`select stamp from daybook_listener_change where one = 1`);
  const { tenants } = await knownAt(tx, row?.stamp ?? "");
  return tenants.values().some(({ live }) => topics.some((topic) => live.match(topic).size > 0));
}

async function knownAt(tx: Tx, stamp: string): Promise<Known> {
  // A stamp is never used twice, so what a transaction that was rolled back left here is never taken for valid.
  const kept = tx.keep("listener index", (): { index: Known | undefined } => ({ index: undefined }));
  if (kept.index?.stamp === stamp) return kept.index;
  const rows = await tx.all<ListenerRow>(sql`select * from daybook_listener order by seq`);
  const tenants = new Map<string, Own>();
  for (const row of rows) add(tenants, row);
  const forAll = rows.filter((row) => row.tenant_id === newTenants && row.state === "live");
  kept.index = { stamp, tenants, forAll };
  return kept.index;
}

function add(tenants: Map<string, Own>, row: ListenerRow): void {
  let own = tenants.get(row.tenant_id);
  if (own === undefined) tenants.set(row.tenant_id, (own = { live: openPatternIndex(), names: new Set() }));
  // Two transactions may have met the same new tenant.
  if (own.names.has(row.name)) return;
  own.names.add(row.name);
  if (row.state === "live") for (const pattern of topicsOf(row)) own.live.add(pattern, row);
}

export function topicsOf({ topics }: Pick<ListenerRow, "topics">): readonly string[] {
  return JSON.parse(topics) as string[];
}
