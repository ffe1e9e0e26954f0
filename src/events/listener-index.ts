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
  const stamp = await holdListeners(tx);
  let found = known.get(tx.ids);
  if (found?.stamp !== stamp) known.set(tx.ids, (found = { stamp, tenants: await readAll(tx) }));
  const index = found.tenants.get(tenant);
  if (index === undefined) return nobody;
  return [...index.match(topic)];
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
