// What a user does with events, on the book and in a transaction.
import { invalid } from "../core/error.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Within } from "../jobs/jobs.ts";
import type { AnyEvent, Event } from "./define.ts";
import { cleanup, type Cleaned, type CleanupOptions } from "./cleanup.ts";
import { listEvents, readEvent, readLineage } from "./read-event.ts";
import type { EventFilter, EventPage, EventRecord, EventTree } from "./read-event.ts";
import { replay, type Replayed, type ReplayFilter, type ReplayOptions } from "./replay.ts";
import { prepareEvent, type PublishOptions } from "./prepare.ts";
import { publishEvent, type Published } from "./publish.ts";

/** What the room knows of a program: the engine, and the events that were defined, by topic. */
export type EventsRoom = {
  readonly engine: Engine;
  readonly definitions: ReadonlyMap<string, AnyEvent>;
};

export type EventVerbs = {
  /** Says something. It is heard once the transaction has committed.
   *
   *  ```ts
   *  await tx.events.publish(OrderPaid, { orderId: "o-17" }, { key: "o-17" });
   *  ``` */
  publish<Input>(event: Event<Input, unknown>, payload: NoInfer<Input>, options?: PublishOptions): Promise<Published>;
  /** By topic. The payload is checked if the topic's event is in "use". */
  publish(topic: string, payload: unknown, options?: PublishOptions): Promise<Published>;
};

export type Events = EventVerbs & {
  /** One event, with what became of it at each listener. */
  get(id: string): Promise<EventRecord>;
  /** The newest first. */
  list(filter?: EventFilter): Promise<EventPage>;
  /** Everything that began with the root of this event, as a tree. */
  lineage(id: string): Promise<EventTree>;
  /** Says it again, as new events with ids and roots of their own: one by its id, or those of a topic and a time.
   *
   *  ```ts
   *  const { count } = await book.events.replay({ topic: "order.*", since: "2026-01-31T09:00:00Z" }, { dryRun: true });
   *  ``` */
  replay(which: string | ReplayFilter, options?: ReplayOptions): Promise<Replayed>;
  /** Removes events by age. What a listener has not finished stays, and is counted. */
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
      // Two processes that publish several keys in one transaction each could wait for each other's.
      const shared = prepared.key === null && prepared.dedupeKey === null && prepared.id === null;
      return within((tx) => publishEvent(tx, prepared), { shared });
    },
  };
}

/** The definition that is meant; a topic that nobody defined is one without a schema. */
export function lookUp({ definitions }: Pick<EventsRoom, "definitions">, wanted: AnyEvent | string): AnyEvent {
  if (typeof wanted === "string") return definitions.get(wanted) ?? { kind: "event", topic: wanted, schema: undefined };
  const known = definitions.get(wanted.topic);
  if (known === undefined || known === wanted) return wanted;
  throw invalid(`two definitions have the topic "${wanted.topic}": publish the one that is in "use"`);
}
