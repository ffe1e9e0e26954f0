// What a live listener's function gets from this front door: the event, and the book around it.
import { createBook, type Book } from "../book/book.ts";
import type { LiveContext } from "../events/live/live-run.ts";
import type { LiveListenerContext } from "./listener.ts";
import type { Rooms } from "../open/rooms.ts";

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
