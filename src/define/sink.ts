// sink(): hands events to the outside: to a webhook, a function, or a broker. A sink is a durable listener that keeps the order
// of each key, so retries, dead letters, redrive, pause and lag are the listeners' own. This is the outbox.
import { deliver } from "../calls/attempt/send.ts";
import { checkWebhook } from "../calls/webhook.ts";
import { type Broker, type CloudEvent, useBroker, receiverId, sinkPrefix, streamId } from "../calls/sink/broker.ts";
import { invalid } from "../core/error.ts";
import { killPoint } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { isoTime } from "../core/time.ts";
import { defineListener, type AnyListener, type Heard, type ListenerOptions, type SaidOf } from "../events/define.ts";
import type { EventInfo } from "../events/event.ts";
import { where, type Predicate, type Where } from "../events/live/where.ts";
import type { Webhook } from "../jobs/notice.ts";
import { neverBlamed } from "../jobs/settle/settle.ts";
import type { ListenerContext } from "./listener.ts";
import { roomsOf } from "../open/rooms.ts";

export type SinkTarget = { readonly webhook: Webhook } | { readonly broker: Broker } | SinkFunction;
export type SinkFunction = (message: CloudEvent, context: ListenerContext) => unknown;

export type SinkOptions<On> = Pick<
  ListenerOptions<On, ListenerContext>,
  "on" | "from" | "attempts" | "backoff" | "losses" | "concurrency" | "queue" | "timeout" | "tenants"
> & {
  readonly to: SinkTarget;
  /** Takes only events for which this holds; a list means all of them. What it does not take is skipped, and is no part of the
   *  outbox. There is no previous event to compare with. */
  readonly where?: Where<SaidOf<On>> | readonly Where<SaidOf<On>>[];
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
  checkName(name, "sink name");
  // What is no plain object is refused where the rest of it is checked.
  const { to, timeout = "30s", where: asked, ...rest } = options;
  const taken = asked === undefined ? {} : { where: takenBy(name, [asked].flat()) };
  const { send, ...usual } = wayTo(name, to, rest.attempts);
  const run = async (payload: unknown, context: ListenerContext): Promise<void> => {
    killPoint("sinks.begun");
    // What comes back is no result: a client's answer is often an object that no book can keep.
    await send(messageOf(context.event, payload), context);
    killPoint("sinks.sent");
  };
  const made = defineListener(sinkPrefix + name, { ...usual, ...rest, timeout, ordered: true, run });
  // What goes out is what was said: a schema may make of it what JSON cannot hold.
  return { ...made, ...taken, raw: true };
}

function takenBy<Payload>(name: string, asked: readonly Where<Payload>[]): Predicate<Payload> {
  const predicate = where.all(...asked);
  if (predicate.compares !== true) return predicate;
  throw invalid(
    `sink "${name}" takes an event by the one before it (${predicate.describe()}), which only live listeners know: compare within the event`,
  );
}

/** How messages get there, and what holds for that way unless the program says otherwise. */
type Way = { readonly send: SinkFunction; readonly losses?: number; readonly concurrency?: number };

function wayTo(name: string, to: unknown, attempts: number | undefined): Way {
  if (typeof to === "function") return { send: to as SinkFunction };
  const target = (typeof to === "object" && to !== null ? to : {}) as { webhook?: Webhook; broker?: Broker };
  const { webhook, broker, ...others } = target;
  if ((webhook === undefined) !== (broker === undefined) && Object.keys(others).length === 0) {
    if (webhook !== undefined) return toWebhook(webhook, attempts);
    if (typeof broker?.publish === "function") return toBroker(name, broker);
  }
  throw invalid(
    `sink "${name}" goes nowhere: "to" is one of { webhook: { url } }, nats({ … }), { broker } and a function`,
  );
}

function toWebhook(webhook: Webhook, attempts: number | undefined): Way {
  const checked = checkWebhook(webhook);
  return {
    // No code of the user runs in it. A receiver that hangs must leave room in a worker for everything else.
    losses: neverBlamed,
    concurrency: limits.callsPerHost,
    send: async (message, { book, job: { tenant }, signal }) => {
      const { calls, store } = roomsOf(book);
      const id = receiverId({ tenant, id: message.id });
      await deliver(calls, store.clock, checked, { tenant, id, body: JSON.stringify(message), attempts, signal });
    },
  };
}

function toBroker(name: string, broker: Broker): Way {
  return {
    ...(broker.losses === undefined ? {} : { losses: broker.losses }),
    send: (message, { book, job: { tenant }, signal }) => {
      const messageId = streamId(name, { tenant, id: message.id });
      return useBroker(roomsOf(book).calls, broker).publish(message, { signal, tenant, messageId });
    },
  };
}

function messageOf(event: EventInfo, data: unknown): CloudEvent {
  return {
    specversion: "1.0",
    id: event.id,
    source: `daybook:${event.tenant}`,
    type: event.topic,
    time: isoTime(event.publishedAt),
    ...(event.key === null ? {} : { subject: event.key }),
    datacontenttype: "application/json",
    data,
  };
}
