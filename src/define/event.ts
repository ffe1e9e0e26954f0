// event(): the definition of something that is said.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { defineEvent, type Event, type EventOptions } from "../events/define.ts";

/** Defines an event: a topic, and what is said under it.
 *
 *  ```ts
 *  const OrderSent = event("order.sent", { schema: z.object({ orderId: z.string(), carrier: z.string() }) });
 *  ``` */
export function event<Schema extends StandardSchemaV1>(
  topic: string,
  options: EventOptions<Schema> & { readonly schema: Schema },
): Event<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>>;
/** Without a schema the payload is what you say it is, and nothing checks it: `event<{ orderId: string }>("order.paid")`. */
export function event<Payload = unknown>(topic: string): Event<Payload>;
export function event(topic: string, options: EventOptions = {}): Event {
  return defineEvent(topic, options);
}
