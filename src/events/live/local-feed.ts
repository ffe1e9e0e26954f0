// How live listeners hear what happens in their own process: directly from its commits, without reading it back from the book.
import type { Keep } from "../../core/remember.ts";
import type { Tx } from "../../storage/store.ts";
import type { EventRow } from "../event.ts";
import type { LiveEvent } from "./live-event.ts";

type Hear = (event: EventRow) => void;

/** Live listeners to facts of the engine. A fact is not stored while no durable listener hears it. */
export type FactFeed = {
  /** The tenants whose live listeners hear the topic. */
  tenants(topic: string): ReadonlySet<string>;
  wants(tenant: string, topic: string): boolean;
  hear(fact: LiveEvent): void;
};

type LocalFeed = { readonly published: Set<Hear>; facts: FactFeed | undefined };

// One per open store: two books of one process do not hear each other.
function feedOf({ keep }: { readonly keep: Keep }): LocalFeed {
  return keep("local feed", () => ({ published: new Set<Hear>(), facts: undefined }));
}

/** Hears every event that this process commits. Returns the function that ends it. */
export function onPublished(store: { readonly keep: Keep }, hear: Hear): () => void {
  const { published } = feedOf(store);
  published.add(hear);
  return () => void published.delete(hear);
}

/** Hears the facts of this process. Returns the function that ends it. */
export function onFacts(store: { readonly keep: Keep }, facts: FactFeed): () => void {
  const feed = feedOf(store);
  feed.facts = facts;
  return () => void (feed.facts = undefined);
}

export function factFeed(tx: Tx): FactFeed | undefined {
  return feedOf(tx).facts;
}

/** Hands a new event to the live listeners of this process once it is committed. */
export function feedPublished(tx: Tx, event: EventRow): void {
  // A replay is for durable listeners that have to make up for it; live listeners hear the present.
  if (event.replay_of !== null) return;
  const { published } = feedOf(tx);
  if (published.size === 0) return;
  tx.afterCommit(() => {
    for (const hear of published) hear(event);
  });
}
