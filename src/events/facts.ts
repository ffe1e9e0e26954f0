// A fact of the engine becomes an event if a listener hears its topic, so users can listen to the system itself. A fact without
// a listener costs nothing. It is stored for durable listeners; if only live ones hear it, they hear it in the process where it
// happened, like an emitted event.
import { limits } from "../core/limits.ts";
import { toJson } from "../core/json.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { JobEnded, ToSay } from "../jobs/kind.ts";
import type { JobRow } from "../jobs/job.ts";
import { heardOf, type Cause } from "../core/cause.ts";
import { newTenants } from "./listener.ts";
import { catchUpKind, deliveryKind } from "./event.ts";
import { parentOf, type Parent, insertEvent, newEvent } from "./publish.ts";
import { anybodyHears, listenersOf } from "./listener-index.ts";
import { factFeed } from "./live/local-feed.ts";
import type { LiveEvent } from "./live/live-event.ts";

/** The topics of facts about jobs. */
const jobTopics = ["job.completed", "job.failed", "job.cancelled", "job.skipped"];

/** What `job.completed`, `job.failed`, `job.cancelled` and `job.skipped` say: `event<JobEndedPayload>("job.failed")`. */
export type JobEndedPayload = Omit<JobEnded, "tenant">;

/** Whether any tenant has a listener to jobs. */
export function wantsJobFacts(tx: Tx): Promise<boolean> {
  return wantsAny(tx, jobTopics);
}

/** Whether any tenant has a live or durable listener to one of these topics. */
export async function wantsAny(tx: Tx, topics: readonly string[]): Promise<boolean> {
  const feed = factFeed(tx);
  if (feed !== undefined && topics.some((topic) => feed.tenants(topic).size > 0)) return true;
  return anybodyHears(tx, topics);
}

/** Tells that a job ended. Deliveries are left out: a listener to the ends of jobs would hear its own for ever. */
export async function tellJobEnded(tx: Tx, ended: JobEnded, row: JobRow): Promise<void> {
  if (row.kind === deliveryKind || row.kind === catchUpKind) return;
  const { id, name, status, attempt, run, retriedBy } = ended;
  const payload: JobEndedPayload = { id, name, status, attempt, run, retriedBy };
  const runId = run?.id ?? row.run_id;
  const ids = { runId: runId ?? "", rootRunId: row.root_run_id ?? runId ?? "", parentRunId: row.cause_run_id };
  const cause = { ...ids, ...heardOf(row) };
  await tell(tx, row.tenant_id, { topic: `job.${status}`, payload, cause });
}

type Fact = {
  readonly topic: string;
  readonly payload: unknown;
  /** Facts of one key are heard in order, by listeners that ask for it. */
  readonly key?: string | null;
  readonly cause?: Cause | undefined;
};

/** Publishes a fact in one tenant, if it has a listener to it. */
export async function tell(tx: Tx, tenant: string, { topic, payload, key = null, cause }: Fact): Promise<void> {
  const isStored = (await listenersOf(tx, tenant, topic)).length > 0;
  if (!isStored && factFeed(tx)?.wants(tenant, topic) !== true) return;
  const parent = await parentOf(tx, tenant, cause);
  // A circle through the ends of jobs stops here, without failing the job.
  if (parent !== undefined && parent.depth >= limits.chainDepthMax) return;
  if (!isStored) return emit(tx, tenant, { topic, payload, cause }, parent);
  const by = cause === undefined || cause.runId === "" ? undefined : cause;
  const fact = { topic, payload: toJson(payload, { what: "payload" }), key, cause: by };
  await insertEvent(tx, newEvent(tx, tenant, fact, parent));
}

// A circle through live listeners alone stops at the same depth, although none of it is in the book.
function emit(tx: Tx, tenant: string, { topic, payload, cause }: Fact, parent: Parent | undefined): void {
  const depth = cause?.depth ?? parent?.depth;
  const chainDepth = depth === undefined ? 0 : depth + 1;
  if (chainDepth > limits.chainDepthMax) return;
  const fact: LiveEvent = {
    id: null,
    tenant,
    topic,
    payload,
    key: null,
    headers: {},
    at: tx.now,
    chainDepth,
    stored: parent === undefined ? null : { id: parent.id, rootId: parent.rootId },
    causeRunId: cause === undefined || cause.runId === "" ? null : cause.runId,
    rootRunId: cause === undefined || cause.rootRunId === "" ? null : cause.rootRunId,
  };
  const feed = factFeed(tx);
  tx.afterCommit(() => feed?.hear(fact));
}

/** Publishes an event for another room, whether or not it has a listener. It has no cause. Returns its id. */
export async function say(
  tx: Tx,
  tenant: string,
  said: ToSay,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const event = { ...said, headers: toJson(headers, { what: "headers" }) };
  return (await insertEvent(tx, newEvent(tx, tenant, event, undefined))).id;
}

/** Publishes a fact in every tenant that has a listener to it, for facts that belong to no tenant (a session's). */
export async function tellAll(tx: Tx, fact: Fact): Promise<void> {
  const live = factFeed(tx)?.tenants(fact.topic) ?? new Set<string>();
  if (live.size === 0 && !(await anybodyHears(tx, [fact.topic]))) return;
  const tenants = await tx.all<{ tenant_id: string }>(
    sql`select distinct tenant_id from daybook_listener where state = 'live' and tenant_id <> ${newTenants} order by tenant_id`,
  );
  const all = new Set([...tenants.map((row) => row.tenant_id), ...live]);
  for (const tenant of all) await tell(tx, tenant, fact);
}
