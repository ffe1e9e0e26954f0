// The verbs of events, on the book and in a transaction.
import { currentCause } from "../core/cause.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknownOfAll } from "../core/suggest.ts";
import { pace } from "../storage/slices.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Within } from "../jobs/jobs.ts";
import { prepareEvent, isEvent, type AnyEvent, type Event, type PublishOptions } from "./define.ts";
import type { EventRow } from "./event.ts";
import { findLive } from "./listener.ts";
import { publishEvent, insertEvent, newEvent, type Published } from "./publish.ts";
import { listEvents, readEvent, readLineage, findEvent, whichEvents } from "./read-event.ts";
import type { EventFilter, EventPage, EventRecord, EventTree } from "./read-event.ts";
import { matchesTopic } from "./topic.ts";

/** What this room knows of a program: the engine, and the event definitions by topic. */
export type EventsRoom = {
  readonly engine: Engine;
  readonly definitions: ReadonlyMap<string, AnyEvent>;
};

export type EventVerbs = {
  /** Publishes an event. Listeners hear it once the transaction has committed.
   *
   *  ```ts
   *  await tx.events.publish(OrderPaid, { orderId: "o-17" }, { key: "o-17" });
   *  ```
   *
   *  The payload of a mere topic is checked if the topic's event is in "use". */
  publish<Input>(
    event: Event<Input, unknown> | string,
    payload: NoInfer<Input>,
    options?: PublishOptions,
  ): Promise<Published>;
};

export type Events = EventVerbs & {
  /** One event, with its delivery to each listener. */
  get(id: string): Promise<EventRecord>;
  /** The newest first. */
  list(filter?: EventFilter): Promise<EventPage>;
  /** The whole chain that this event belongs to, as a tree from its root. */
  lineage(id: string): Promise<EventTree>;
  /** Publishes past events again, as new events with their own ids and roots: one by its id, or those of a topic and a time, of
   *  which replays are left out. At most 10,000 at a time; `dryRun` counts them.
   *
   *  ```ts
   *  const { count } = await book.events.replay({ topic: "order.*", since: "2026-01-31T09:00:00Z" }, { dryRun: true });
   *  ``` */
  replay(which: string | ReplayFilter, options?: ReplayOptions): Promise<Replayed>;
};

export function eventReads({ engine: { store } }: EventsRoom, tenant: string): Omit<Events, keyof EventVerbs> {
  return {
    get: (id) => readEvent(store, tenant, id),
    list: (filter = {}) => listEvents(store, tenant, filter),
    lineage: (id) => readLineage(store, tenant, id),
    replay: (which, options) => replay(store, tenant, which, options),
  };
}

export function eventVerbs(room: EventsRoom, within: Within): EventVerbs {
  return {
    async publish(event: AnyEvent | string, payload: unknown, options: PublishOptions = {}) {
      const prepared = await prepareEvent(lookUp(room, event), payload, options);
      // Two transactions that each publish several keys could deadlock, so a publish with a key shares no transaction.
      const shared = prepared.key === null && prepared.dedupeKey === null && prepared.id === null;
      return within((tx) => publishEvent(tx, prepared), { shared });
    },
  };
}

/** The definition of an event or a topic; a topic without a definition has no schema. */
export function lookUp({ definitions }: Pick<EventsRoom, "definitions">, wanted: unknown): AnyEvent {
  if (typeof wanted === "string") return definitions.get(wanted) ?? { kind: "event", topic: wanted, schema: undefined };
  if (!isEvent(wanted)) throw invalid(`event is ${quote(wanted)}: give an event, or a topic such as "order.paid"`);
  const known = definitions.get(wanted.topic);
  if (known === undefined || known === wanted) return wanted;
  throw invalid(`two definitions have the topic "${wanted.topic}": publish the one that is in "use"`);
}

export type ReplayFilter = Pick<EventFilter, "topic" | "since" | "until"> & {
  /** Also events that are replays themselves: then each replay doubles what the next one finds. Default false. */
  readonly replays?: boolean;
};

export type ReplayOptions = {
  /** Only this listener hears it; default every listener that is live now. */
  readonly listener?: string;
  /** Counts the events and publishes nothing. */
  readonly dryRun?: boolean;
};

export type Replayed = {
  readonly count: number;
  /** The new events, in the order of the old ones; empty after a dry run. */
  readonly events: readonly Published[];
};

/** Each past event becomes a new one that begins a chain of its own, oldest first, one transaction per slice. */
async function replay(
  store: Store,
  tenant: string,
  which: string | ReplayFilter,
  options: ReplayOptions = {},
): Promise<Replayed> {
  refuseUnknownOfAll(options, { fields: ["listener"], flags: ["dryRun"] }, "replay");
  const isOne = typeof which === "string";
  if (!isOne) refuseUnknownOfAll(which, { fields: ["topic", "since", "until"], flags: ["replays"] }, "replay");
  const count = isOne ? 1 : await countThem(store, tenant, which);
  if (isOne) await findEvent(store, tenant, which);
  if (options.dryRun === true) return { count, events: [] };
  if (count > limits.replayEventsMax) {
    throw invalid(
      `${count} events would be published again, and at most ${limits.replayEventsMax} are at a time: ask for fewer by "topic", "since" and "until"`,
      { details: { count, most: limits.replayEventsMax } },
    );
  }
  const ids = isOne ? [which] : await findThem(store, tenant, which);
  const events: Published[] = [];
  for (let from = 0; from < ids.length; from += sliceMax) {
    const slice = ids.slice(from, from + sliceMax);
    events.push(...(await store.write((tx) => replaySlice(tx, slice, options.listener), { tenant })));
  }
  return { count: events.length, events };
}

const sliceMax = 100;
/** Each may be a megabyte. */
const readAtOnce = 10;

function whichToReplay(tenant: string, { replays = false, ...filter }: ReplayFilter): Sql {
  return sql`${whichEvents(tenant, filter)} ${replays ? sql`` : sql`and replay_of is null`}`;
}

async function countThem(store: Store, tenant: string, filter: ReplayFilter): Promise<number> {
  const rows = await store.readHeavy<{ topic: string; n: number }>(
    sql`select topic, count(*) as n from daybook_event event where ${whichToReplay(tenant, filter)} group by topic`,
  );
  return rows.filter(hears(filter)).reduce((sum, { n }) => sum + n, 0);
}

async function findThem(store: Store, tenant: string, filter: ReplayFilter): Promise<string[]> {
  const rows = await store.readHeavy<{ id: string; topic: string }>(
    sql`select id, topic from daybook_event event where ${whichToReplay(tenant, filter)} order by seq`,
  );
  return rows.filter(hears(filter)).map(({ id }) => id);
}

function hears({ topic: pattern }: ReplayFilter): (row: { readonly topic: string }) => boolean {
  return ({ topic }) => pattern === undefined || matchesTopic(pattern, topic);
}

async function replaySlice(tx: Tx, ids: readonly string[], listener: string | undefined): Promise<Published[]> {
  // A listener that is still catching up would get the new event twice: now, and when it catches up with it.
  const only = listener === undefined ? undefined : [await findLive(tx, listener, "replay to it when it is live")];
  const made: Published[] = [];
  const turn = pace();
  for (let from = 0; from < ids.length; from += readAtOnce) {
    const some = anyOf("text", ids.slice(from, from + readAtOnce));
    const rows = await tx.all<EventRow>(
      sql`select * from daybook_event where tenant_id = ${tx.tenant} and id ${some} order by seq`,
    );
    for (const { topic, payload, priority, key, headers, id } of rows) {
      const again = { topic, payload, priority, key, headers, cause: currentCause(), replayOf: id };
      made.push(await insertEvent(tx, newEvent(tx, tx.tenant, again, undefined), { only }));
      await turn(payload);
    }
  }
  return made;
}
