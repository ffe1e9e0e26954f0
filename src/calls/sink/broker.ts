// A broker takes the messages of a sink. Several sinks and books of a process may share one; the last book that closes also
// closes the broker's connection.
import { rememberFor } from "../../core/remember.ts";

export type Publication = {
  readonly signal: AbortSignal;
  readonly tenant: string;
  /** The same when the message is published again, and unique among all tenants and sinks. */
  readonly messageId: string;
};

/** A destination of messages that is neither HTTP nor a function of the program. */
export type Broker = {
  /** Resolves once the broker has the message. The messages of one key come one at a time. An error is retried. */
  publish(message: CloudEvent, options: Publication): Promise<void>;
  /** Closes connections when the last book that used it closes. A later publish connects anew. */
  close?(): Promise<void>;
  /** How many times the process may be lost while publishing before the message is blamed; default 3. */
  readonly losses?: number;
};

// Weak on both sides, so that neither a book nor a broker keeps the other alive.
const brokersOf = rememberFor((_user: object) => new Set<Broker>());
const usersOf = rememberFor((_broker: Broker) => new Set<object>());

export function useBroker(user: object, broker: Broker): Broker {
  brokersOf(user).add(broker);
  usersOf(broker).add(user);
  return broker;
}

export async function leaveBrokers(user: object): Promise<void> {
  const brokers = [...brokersOf(user)];
  brokersOf(user).clear();
  for (const broker of brokers) {
    const users = usersOf(broker);
    users.delete(user);
    // The book closes even if the broker's connection fails to.
    if (users.size === 0) await broker.close?.().catch(() => undefined);
  }
}

// What a sink sends, and the id by which the receiver recognises a repeat.

/** A sink is a listener whose name begins with this. */
export const sinkPrefix = "sink:";

/** An event in the format of CloudEvents 1.0. */
export type CloudEvent = {
  readonly specversion: "1.0";
  /** The event's id: the same on every repeat. */
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly time: string;
  /** The event's key: what it is about. */
  readonly subject?: string;
  readonly datacontenttype: "application/json";
  readonly data: unknown;
};

/** The media type of a CloudEvent as one JSON document. */
export const cloudEventsJson = "application/cloudevents+json";

type Named = { readonly tenant: string; readonly id: string };

// A program may choose any text as an event's id, and two tenants may choose the same. As a header the id must be plain ASCII,
// and a receiver that drops repeats by it must never drop another tenant's event. Neither a tenant's name nor an encoded id
// has a "/", so two ids never collide.

/** The id for a receiver of one sink. A plain id of the default tenant stays as it is. */
export function receiverId({ tenant, id }: Named): string {
  return tenant === "default" ? encodeURIComponent(id) : `${tenant}/${encodeURIComponent(id)}`;
}

/** The id for a stream that several sinks may share: a stream drops an id that it knows, even under another subject. */
export function streamId(sink: string, { tenant, id }: Named): string {
  return `${encodeURIComponent(sink)}/${tenant}/${encodeURIComponent(id)}`;
}
