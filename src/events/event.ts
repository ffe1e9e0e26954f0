// An event is something said. It is appended and never changed. The transaction that publishes it also makes a delivery, which
// is a job, for each durable listener; so an event is in the book together with all of its deliveries, or not at all.
//
//   publish ──► event ──► delivery (a job of kind `delivery`) for each durable listener whose patterns match
//                             ├─► acknowledged            its run succeeded
//                             ├─► (a retry)               its run failed and may be tried again: the next job of the chain
//                             └─► dead letter             its last try failed; a person redrives or discards it
//
// The deliveries of one event to one listener are one chain of jobs, from its first try to its last redrive.
import type { Cause } from "../core/cause.ts";
import { invalid } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";

export type EventRow = {
  seq: number;
  tenant_id: string;
  id: string;
  topic: string;
  /** Canonical JSON, as it was given. */
  payload: string;
  priority: number;
  /** Events of one key are heard in the order of their commits, by listeners that ask for it. */
  key: string | null;
  dedupe_key: string | null;
  dedupe_until: number | null;
  /** JSON: an object of texts. */
  headers: string | null;
  published_at: number;
  /** Not to be delivered before. */
  available_at: number;
  /** The delay that was asked for; null when the publisher gave a time, or neither. */
  delay_ms: number | null;
  root_event_id: string;
  parent_event_id: string | null;
  chain_depth: number;
  cause_run_id: string | null;
  root_run_id: string | null;
  replay_of: string | null;
  /** How many deliveries were made when it was published. */
  deliveries: number;
};

/** All columns of an event. SQLite reads named columns faster than a star (decision 017). */
export const eventColumns = sql`seq, tenant_id, id, topic, payload, priority, key, dedupe_key, dedupe_until, headers, published_at,
  available_at, delay_ms, root_event_id, parent_event_id, chain_depth, cause_run_id, root_run_id, replay_of, deliveries`;

/** The kind of jobs that deliver an event to a listener; `kind_seq` is the event. */
export const deliveryKind = "delivery";
/** The kind of jobs that deliver past events to a new listener; `kind_seq` is the listener. */
export const catchUpKind = "catch_up";

/** The channel that wakes processes when an event is published. */
export const eventsChannel = "events";

/** The topic of the event that tells of a dead letter. */
export const deadLetterTopic = "event.dead_letter";

/** An event is on disk. Only the process that published it states this; other processes are woken by `eventsChannel` and read
 *  the event by its `seq`. On PostgreSQL an event with a lower `seq` may be committed later. */
export const eventPublished = defineFact<EventRow>("event.published");

/** An event as people and listeners see it. */
export type EventInfo = {
  readonly id: string;
  readonly tenant: string;
  readonly topic: string;
  readonly priority: number;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly publishedAt: number;
  /** No delivery starts before this; the same as `publishedAt` unless the event was delayed. */
  readonly availableAt: number;
  /** The event that began the chain; its own id when no event caused it. */
  readonly rootEventId: string;
  readonly parentEventId: string | null;
  /** How many steps the event is from its root; 0 for a root. */
  readonly chainDepth: number;
  /** The run that published it, if one did. */
  readonly causeRunId: string | null;
  readonly replayOf: string | null;
};

export function toInfo(row: EventRow): EventInfo {
  return {
    id: row.id,
    tenant: row.tenant_id,
    topic: row.topic,
    priority: row.priority,
    key: row.key,
    headers: headersOf(row),
    publishedAt: row.published_at,
    availableAt: row.available_at,
    rootEventId: row.root_event_id,
    parentEventId: row.parent_event_id,
    chainDepth: row.chain_depth,
    causeRunId: row.cause_run_id,
    replayOf: row.replay_of,
  };
}

/** An event as a live listener hears it. */
export type LiveEvent<Payload = unknown> = {
  /** Null when it was emitted: then it is not in the book. */
  readonly id: string | null;
  readonly tenant: string;
  readonly topic: string;
  /** All listeners share this object: do not change it. */
  readonly payload: Payload;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** When it was emitted or published, in epoch milliseconds. */
  readonly at: number;
  /** How many events led to this one. */
  readonly chainDepth: number;
  /** The nearest event of the chain that is in the book (it may be this one), and the root of that chain. */
  readonly stored: { readonly id: string; readonly rootId: string } | null;
  /** The run that emitted or published it, if any, and the run that began the chain. */
  readonly causeRunId: string | null;
  readonly rootRunId: string | null;
};

/** A published event as live listeners hear it. */
export function toLiveEvent(row: EventRow): LiveEvent {
  return {
    id: row.id,
    tenant: row.tenant_id,
    topic: row.topic,
    payload: JSON.parse(row.payload) as unknown,
    key: row.key,
    headers: headersOf(row),
    at: row.published_at,
    chainDepth: row.chain_depth,
    stored: { id: row.id, rootId: row.root_event_id },
    causeRunId: row.cause_run_id,
    rootRunId: row.root_run_id,
  };
}

function headersOf({ headers }: EventRow): Record<string, string> {
  return headers === null ? {} : (JSON.parse(headers) as Record<string, string>);
}

/** The event that caused a new one. An event that a listener publishes is caused by the event it was handed, also when a job
 *  lies between: a listener that enqueues a job which publishes what the listener hears is the same circle. */
export type Parent = NonNullable<Cause["event"]>;

/** An event that live listeners hear and the book does not keep, one step further in the chain of what caused it. */
export function unstoredEvent(
  said: Pick<LiveEvent, "tenant" | "topic" | "payload" | "at">,
  cause: Cause | undefined,
  parent: Parent | undefined = cause?.event,
): LiveEvent {
  const depth = cause?.depth ?? parent?.depth;
  const idOf = (runId: string | undefined): string | null => (runId === undefined || runId === "" ? null : runId);
  return {
    ...said,
    id: null,
    key: null,
    headers: {},
    chainDepth: depth === undefined ? 0 : depth + 1,
    stored: parent === undefined ? null : { id: parent.id, rootId: parent.rootId },
    causeRunId: idOf(cause?.runId),
    rootRunId: idOf(cause?.rootRunId),
  };
}

/** Stops two listeners that feed each other before they fill the disk. */
export function refuseTooDeep(topic: string, chainDepth: number, parent: Parent | null | undefined): void {
  if (chainDepth <= limits.chainDepthMax) return;
  const { id: parentEventId = null, rootId: rootEventId = null } = parent ?? {};
  const began =
    parentEventId === null ? "" : ` It began with event ${rootEventId}; event ${parentEventId} is heard now.`;
  throw invalid(
    `"${topic}" would be number ${chainDepth} in a chain of events that cause each other, after the limit of ` +
      `${limits.chainDepthMax}: is a listener saying what it listens to?${began}`,
    { details: { topic, chainDepth, parentEventId, rootEventId } },
  );
}
