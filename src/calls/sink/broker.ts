// A broker takes messages for a sink. Its connection belongs to the process: several sinks and several books may share it, and it
// is closed with the last book that used it.
import type { CloudEvent } from "./message.ts";

export type Publication = {
  readonly signal: AbortSignal;
  readonly tenant: string;
  /** The same when the message is published again, and no other message has it: neither of another tenant nor of another sink. */
  readonly messageId: string;
};

/** Where messages go that is neither HTTP nor a function of the program. */
export type Broker = {
  /** Resolves once the broker has it, and is called for one key after the other. What it throws is tried again. */
  publish(message: CloudEvent, options: Publication): Promise<void>;
  /** Lets go of connections, when the last book that used it is closed. Publishing after that connects anew. */
  close?(): Promise<void>;
  /** How often the process may be lost while it publishes before the message is blamed for it; default 3. */
  readonly losses?: number;
};

// By what belongs to a book, so that neither keeps the other alive.
const brokersOf = new WeakMap<object, Set<Broker>>();
const usersOf = new WeakMap<Broker, Set<object>>();

export function useBroker(user: object, broker: Broker): Broker {
  addTo(brokersOf, user, broker);
  addTo(usersOf, broker, user);
  return broker;
}

export async function leaveBrokers(user: object): Promise<void> {
  for (const broker of brokersOf.get(user) ?? []) {
    const users = usersOf.get(broker);
    users?.delete(user);
    // A book is closed, whatever somebody else's connection has to say about it.
    if (users?.size === 0) await broker.close?.().catch(() => undefined);
  }
  brokersOf.delete(user);
}

function addTo<Key extends object, Value>(all: WeakMap<Key, Set<Value>>, key: Key, value: Value): void {
  const known = all.get(key);
  if (known === undefined) all.set(key, new Set([value]));
  else known.add(value);
}
