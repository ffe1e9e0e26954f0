// job(): the definition of a piece of work, with the context its handler gets from this front door.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Book } from "../book/book.ts";
import { createBook } from "../book/create-book.ts";
import { checkWebhook } from "../calls/webhook.ts";
import { defineJob, type Job, type JobOptions } from "../jobs/define.ts";
import type { RunContext } from "../jobs/run/run.ts";
import type { Step } from "../jobs/run/step.ts";
import type { FireInfo } from "../schedules/schedule.ts";
import type { Awaitable, Store } from "../storage/store.ts";
import { runUserUnit, type UserTx } from "../book/user-tx.ts";
import { roomsIn } from "../open/rooms.ts";

export type JobInfo = RunContext["job"] & {
  /** What the schedule that fired it says about the slot; null when none did. */
  readonly schedule: FireInfo | null;
};

/** What a handler is given besides its params. */
export type JobContext = Omit<RunContext, "job" | "about" | "finish" | "step"> & {
  readonly job: JobInfo;
  /** The book, seen by the job's tenant. What is written through it commits at once. */
  readonly book: Book;
  /** Runs `work` and completes the job in one transaction: its effects happen exactly once. Call it as the last thing;
   *  what `work` returns is the job's result. */
  finish<T>(work: (tx: UserTx) => Awaitable<T>): Promise<T>;
  /** Runs a part of the work and keeps its result: the next run of the chain, after a failure or a loss, gets it instead
   *  of doing it again. `step.write` also makes its effects in the book happen exactly once.
   *
   *  ```ts
   *  const invoice = job("invoice", {
   *    async run(_params: unknown, { step }) {
   *      const { number } = await step("print", () => ({ number: 17 }));
   *      await step.write("note it", (tx) => tx.sql`insert into note (id, body) values (${number}, 'printed')`);
   *    },
   *  });
   *  ``` */
  readonly step: Step<UserTx>;
};

// The compiler complains about the last of several signatures, so the last one takes what is meant most often.
/** Without a schema the params are what the handler says they are, and nothing checks them. */
export function job<Params = unknown, Result = unknown>(
  name: string,
  options: JobOptions<Params, Result, JobContext> & { readonly params?: undefined },
): Job<Params, Result>;
/** Defines a job.
 *
 *  ```ts
 *  const greet = job("greet", {
 *    params: z.object({ name: z.string() }),
 *    run: ({ name }) => `Hello, ${name}.`,
 *  });
 *  ``` */
export function job<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, never>, Result = unknown>(
  name: string,
  options: JobOptions<StandardSchemaV1.InferOutput<Schema>, Result, JobContext> & { readonly params?: Schema },
): Job<StandardSchemaV1.InferInput<Schema>, Result>;
export function job(name: string, options: JobOptions<never, unknown, never>): Job {
  const made = defineJob(name, options);
  if (options.notify !== undefined) checkWebhook(options.notify.webhook);
  return made;
}

/** The context of a handler: what the engine gives, and the book around it. */
export function jobContexts(store: Store): (run: RunContext) => JobContext {
  return (run) => new HandlerContext(run, store);
}

// One is made for every run, so it holds two fields and makes the rest when a handler asks for it. What it hands out
// are functions of their own, so that a handler may take them apart: `({ finish, log }) => …`.
class HandlerContext implements JobContext {
  readonly #run: RunContext;
  readonly #store: Store;
  #book: Book | undefined;

  constructor(run: RunContext, store: Store) {
    this.#run = run;
    this.#store = store;
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
    return (this.#book ??= createBook(roomsIn(this.#store), this.#run.job.tenant));
  }

  get finish(): JobContext["finish"] {
    return (work) => this.#run.finish((tx) => runUserUnit(tx, roomsIn(this.#store), work));
  }

  get step(): JobContext["step"] {
    const { step } = this.#run;
    // What is no function is passed on, to be refused by name.
    const write: JobContext["step"]["write"] = (name, work) =>
      step.write(name, typeof work === "function" ? (tx) => runUserUnit(tx, roomsIn(this.#store), work) : work);
    return Object.assign(<T>(name: string, work: () => Awaitable<T>) => step(name, work), { write });
  }
}
