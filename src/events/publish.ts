// Publish: one row for the event and one job for each delivery, in the caller's transaction.
//
// A fact of the engine becomes an event if a listener hears its topic, so users can listen to the system itself. A fact without
// a listener costs nothing. It is stored for durable listeners; if only live ones hear it, they hear it in the process where it
// happened, like an emitted event.
import { heardOf, type Cause } from "../core/cause.ts";
import { DaybookError, conflict } from "../core/error.ts";
import { killPoint } from "../core/fact.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { lockNames } from "../storage/word.ts";
import { insertJobs, type NewJob } from "../jobs/enqueue.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import { jobsChannel, queuedChannel, type JobRow } from "../jobs/job.ts";
import type { JobEnded, ToSay } from "../jobs/kind.ts";
import { eventPriority, type PreparedEvent } from "./define.ts";
import { eventPublished, eventsChannel, deliveryKind, refuseTooDeep, catchUpKind, unstoredEvent } from "./event.ts";
import type { EventRow, Parent, EventInfo } from "./event.ts";
import { listenersOf, feedPublished, localFeed, wantsAny } from "./listener-index.ts";
import { deliveryName, orderKey, newTenants, type ListenerRow } from "./listener.ts";

export type Published = {
  readonly id: string;
  readonly topic: string;
  /** False when the book already had the id or the dedupe key: this is then the older event. */
  readonly created: boolean;
  /** How many durable listeners it is delivered to. */
  readonly deliveries: number;
};

export async function publishEvent(tx: Tx, prepared: PreparedEvent): Promise<Published> {
  const parent = await parentOf(tx, tx.tenant, prepared.cause);
  if (parent !== undefined) refuseTooDeep(prepared.topic, parent.depth + 1, parent);
  return insertEvent(tx, newEvent(tx, tx.tenant, prepared, parent));
}

export type NewEvent = Omit<EventRow, "seq" | "deliveries">;

/** The row of a new event, with the default of everything that was not given. */
export function newEvent(tx: Tx, tenant: string, prepared: PreparedEvent, parent: Parent | undefined): NewEvent {
  const { at = null, delayMs = 0, dedupeWindowMs = null, cause } = prepared;
  const id = prepared.id ?? tx.ids();
  return {
    tenant_id: tenant,
    id,
    topic: prepared.topic,
    payload: prepared.payload,
    priority: prepared.priority ?? eventPriority,
    key: prepared.key ?? null,
    dedupe_key: prepared.dedupeKey ?? null,
    dedupe_until: dedupeWindowMs === null ? null : tx.now + dedupeWindowMs,
    headers: prepared.headers ?? null,
    published_at: tx.now,
    available_at: Math.max(tx.now, at ?? tx.now + delayMs),
    delay_ms: at === null && delayMs > 0 ? delayMs : null,
    root_event_id: parent?.rootId ?? id,
    parent_event_id: parent?.id ?? null,
    chain_depth: parent === undefined ? 0 : parent.depth + 1,
    cause_run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
    replay_of: prepared.replayOf ?? null,
  };
}

export type Inserting = {
  /** The listeners it is delivered to; by default every live listener of its topic. */
  readonly only?: readonly ListenerRow[] | undefined;
  /** No two transactions can publish events of this key at the same time, so none has to hold it. */
  readonly inOrder?: boolean | undefined;
};

export async function insertEvent(tx: Tx, row: NewEvent, { only, inOrder }: Inserting = {}): Promise<Published> {
  // This comes first. It keeps new listeners out until the commit, so the event gets its number after every listener's start.
  const live = await listenersOf(tx, row.tenant_id, row.topic);
  const listeners = only ?? live;
  // A publisher holds its key until it commits, so the events of a key are numbered in the order of their commits.
  if (row.key !== null && inOrder !== true) await lockNames(tx, [`${row.tenant_id}\nevent key\n${row.key}`]);
  for (let tries = 0; tries < conflictTriesMax; tries++) {
    const seq = await insertRow(tx, row, listeners.length);
    if (seq !== undefined) {
      const event: EventRow = { ...row, seq, deliveries: listeners.length };
      killPoint("events.said");
      await deliver(tx, event, listeners);
      killPoint("events.delivered");
      tx.wake(eventsChannel);
      feedPublished(tx, event);
      if (eventPublished.heard) tx.afterCommit(() => eventPublished.state(event));
      return { id: row.id, topic: row.topic, created: true, deliveries: listeners.length };
    }
    const found = await existing(tx, row);
    if (found !== undefined) return { ...found, created: false };
  }
  throw new DaybookError("conflict", `dedupeKey ${quote(row.dedupe_key)} changes hands too fast: try again`);
}

const conflictTriesMax = 10;

async function deliver(tx: Tx, event: EventRow, listeners: readonly ListenerRow[]): Promise<void> {
  if (listeners.length === 0) return;
  const jobs: NewJob[] = [];
  for (const listener of listeners) jobs.push(await newDelivery(tx, listener, event));
  // A number that an older event had would make these deliveries look like the older event's: refuse to publish instead.
  if ((await insertJobs(tx, jobs)) !== jobs.length) {
    throw new DaybookError("internal", `event ${event.id} has a delivery already, as number ${event.seq}: report it`);
  }
  tx.wake(event.available_at > tx.now ? jobsChannel : queuedChannel);
}

async function insertRow(tx: Tx, row: NewEvent, deliveries: number): Promise<number | undefined> {
  const made = await tx.get<{
    seq: number;
  }>(sql`insert into daybook_event (tenant_id, id, topic, payload, priority, key,
      dedupe_key, dedupe_until, headers, published_at, available_at, delay_ms, root_event_id, parent_event_id, chain_depth,
      cause_run_id, root_run_id, replay_of, deliveries)
    values (${row.tenant_id}, ${row.id}, ${row.topic}, ${row.payload}, ${row.priority}, ${row.key},
      ${row.dedupe_key}, ${row.dedupe_until}, ${row.headers}, ${row.published_at}, ${row.available_at}, ${row.delay_ms},
      ${row.root_event_id}, ${row.parent_event_id}, ${row.chain_depth}, ${row.cause_run_id}, ${row.root_run_id},
      ${row.replay_of}, ${deliveries})
    on conflict do nothing returning seq`);
  return made?.seq;
}

/** The event that has the id or the dedupe key. An id stands for one event, so another one that claims it is refused; undefined when the key has become free. */
async function existing(tx: Tx, row: NewEvent): Promise<Omit<Published, "created"> | undefined> {
  const found = sql`select id, topic, deliveries from daybook_event where tenant_id = ${row.tenant_id}`;
  const same = await tx.get<Omit<Published, "created">>(sql`${found} and id = ${row.id}`);
  if (same !== undefined) {
    // The payload is canonical JSON, so the same value has the same text.
    const alike = await tx.get(sql`select 1 as alike from daybook_event
      where tenant_id = ${row.tenant_id} and id = ${row.id} and topic = ${row.topic} and payload = ${row.payload}`);
    if (alike !== undefined) return same;
    const what = same.topic === row.topic ? "another payload" : `the topic "${same.topic}"`;
    throw conflict(`event ${row.id} is in the book with ${what}: use a new id for a new event`, { id: row.id });
  }
  const freed = await tx.run(sql`update daybook_event set dedupe_key = null, dedupe_until = null
    where tenant_id = ${row.tenant_id} and dedupe_key = ${row.dedupe_key} and dedupe_until <= ${tx.now}`);
  return freed > 0 ? undefined : tx.get(sql`${found} and dedupe_key = ${row.dedupe_key}`);
}

export async function parentOf(tx: Tx, tenant: string, cause: Cause | undefined): Promise<Parent | undefined> {
  if (cause === undefined) return undefined;
  if (cause.event !== undefined) return cause.event;
  if (cause.parentRunId === null || cause.parentRunId === undefined) return undefined;
  return eventBehind(tx, tenant, cause.parentRunId);
}

type Step = { kind: string | null; kind_seq: number | null; cause_run_id: string | null; about: string | null };

// Walks from a run to the run that made its job, until one of them was a delivery. It gives up after as many steps as a chain
// may have: a job that has enqueued itself for weeks has no beginning worth finding.
async function eventBehind(tx: Tx, tenant: string, runId: string): Promise<Parent | undefined> {
  let at: string | null = runId;
  for (let steps = 0; at !== null && steps < limits.chainDepthMax; steps++) {
    const found: Step | undefined = await jobOfRun(tx, tenant, at);
    if (found === undefined) return undefined;
    const { event } = heardOf(found);
    if (event !== undefined) return event;
    if (found.kind === deliveryKind) {
      return tx.get<Parent>(sql`select id, root_event_id as "rootId", chain_depth as depth from daybook_event
        where seq = ${found.kind_seq}`);
    }
    at = found.cause_run_id;
  }
  return undefined;
}

// One statement, because the run may end meanwhile. A run that has not ended is a row of the line.
async function jobOfRun(tx: Tx, tenant: string, runId: string): Promise<Step | undefined> {
  return tx.get<Step>(sql`select job.kind, job.kind_seq, job.cause_run_id, job.about
      from daybook_run run join daybook_job job on job.seq = run.job_seq
      where run.tenant_id = ${tenant} and run.id = ${runId}
    union all select job.kind, job.kind_seq, job.cause_run_id, job.about
      from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'running' and job.tenant_id = ${tenant} and line.run_id = ${runId}`);
}

export type Delivered = Pick<
  EventRow,
  "tenant_id" | "seq" | "id" | "priority" | "key" | "available_at" | "delay_ms" | "cause_run_id" | "root_run_id"
>;

/** A delivery brings one event to one listener. It is a job that names the event and does not copy it. */
export type DeliveryParams = { readonly event: string };

export async function newDelivery(tx: Tx, listener: ListenerRow, event: Delivered): Promise<NewJob> {
  const ordered = listener.ordered === 1 && event.key !== null;
  const waits = event.available_at > tx.now;
  return {
    tenant_id: event.tenant_id,
    id: tx.ids(),
    lane_seq: await laneOf(tx, event.tenant_id, listener.queue),
    name: deliveryName(listener.name),
    status: waits ? "waiting" : "queued",
    waits_for: waits ? "time" : null,
    waits_key: null,
    priority: event.priority,
    created_at: tx.now,
    available_at: Math.max(tx.now, event.available_at),
    delay_ms: waits ? event.delay_ms : null,
    params: `{"event":${JSON.stringify(event.id)}}`,
    attempts: listener.attempts,
    losses_max: listener.losses,
    backoff: listener.backoff,
    timeout_ms: listener.timeout_ms,
    limits: limitsJson(listener.concurrency, ordered),
    limit_key: ordered ? orderKey(listener.name, event.key ?? "") : null,
    cause_run_id: event.cause_run_id,
    root_run_id: event.root_run_id,
    kind: deliveryKind,
    kind_seq: event.seq,
  };
}

// An ordered listener runs one delivery of a key at a time. The kind (delivery.ts) decides under the lock of that limit.
function limitsJson(concurrency: number | null, ordered: boolean): string | null {
  if (concurrency === null && !ordered) return null;
  return JSON.stringify({ name: concurrency ?? undefined, key: ordered ? 1 : undefined });
}

/** What `job.completed`, `job.failed`, `job.cancelled` and `job.skipped` say: `event<JobEndedPayload>("job.failed")`. */
export type JobEndedPayload = Omit<JobEnded, "tenant">;

/** Tells that a job ended. Deliveries are left out: a listener to the ends of jobs would hear its own for ever. */
export async function tellJobEnded(tx: Tx, ended: JobEnded, row: JobRow): Promise<void> {
  if (row.kind === deliveryKind || row.kind === catchUpKind) return;
  const { id, name, status, attempt, run, retriedBy } = ended;
  const payload: JobEndedPayload = { id, name, status, attempt, run, retriedBy };
  const runId = run?.id ?? row.run_id;
  const ids = { runId: runId ?? "", rootRunId: row.root_run_id ?? runId ?? "", parentRunId: row.cause_run_id };
  const cause = { ...ids, ...heardOf(row) };
  // A retry begins once the end of the one before it is committed, so no other transaction can tell of this chain now.
  const fact = { topic: `job.${status}`, payload, key: () => firstOfChain(tx, row), inOrder: true, cause };
  await tell(tx, row.tenant_id, fact);
}

/** The id of the first job of its chain. */
async function firstOfChain(tx: Tx, { id, chain_seq: first }: JobRow): Promise<string> {
  if (first === null) return id;
  return (await tx.get<{ id: string }>(sql`select id from daybook_job where seq = ${first}`))?.id ?? id;
}

type Fact = {
  readonly topic: string;
  readonly payload: unknown;
  /** Facts of one key are heard in order, by listeners that ask for it. A function is asked only if the fact has a listener. */
  readonly key?: string | (() => Promise<string>);
  readonly cause?: Cause | undefined;
} & Pick<Inserting, "inOrder">;

/** Publishes a fact in one tenant, if it has a listener to it. */
export async function tell(tx: Tx, tenant: string, { topic, payload, key, inOrder, cause }: Fact): Promise<void> {
  const isStored = (await listenersOf(tx, tenant, topic)).length > 0;
  const live = localFeed(tx).facts;
  if (!isStored && live?.wants(tenant, topic) !== true) return;
  const parent = await parentOf(tx, tenant, cause);
  // A circle through the ends of jobs stops here, without failing the job.
  if (parent !== undefined && parent.depth >= limits.chainDepthMax) return;
  if (!isStored) {
    // One through live listeners alone stops at the same depth, although none of it is in the book.
    const event = unstoredEvent({ tenant, topic, payload, at: tx.now }, cause, parent);
    if (event.chainDepth <= limits.chainDepthMax) tx.afterCommit(() => live?.hear(event));
    return;
  }
  const by = cause === undefined || cause.runId === "" ? undefined : cause;
  const keyed = typeof key === "function" ? await key() : (key ?? null);
  const fact = { topic, payload: toJson(payload, { what: "payload" }), key: keyed, cause: by };
  await insertEvent(tx, newEvent(tx, tenant, fact, parent), { inOrder });
}

/** Publishes an event for another room, whether or not it has a listener. It has no cause. Returns its id. */
export async function say(tx: Tx, tenant: string, said: ToSay, headers: EventInfo["headers"]): Promise<string> {
  const event = { ...said, headers: toJson(headers, { what: "headers" }) };
  return (await insertEvent(tx, newEvent(tx, tenant, event, undefined))).id;
}

/** Publishes a fact in every tenant that has a listener to it, for facts that belong to no tenant (a session's). */
export async function tellAll(tx: Tx, fact: Fact): Promise<void> {
  if (!(await wantsAny(tx, [fact.topic]))) return;
  const live = localFeed(tx).facts?.tenants(fact.topic) ?? [];
  const tenants = await tx.all<{ tenant_id: string }>(
    sql`select distinct tenant_id from daybook_listener where state = 'live' and tenant_id <> ${newTenants} order by tenant_id`,
  );
  const all = new Set([...tenants.map((row) => row.tenant_id), ...live]);
  for (const tenant of all) await tell(tx, tenant, fact);
}
