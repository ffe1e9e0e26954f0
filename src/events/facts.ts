// What the engine states becomes an event when somebody listens to it: users can listen to the system itself. Nobody
// pays for what nobody hears. It is stored for durable listeners; live ones alone hear it in the process where it happened,
// as they hear what is emitted.
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
import { factEar } from "./live/ears.ts";
import type { LiveEvent } from "./live/live-event.ts";
import { eventPriority } from "./prepare.ts";

/** The topics that jobs are told under. */
const jobTopics = ["job.completed", "job.failed", "job.cancelled", "job.skipped"];

/** What `job.completed`, `job.failed`, `job.cancelled` and `job.skipped` say: `event<JobEndedPayload>("job.failed")`. */
export type JobEndedPayload = Omit<JobEnded, "tenant">;

/** Whether anybody, in any tenant, listens to jobs. */
export function wantsJobFacts(tx: Tx): Promise<boolean> {
  return wantsAny(tx, jobTopics);
}

/** Whether anybody, in any tenant, listens to one of these: here and now, or durably. */
export async function wantsAny(tx: Tx, topics: readonly string[]): Promise<boolean> {
  const ear = factEar(tx);
  if (ear !== undefined && topics.some((topic) => ear.tenants(topic).size > 0)) return true;
  return anybodyHears(tx, topics);
}

/** A job ended. Deliveries are not told: a listener to the ends of jobs would hear its own for ever. */
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

/** Says something to one tenant, if it has a listener for it. */
export async function tell(tx: Tx, tenant: string, { topic, payload, key = null, cause }: Fact): Promise<void> {
  const isStored = (await listenersOf(tx, tenant, topic)).length > 0;
  const ear = factEar(tx);
  if (!isStored && ear?.wants(tenant, topic) !== true) return;
  const parent = await parentOf(tx, tenant, cause);
  // A circle through the ends of jobs stops here. The work itself must not fail for it.
  if (parent !== undefined && parent.depth >= limits.chainDepthMax) return;
  if (!isStored) return emit(tx, tenant, { topic, payload, cause }, parent);
  const prepared = {
    ...{ id: null, topic, payload: toJson(payload, { what: "payload" }), priority: eventPriority, key },
    ...{ dedupeKey: null, dedupeWindowMs: null, at: null, delayMs: 0, headers: null },
    cause: cause === undefined || cause.runId === "" ? undefined : cause,
  };
  await insertEvent(tx, newEvent(tx, tenant, prepared, parent));
}

// A circle through live listeners alone stops at the same depth, although nothing of it is in the book.
function emit(tx: Tx, tenant: string, { topic, payload, cause }: Fact, parent: Parent | undefined): void {
  const depth = cause?.depth ?? parent?.depth;
  const chainDepth = depth === undefined ? 0 : depth + 1;
  if (chainDepth > limits.chainDepthMax) return;
  const fact: LiveEvent = {
    ...{ id: null, tenant, topic, payload, key: null, headers: {}, at: tx.now, chainDepth },
    stored: parent === undefined ? null : { id: parent.id, rootId: parent.rootId },
    causeRunId: cause === undefined || cause.runId === "" ? null : cause.runId,
    rootRunId: cause === undefined || cause.rootRunId === "" ? null : cause.rootRunId,
  };
  const ear = factEar(tx);
  tx.afterCommit(() => ear?.hear(fact));
}

/** Says something in the name of another room, whoever listens. Nothing caused it. Returns its id. */
export async function say(
  tx: Tx,
  tenant: string,
  said: ToSay,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const prepared = {
    ...{ ...said, id: null, key: null, dedupeKey: null, dedupeWindowMs: null, at: null, delayMs: 0, cause: undefined },
    headers: toJson(headers, { what: "headers" }),
  };
  return (await insertEvent(tx, newEvent(tx, tenant, prepared, undefined))).id;
}

/** Says something to every tenant that listens to it: a session belongs to none of them. */
export async function tellAll(tx: Tx, fact: Fact): Promise<void> {
  const live = factEar(tx)?.tenants(fact.topic) ?? new Set<string>();
  if (live.size === 0 && !(await anybodyHears(tx, [fact.topic]))) return;
  const tenants = await tx.all<{ tenant_id: string }>(
    sql`select distinct tenant_id from daybook_listener where state = 'live' and tenant_id <> ${newTenants} order by tenant_id`,
  );
  const all = new Set([...tenants.map((row) => row.tenant_id), ...live]);
  for (const tenant of all) await tell(tx, tenant, fact);
}
