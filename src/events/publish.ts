// Publish: one row for the event and one for each delivery, in whatever transaction the caller is in.
import { lockNames } from "../storage/lock-key.ts";
import { DaybookError } from "../core/error.ts";
import { killPoint } from "../core/fault.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { insertJobs, type NewJob } from "../jobs/insert.ts";
import { jobsChannel, queuedChannel } from "../jobs/job.ts";
import { newDelivery } from "./delivery.ts";
import { eventPublished, eventsChannel, type EventRow } from "./event.ts";
import { tellPublished } from "./live/ears.ts";
import { parentOf, refuseTooDeep, type Parent } from "./lineage.ts";
import { listenersOf } from "./listener-index.ts";
import type { ListenerRow } from "./listener.ts";
import type { PreparedEvent } from "./prepare.ts";

export type Published = {
  readonly id: string;
  readonly topic: string;
  /** False when the id or the dedupe key was in the book already; this is then that event. */
  readonly created: boolean;
  /** To how many durable listeners it is delivered. */
  readonly deliveries: number;
};

export async function publishEvent(tx: Tx, prepared: PreparedEvent): Promise<Published> {
  const parent = await parentOf(tx, tx.tenant, prepared.cause);
  if (parent !== undefined) refuseTooDeep(prepared.topic, parent);
  return insertEvent(tx, newEvent(tx, tx.tenant, prepared, parent));
}

export type NewEvent = Omit<EventRow, "seq" | "deliveries">;

export function newEvent(
  tx: Tx,
  tenant: string,
  prepared: PreparedEvent,
  parent: Parent | undefined,
  replayOf: string | null = null,
): NewEvent {
  const id = prepared.id ?? tx.ids();
  return {
    tenant_id: tenant,
    id,
    topic: prepared.topic,
    payload: prepared.payload,
    priority: prepared.priority,
    key: prepared.key,
    dedupe_key: prepared.dedupeKey,
    dedupe_until: prepared.dedupeWindowMs === null ? null : tx.now + prepared.dedupeWindowMs,
    headers: prepared.headers,
    published_at: tx.now,
    available_at: Math.max(tx.now, prepared.at ?? tx.now + prepared.delayMs),
    delay_ms: prepared.at === null && prepared.delayMs > 0 ? prepared.delayMs : null,
    root_event_id: parent?.rootId ?? id,
    parent_event_id: parent?.id ?? null,
    chain_depth: parent === undefined ? 0 : parent.depth + 1,
    cause_run_id: prepared.cause?.runId ?? null,
    root_run_id: prepared.cause?.rootRunId ?? null,
    replay_of: replayOf,
  };
}

/** `only`: who is to hear it; by default every live listener of its topic. */
export async function insertEvent(tx: Tx, row: NewEvent, only?: readonly ListenerRow[]): Promise<Published> {
  // First: nobody begins to listen from here on, so what is numbered below is numbered after every listener's start.
  const live = await listenersOf(tx, row.tenant_id, row.topic);
  const listeners = only ?? live;
  await lockKey(tx, row);
  for (let tries = 0; tries < conflictTriesMax; tries++) {
    const seq = await insertRow(tx, row, listeners.length);
    if (seq !== undefined) {
      const event: EventRow = { ...row, seq, deliveries: listeners.length };
      killPoint("events.said");
      await deliver(tx, event, listeners);
      killPoint("events.delivered");
      tx.wake(eventsChannel);
      tellPublished(tx, event);
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
  // A number that an older event had would be taken for it: rather nothing is published than something unheard.
  if ((await insertJobs(tx, jobs)) !== jobs.length) {
    throw new DaybookError("internal", `event ${event.id} has a delivery already, as number ${event.seq}: report it`);
  }
  tx.wake(event.available_at > tx.now ? jobsChannel : queuedChannel);
}

// Whoever publishes under a key holds it until its commit, so that the numbers of a key's events are in the order of
// their commits. SQLite's only writer needs no lock.
async function lockKey(tx: Tx, { tenant_id: tenant, key }: NewEvent): Promise<void> {
  if (key !== null) await lockNames(tx, [`${tenant}\nevent key\n${key}`]);
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

/** The event whose id or dedupe key was taken; undefined when it is free by now. */
async function existing(tx: Tx, row: NewEvent): Promise<Omit<Published, "created"> | undefined> {
  const same = await tx.get<Omit<Published, "created">>(sql`select id, topic, deliveries from daybook_event
    where tenant_id = ${row.tenant_id} and id = ${row.id}`);
  if (same !== undefined) return same;
  const freed = await tx.run(sql`update daybook_event set dedupe_key = null, dedupe_until = null
    where tenant_id = ${row.tenant_id} and dedupe_key = ${row.dedupe_key} and dedupe_until <= ${tx.now}`);
  if (freed > 0) return undefined;
  return tx.get<Omit<Published, "created">>(sql`select id, topic, deliveries from daybook_event
    where tenant_id = ${row.tenant_id} and dedupe_key = ${row.dedupe_key}`);
}
