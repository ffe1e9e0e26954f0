// listener(): a function that hears events, with the context its function gets from this front door.
import type { JobContext } from "./job.ts";
import type { Book } from "../book/book.ts";
import { createBook } from "../book/create-book.ts";
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
import { LiveContext, type LiveRun } from "../events/live/live-run.ts";
import type { ListenerParts } from "../events/listen.ts";
import { roomsIn } from "../open/rooms.ts";
import type { Store } from "../storage/store.ts";

/** What a listener's function is given besides the payload: what a job's handler gets, and the event. */
export type ListenerContext = JobContext & ListenerParts;

/** What a live listener's function is given besides the payload. */
export type LiveListenerContext = Pick<LiveContext, "event" | "listener" | "runId" | "tenant" | "attempt"> &
  Pick<LiveContext, "signal" | "log"> & {
    /** The book, seen by the event's tenant. What is written through it commits at once. */
    readonly book: Book;
  };

/** What a durable listener is told; with `live: true`, what a live one is. */
type Told<On, Live, Payload> = {
  readonly on: On;
  readonly live?: Live;
} & (Live extends true
  ? Omit<LiveOptions<Payload, LiveListenerContext>, "on" | "live">
  : Omit<ListenerOptions<On, ListenerContext>, "on">);

/** Defines a durable listener: every matching event is delivered to it at least once, from its start on.
 *
 *  ```ts
 *  const tellStock = listener("tell-stock", {
 *    on: OrderPaid,
 *    run: ({ orderId }, { event }) => console.log(orderId, event.id),
 *  });
 *  ```
 *
 *  With `live: true` it is a live listener: in this process and without a job, it hears what is emitted here and what any
 *  process publishes, while it is attached.
 *
 *  ```ts
 *  const lights = listener("lights", {
 *    on: "motion.*", live: true, where: where.equals("moving", true), mode: "restart",
 *    run: (_payload, { event }) => console.log(`${event.topic}: light on`),
 *  });
 *  ``` */
export function listener<
  const On extends Heard | readonly Heard[],
  const Live extends true | undefined = undefined,
  Payload = PayloadOf<On>,
>(name: string, options: Told<On, Live, Payload>): Live extends true ? LiveDefinition : AnyListener;
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

/** What live listeners' functions get from this front door. */
export function liveContexts(store: Store): (run: LiveRun) => LiveContext & LiveListenerContext {
  return (run) => new LiveHandlerContext(run, store);
}

// One is made for every run, so it makes the book only when a handler asks for it.
class LiveHandlerContext extends LiveContext implements LiveListenerContext {
  readonly #store: Store;
  #book: Book | undefined;

  constructor(run: LiveRun, store: Store) {
    super(run);
    this.#store = store;
  }

  get book(): Book {
    return (this.#book ??= createBook(roomsIn(this.#store), this.tenant));
  }
}
