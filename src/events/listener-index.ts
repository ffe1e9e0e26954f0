// The live listeners of every tenant, in memory, by the patterns they hear: publishing costs what matches, not what
// exists. It is right as long as its stamp is the book's; whoever finds another reads the list anew.
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { holdListeners, type ListenerRow } from "./listener.ts";
import { openPatternIndex, type PatternIndex } from "./pattern-index.ts";

type Known = { readonly stamp: string; readonly tenants: ReadonlyMap<string, PatternIndex<ListenerRow>> };

// A stamp is given once and never again, so what an undone transaction left here is never taken for true.
const known = new WeakMap<Store["ids"], Known>();

const nobody: readonly ListenerRow[] = [];

/** The live listeners of a tenant that hear the topic. None is missed, and none begins before the transaction ends. */
export async function listenersOf(tx: Tx, tenant: string, topic: string): Promise<readonly ListenerRow[]> {
  const found = await knownAt(tx, await holdListeners(tx));
  const index = found.tenants.get(tenant);
  if (index === undefined) return nobody;
  return [...index.match(topic)];
}

/** Whether a live listener of any tenant hears one of the topics. Nothing is held: one that begins now is not missed, it
 *  only begins after what this transaction has to tell. */
export async function anybodyHears(tx: Tx, topics: readonly string[]): Promise<boolean> {
  const row = await tx.get<{ stamp: string }>(sql`select stamp from listener_change where one = 1`);
  const { tenants } = await knownAt(tx, row?.stamp ?? "");
  return tenants.values().some((index) => topics.some((topic) => index.match(topic).size > 0));
}

async function knownAt(tx: Tx, stamp: string): Promise<Known> {
  const found = known.get(tx.ids);
  if (found?.stamp === stamp) return found;
  const read = { stamp, tenants: await readAll(tx) };
  known.set(tx.ids, read);
  return read;
}

async function readAll(tx: Tx): Promise<Known["tenants"]> {
  const rows = await tx.all<ListenerRow>(sql`select * from listener where state = 'live' order by seq`);
  const tenants = new Map<string, PatternIndex<ListenerRow>>();
  for (const row of rows) {
    let index = tenants.get(row.tenant_id);
    if (index === undefined) tenants.set(row.tenant_id, (index = openPatternIndex<ListenerRow>()));
    for (const pattern of topicsOf(row)) index.add(pattern, row);
  }
  return tenants;
}

export function topicsOf({ topics }: Pick<ListenerRow, "topics">): readonly string[] {
  return JSON.parse(topics) as string[];
}
