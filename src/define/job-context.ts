// The context of a handler: what the engine gives, and the book around it.
import { createBook, type Book } from "../book/book.ts";
import type { JobContext } from "./job.ts";
import type { RunContext } from "../jobs/run/run.ts";
import type { Rooms } from "../open/rooms.ts";
import type { Awaitable } from "../storage/store.ts";
import { runUserUnit } from "../book/user-tx.ts";

/** The rooms are asked for when a handler uses the book: the engine, which makes contexts, is made before them. */
export function contextsIn(rooms: () => Rooms): (run: RunContext) => JobContext {
  return (run) => new HandlerContext(run, rooms);
}

// One is made for every run, so it holds two fields and makes the rest when a handler asks for it. What it hands out
// are functions of their own, so that a handler may take them apart: `({ finish, log }) => …`.
class HandlerContext implements JobContext {
  readonly #run: RunContext;
  readonly #rooms: () => Rooms;
  #book: Book | undefined;

  constructor(run: RunContext, rooms: () => Rooms) {
    this.#run = run;
    this.#rooms = rooms;
  }

  get job(): JobContext["job"] {
    const { schedule = null } = this.#run.about as { schedule?: JobContext["job"]["schedule"] };
    return { ...this.#run.job, schedule };
  }

  get attempt(): number {
    return this.#run.attempt;
  }

  get attempts(): number {
    return this.#run.attempts;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get progress(): JobContext["progress"] {
    return this.#run.progress;
  }

  get log(): JobContext["log"] {
    return this.#run.log;
  }

  get book(): Book {
    return (this.#book ??= createBook(this.#rooms(), this.#run.job.tenant));
  }

  get finish(): JobContext["finish"] {
    return (work) => this.#run.finish((tx) => runUserUnit(tx, this.#rooms(), work));
  }

  get step(): JobContext["step"] {
    const { step } = this.#run;
    // What is no function is passed on, to be refused by name.
    const write: JobContext["step"]["write"] = (name, work) =>
      step.write(name, typeof work === "function" ? (tx) => runUserUnit(tx, this.#rooms(), work) : work);
    return Object.assign(<T>(name: string, work: () => Awaitable<T>) => step(name, work), { write });
  }
}
