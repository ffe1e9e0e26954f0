// Who hears a topic. The durable listeners of every tenant stand in memory by their patterns: a publish costs what matches, not
// what exists. That index is valid while its stamp is the book's; a publisher that finds another stamp reads the listeners anew.
// The live listeners of this process hear its commits directly, without reading them back from the book.
import type { Keep } from "../core/remember.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { tellsOfSuccess } from "../jobs/settle/notify.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import type { EventRow, LiveEvent } from "./event.ts";
import { holdListeners, newTenants, topicsOf, type ListenerRow } from "./listener.ts";
import { matchesTopic, openPatternIndex, type PatternIndex } from "./topic.ts";

/** The listeners of one tenant: the live ones by pattern, and the names of all. */
type Own = { readonly live: PatternIndex<ListenerRow>; readonly names: Set<string> };

type Known = {
  readonly stamp: string;
  readonly tenants: Map<string, Own>;
  /** The listeners for all tenants, for tenants that are still to come. */
  readonly forAll: readonly ListenerRow[];
  /** Whether a notice tells of jobs that succeed. Its change gives the book another stamp, too. */
  readonly successTold: boolean;
  /** By topic: whether a listener of any tenant hears it. Asked whenever a job ends, so the answer is remembered. */
  readonly heard: Map<string, boolean>;
};

/** The live listeners of a tenant that hear the topic. None is missed, and no new one begins until the transaction ends. */
export async function listenersOf(tx: Tx, tenant: string, topic: string): Promise<readonly ListenerRow[]> {
  const found = await knownAt(tx, await holdListeners(tx));
  const own = found.tenants.get(tenant);
  const missing = found.forAll.filter(({ name }) => own?.names.has(name) !== true);
  const live = own === undefined ? [] : [...own.live.match(topic)];
  if (missing.length === 0) return live;
  const joined = await join(tx, tenant, missing);
  // The copies go into the index once they are committed: after a rollback they do not exist.
  tx.afterCommit(() => {
    for (const row of joined) add(found.tenants, row);
    found.heard.clear();
  });
  const hears = ({ state, topics }: ListenerRow): boolean =>
    state === "live" && topicsOf({ topics }).some((pattern) => matchesTopic(pattern, topic));
  return [...live, ...joined.filter(hears)];
}

/** Gives a tenant its own copy of these listeners. If another transaction has just done so, that copy is used. All copies are
 *  made together and in one order: two transactions that each make some of them could otherwise deadlock. */
async function join(tx: Tx, tenant: string, listeners: readonly ListenerRow[]): Promise<ListenerRow[]> {
  for (const { seq, queue } of listeners.toSorted((a, b) => a.seq - b.seq)) {
    await laneOf(tx, tenant, queue);
    await tx.run(sql`insert into daybook_listener (tenant_id, name, topics, predicate, queue, ordered, attempts, backoff, timeout_ms, losses,
        concurrency, starts_from, starts_at, starts_seq, state, heard_seq, for_all, registered_at, updated_at)
      select ${tenant}, name, topics, predicate, queue, ordered, attempts, backoff, timeout_ms, losses,
        concurrency, starts_from, starts_at, starts_seq, 'live', 0, 1, ${tx.now}, ${tx.now}
      from daybook_listener where seq = ${seq} on conflict do nothing`);
  }
  const names = listeners.map(({ name }) => name);
  return tx.all<ListenerRow>(
    sql`select * from daybook_listener where tenant_id = ${tenant} and name ${anyOf("text", names)}`,
  );
}

/** Whether any tenant has a listener to the ends of jobs, or a webhook is told of jobs that succeed. */
export async function wantsJobFacts(tx: Tx): Promise<boolean> {
  if (await wantsAny(tx, ["job.completed", "job.failed", "job.cancelled", "job.skipped"])) return true;
  return tx.keep("listener index", noIndex).index?.successTold === true;
}

/** Whether any tenant has a live or durable listener to one of these topics. It takes no lock: a listener that begins meanwhile
 *  begins after what this transaction publishes. */
export async function wantsAny(tx: Tx, topics: readonly string[]): Promise<boolean> {
  const { facts } = localFeed(tx);
  if (facts !== undefined && topics.some((topic) => facts.tenants(topic).size > 0)) return true;
  const row = await tx.get<{ stamp: string }>(sql`select stamp from daybook_listener_change where one = 1`);
  const known = await knownAt(tx, row?.stamp ?? "");
  return topics.some((topic) => known.heard.get(topic) ?? isHeard(known, topic));
}

function isHeard({ tenants, heard }: Known, topic: string): boolean {
  const found = tenants.values().some(({ live }) => live.match(topic).size > 0);
  heard.set(topic, found);
  return found;
}

function noIndex(): { index: Known | undefined } {
  return { index: undefined };
}

async function knownAt(tx: Tx, stamp: string): Promise<Known> {
  // A stamp is never used twice, so what a transaction that was rolled back left here is never taken for valid.
  const kept = tx.keep("listener index", noIndex);
  if (kept.index?.stamp === stamp) return kept.index;
  const rows = await tx.all<ListenerRow>(sql`select * from daybook_listener order by seq`);
  const tenants = new Map<string, Own>();
  for (const row of rows) add(tenants, row);
  const forAll = rows.filter((row) => row.tenant_id === newTenants && row.state === "live");
  kept.index = { stamp, tenants, forAll, successTold: await tellsOfSuccess(tx), heard: new Map() };
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

/** Live listeners to facts of the engine. A fact is not stored while no durable listener hears it. */
type FactFeed = {
  /** The tenants whose live listeners hear the topic. */
  tenants(topic: string): ReadonlySet<string>;
  wants(tenant: string, topic: string): boolean;
  hear(fact: LiveEvent): void;
};

/** What this process hears of its own commits: the events, and the facts of the engine. */
type LocalFeed = { readonly published: Set<(event: EventRow) => void>; facts: FactFeed | undefined };

/** One per open store: two books of one process do not hear each other. */
export function localFeed({ keep }: { readonly keep: Keep }): LocalFeed {
  return keep("local feed", () => ({ published: new Set(), facts: undefined }));
}

/** Hands a new event to the live listeners of this process once it is committed. */
export function feedPublished(tx: Tx, event: EventRow): void {
  // A replay is for durable listeners that have to make up for it; live listeners hear the present.
  const { published } = localFeed(tx);
  if (event.replay_of !== null || published.size === 0) return;
  tx.afterCommit(() => {
    for (const hear of published) hear(event);
  });
}
