// The verbs of events, on the book and in a transaction.
import { invalid } from "../core/error.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Within } from "../jobs/jobs.ts";
import { cleanup, type Cleaned, type CleanupOptions } from "./cleanup.ts";
import type { AnyEvent, Event } from "./define.ts";
import { prepareEvent, type PublishOptions } from "./prepare.ts";
import { publishEvent, type Published } from "./publish.ts";
import { listEvents, readEvent, readLineage } from "./read-event.ts";
import type { EventFilter, EventPage, EventRecord, EventTree } from "./read-event.ts";
import { replay, type Replayed, type ReplayFilter, type ReplayOptions } from "./replay.ts";

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
   *  ``` */
  publish<Input>(event: Event<Input, unknown>, payload: NoInfer<Input>, options?: PublishOptions): Promise<Published>;
  /** By topic. The payload is checked if the topic's event is in "use". */
  publish(topic: string, payload: unknown, options?: PublishOptions): Promise<Published>;
};

export type Events = EventVerbs & {
  /** One event, with its delivery to each listener. */
  get(id: string): Promise<EventRecord>;
  /** The newest first. */
  list(filter?: EventFilter): Promise<EventPage>;
  /** The whole chain that this event belongs to, as a tree from its root. */
  lineage(id: string): Promise<EventTree>;
  /** Publishes past events again, as new events with their own ids and roots: one by its id, or those of a topic and a time.
   *
   *  ```ts
   *  const { count } = await book.events.replay({ topic: "order.*", since: "2026-01-31T09:00:00Z" }, { dryRun: true });
   *  ``` */
  replay(which: string | ReplayFilter, options?: ReplayOptions): Promise<Replayed>;
  /** Removes events by age. Events that a listener has not finished stay, and are counted. */
  cleanup(options: CleanupOptions): Promise<Cleaned>;
};

export function eventReads({ engine: { store } }: EventsRoom, tenant: string): Omit<Events, keyof EventVerbs> {
  return {
    get: (id) => readEvent(store, tenant, id),
    list: (filter = {}) => listEvents(store, tenant, filter),
    lineage: (id) => readLineage(store, tenant, id),
    replay: (which, options) => replay(store, tenant, which, options),
    cleanup: (options) => cleanup(store, tenant, options),
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
export function lookUp({ definitions }: Pick<EventsRoom, "definitions">, wanted: AnyEvent | string): AnyEvent {
  if (typeof wanted === "string") return definitions.get(wanted) ?? { kind: "event", topic: wanted, schema: undefined };
  const known = definitions.get(wanted.topic);
  if (known === undefined || known === wanted) return wanted;
  throw invalid(`two definitions have the topic "${wanted.topic}": publish the one that is in "use"`);
}
