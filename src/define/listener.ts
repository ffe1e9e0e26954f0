// listener(): who hears events, with the context its function gets from this front door.
import type { JobContext } from "./job.ts";
import { createBook, type Book } from "../book/book.ts";
import { sinkPrefix } from "../calls/sink/broker.ts";
import { invalid } from "../core/error.ts";
import {
  defineListener,
  type PayloadOf,
  type AnyListener,
  type Heard,
  type ListenerOptions,
} from "../events/define.ts";
import { defineLive, type LiveDefinition, type LiveOptions } from "../events/live/define.ts";
import type { LiveContext } from "../events/live/live-run.ts";
import type { ListenerParts } from "../events/listen.ts";
import type { Rooms } from "../open/rooms.ts";

/** What a listener's function is given besides the payload: what a job's handler gets, and the event. */
export type ListenerContext = JobContext & ListenerParts;

/** What a live listener's function is given besides the payload. */
export type LiveListenerContext = Pick<LiveContext, "event" | "listener" | "runId" | "tenant" | "attempt"> &
  Pick<LiveContext, "signal" | "log"> & {
    /** The book, seen by the event's tenant. What is written through it commits at once. */
    readonly book: Book;
  };

/** Defines a live listener: in this process and without a job, it hears what is emitted here and what any process
 *  publishes, while it is attached.
 *
 *  ```ts
 *  const lights = listener("lights", {
 *    on: "motion.*", live: true, where: where.equals("moving", true), mode: "restart",
 *    run: (_payload, { event }) => console.log(`${event.topic}: light on`),
 *  });
 *  ``` */
export function listener<const On extends Heard | readonly Heard[], Payload = PayloadOf<On>>(
  name: string,
  options: Omit<LiveOptions<Payload, LiveListenerContext>, "on"> & { readonly on: On },
): LiveDefinition;
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
  options: ListenerOptions<On, ListenerContext> & { readonly live?: undefined },
): AnyListener;
export function listener(
  name: string,
  options: LiveOptions<never, never> | ListenerOptions<unknown, never>,
): LiveDefinition | AnyListener {
  // By that name it would be shown as a sink, and its deliveries as what went out.
  if (typeof name === "string" && name.startsWith(sinkPrefix)) {
    throw invalid(`listener name "${name}" begins as those of sinks do: rename it, or define it by sink()`);
  }
  return isLive(options) ? defineLive(name, options) : defineListener(name, options);
}

function isLive(options: object): options is LiveOptions<never, never> {
  return "live" in options && options.live === true;
}

/** What a live listener's function gets from this front door: the event, and the book around it. */
export function liveContext(run: LiveContext, rooms: Rooms): LiveListenerContext {
  return new HandlerContext(run, rooms);
}

// One is made for every run, so it holds two fields and makes the rest when a handler asks for it.
class HandlerContext implements LiveListenerContext {
  readonly #run: LiveContext;
  readonly #rooms: Rooms;
  #book: Book | undefined;

  constructor(run: LiveContext, rooms: Rooms) {
    this.#run = run;
    this.#rooms = rooms;
  }

  get event(): LiveListenerContext["event"] {
    return this.#run.event;
  }

  get listener(): string {
    return this.#run.listener;
  }

  get runId(): string {
    return this.#run.runId;
  }

  get tenant(): string {
    return this.#run.tenant;
  }

  get attempt(): number {
    return this.#run.attempt;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get log(): LiveListenerContext["log"] {
    return this.#run.log;
  }

  get book(): Book {
    return (this.#book ??= createBook(this.#rooms, this.#run.tenant));
  }
}
