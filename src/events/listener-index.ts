// The live listeners of every tenant, in memory, by the patterns they hear: publishing costs what matches, not what
// exists. It is right as long as its stamp is the book's; whoever finds another reads the list anew.
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { join, nobody } from "./all-tenants.ts";
import { holdListeners, type ListenerRow } from "./listener.ts";
import { openPatternIndex, type PatternIndex } from "./pattern-index.ts";

/** The listeners of one tenant: those that are live by what they hear, and the names of all. */
type Own = { readonly live: PatternIndex<ListenerRow>; readonly names: Set<string> };

type Known = {
  readonly stamp: string;
  readonly tenants: Map<string, Own>;
  /** Those for all tenants, for who is to come. */
  readonly forAll: readonly ListenerRow[];
};

// A stamp is given once and never again, so what an undone transaction left here is never taken for true.
const known = new WeakMap<Store["ids"], Known>();

/** The live listeners of a tenant that hear the topic. None is missed, and none begins before the transaction ends. */
export async function listenersOf(tx: Tx, tenant: string, topic: string): Promise<readonly ListenerRow[]> {
  const found = await knownAt(tx, await holdListeners(tx));
  const own = found.tenants.get(tenant);
  const missing = found.forAll.filter(({ name }) => own?.names.has(name) !== true);
  if (missing.length > 0) return listenersOfNew(tx, found, { tenant, topic, missing });
  return own === undefined ? [] : [...own.live.match(topic)];
}

type New = { readonly tenant: string; readonly topic: string; readonly missing: readonly ListenerRow[] };

// It is kept in memory once it is committed: what an undone transaction has made does not exist.
async function listenersOfNew(tx: Tx, found: Known, { tenant, topic, missing }: New): Promise<ListenerRow[]> {
  const joined = await join(tx, tenant, missing);
  tx.afterCommit(() => {
    for (const row of joined) add(found.tenants, row);
  });
  const all = openPatternIndex<ListenerRow>();
  for (const row of joined) if (row.state === "live") for (const pattern of topicsOf(row)) all.add(pattern, row);
  return [...(found.tenants.get(tenant)?.live.match(topic) ?? []), ...all.match(topic)];
}

/** Whether a live listener of any tenant hears one of the topics. Nothing is held: one that begins now is not missed, it
 *  only begins after what this transaction has to tell. */
export async function anybodyHears(tx: Tx, topics: readonly string[]): Promise<boolean> {
  const row = await tx.get<{ stamp: string }>(sql`select stamp from daybook_listener_change where one = 1`);
  const { tenants } = await knownAt(tx, row?.stamp ?? "");
  return tenants.values().some(({ live }) => topics.some((topic) => live.match(topic).size > 0));
}

async function knownAt(tx: Tx, stamp: string): Promise<Known> {
  const found = known.get(tx.ids);
  if (found?.stamp === stamp) return found;
  const rows = await tx.all<ListenerRow>(sql`select * from daybook_listener order by seq`);
  const tenants = new Map<string, Own>();
  for (const row of rows) add(tenants, row);
  const forAll = rows.filter((row) => row.tenant_id === nobody && row.state === "live");
  const read = { stamp, tenants, forAll };
  known.set(tx.ids, read);
  return read;
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
