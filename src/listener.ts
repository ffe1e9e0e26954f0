// listener(): who hears events, with the context its function gets from this front door.
import type { JobContext } from "./job.ts";
import { defineListener, type AnyListener, type Heard, type ListenerOptions } from "./events/define.ts";
import type { ListenerParts } from "./events/listen.ts";

/** What a listener's function is given besides the payload: what a job's handler gets, and the event. */
export type ListenerContext = JobContext & ListenerParts;

/** Defines a durable listener: every matching event is delivered to it at least once, from its start on.
 *
 *  ```ts
 *  const tellStock = listener("tell-stock", {
 *    on: OrderPaid,
 *    run: ({ orderId }, { event }) => console.log(orderId, event.id),
 *  });
 *  ``` */
export function listener<const On extends Heard | readonly Heard[]>(
  name: string,
  options: ListenerOptions<On, ListenerContext>,
): AnyListener {
  return defineListener(name, options);
}
