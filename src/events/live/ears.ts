// Live listeners of the process that publishes hear of it from its own commit, without reading it back.
import type { Ids } from "../../core/id.ts";
import type { Tx } from "../../storage/store.ts";
import type { EventRow } from "../event.ts";
import type { LiveEvent } from "./live-event.ts";

type Hear = (event: EventRow) => void;

// By the maker of ids, of which each open store has one: two books of one process do not hear each other.
const ears = new WeakMap<Ids, Set<Hear>>();

/** Returns the function that ends it. */
export function onPublished(ids: Ids, hear: Hear): () => void {
  const all = ears.get(ids) ?? new Set();
  ears.set(ids, all.add(hear));
  return () => void all.delete(hear);
}

/** Who hears what the engine states in this process, where it is not stored because no durable listener hears it. */
export type FactEar = {
  /** The tenants of the live listeners that hear the topic. */
  tenants(topic: string): ReadonlySet<string>;
  wants(tenant: string, topic: string): boolean;
  hear(fact: LiveEvent): void;
};

const factEars = new WeakMap<Ids, FactEar>();

export function onFacts(ids: Ids, ear: FactEar): () => void {
  factEars.set(ids, ear);
  return () => void factEars.delete(ids);
}

export function factEar(tx: Tx): FactEar | undefined {
  return factEars.get(tx.ids);
}

export function tellPublished(tx: Tx, event: EventRow): void {
  // What is said again is for those who must make up for it; live listeners live in the present.
  if (event.replay_of !== null) return;
  const all = ears.get(tx.ids);
  if (all === undefined || all.size === 0) return;
  tx.afterCommit(() => {
    for (const hear of all) hear(event);
  });
}
