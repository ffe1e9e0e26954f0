// A broker takes the messages of a sink. Several sinks and books of a process may share one; the last book that closes also
// closes the broker's connection.
import { rememberFor } from "../../core/remember.ts";
import type { CloudEvent } from "./message.ts";

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
