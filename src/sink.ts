// sink(): hands events to the outside: to a webhook, a function, or a broker. A sink is a durable listener that keeps the order
// of each key, so retries, dead letters, redrive, pause and lag are the listeners' own. This is the outbox.
import { checkWebhook, deliver, type Webhook } from "./calls/client/deliver.ts";
import { invalid } from "./core/error.ts";
import { toJson } from "./core/json.ts";
import { isoTime } from "./core/time.ts";
import type { AnyListener, Heard, ListenerOptions } from "./events/define.ts";
import type { EventInfo } from "./events/event-info.ts";
import { listener, type ListenerContext } from "./listener.ts";
import { roomsOf } from "./rooms.ts";

/** An event as CloudEvents 1.0 writes it. */
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

/** Where messages go that is neither HTTP nor a function of the program. */
export type Broker = {
  /** Resolves once the broker has it. `message.id` is the same when it is published again. */
  publish(message: CloudEvent, options: { readonly signal: AbortSignal; readonly tenant: string }): Promise<void>;
};

export type SinkTarget = { readonly webhook: Webhook } | { readonly broker: Broker } | SinkFunction;
export type SinkFunction = (message: CloudEvent, context: ListenerContext) => unknown;

export type SinkOptions<On> = Pick<
  ListenerOptions<On, ListenerContext>,
  "on" | "from" | "attempts" | "backoff" | "losses" | "concurrency" | "queue" | "timeout"
> & {
  readonly to: SinkTarget;
};

/** Defines a sink: every matching event goes out at least once, in the order of each key, under a stable id.
 *
 *  ```ts
 *  const warehouse = sink("warehouse", {
 *    on: "order.>",
 *    to: { webhook: { url: "https://warehouse.example/events", secret: "a secret of both sides" } },
 *  });
 *  ``` */
export function sink<const On extends Heard | readonly Heard[]>(name: string, options: SinkOptions<On>): AnyListener {
  const { to, timeout = "30s", ...rest } = options;
  const send = senderTo(name, to);
  const run = (payload: unknown, context: ListenerContext): unknown => send(messageOf(context.event, payload), context);
  return listener(sinkPrefix + name, { ...rest, timeout, ordered: true, run });
}

/** The names of sinks among the listeners begin with this. */
export const sinkPrefix = "sink:";

function senderTo(name: string, to: unknown): SinkFunction {
  if (typeof to === "function") return to as SinkFunction;
  const target = (typeof to === "object" && to !== null ? to : {}) as { webhook?: Webhook; broker?: Broker };
  if (target.webhook !== undefined) return toWebhook(target.webhook);
  const { broker } = target;
  if (typeof broker?.publish === "function") {
    return (message, { signal, job }) => broker.publish(message, { signal, tenant: job.tenant });
  }
  throw invalid(`sink "${name}" goes nowhere: "to" is { webhook: { url } }, { broker }, or a function`);
}

function toWebhook(webhook: Webhook): SinkFunction {
  const checked = checkWebhook(webhook);
  return async (message, { book, job, signal }) => {
    const { calls, store } = roomsOf(book);
    const body = toJson(message, { what: "event" });
    await deliver(calls, store.clock, checked, { tenant: job.tenant, id: message.id, body, signal });
  };
}

function messageOf(event: EventInfo, data: unknown): CloudEvent {
  return {
    ...{ specversion: "1.0", id: event.id, source: `daybook:${event.tenant}`, type: event.topic },
    time: isoTime(event.publishedAt),
    ...(event.key === null ? {} : { subject: event.key }),
    ...{ datacontenttype: "application/json", data },
  };
}
