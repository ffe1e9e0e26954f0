// What a user does with events, on the book and in a transaction.
import { invalid } from "../core/error.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Within } from "../jobs/jobs.ts";
import type { AnyEvent, Event } from "./define.ts";
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
export function lookUp({ definitions }: EventsRoom, wanted: AnyEvent | string): AnyEvent {
  if (typeof wanted === "string") return definitions.get(wanted) ?? { kind: "event", topic: wanted, schema: undefined };
  const known = definitions.get(wanted.topic);
  if (known === undefined || known === wanted) return wanted;
  throw invalid(`two definitions have the topic "${wanted.topic}": publish the one that is in "use"`);
}
