// The work of this process on a book: schedules that fire, calls that are sent, jobs that are hosted here.
import type { Book } from "../book/book.ts";
import type { Worker } from "../jobs/worker/start-worker.ts";

export type Scheduler = {
  start(): Promise<SchedulerStatus>;
  stop(): Promise<SchedulerStatus>;
  status(): SchedulerStatus;
};

export type SchedulerStatus = {
  readonly status: "running" | "stopped";
  readonly session: string | null;
  readonly running: number;
};

export function createScheduler(book: Book): Scheduler {
  let worker: Worker | undefined;
  // A start that comes while a stop is under way waits for it, and the other way round.
  let last: Promise<unknown> = Promise.resolve();

  function status(): SchedulerStatus {
    return {
      status: worker === undefined ? "stopped" : "running",
      session: book.sessionId,
      running: worker?.running ?? 0,
    };
  }

  function next(run: () => Promise<void>): Promise<SchedulerStatus> {
    const done = last.then(run).then(status);
    last = done.catch(() => undefined);
    return done;
  }

  return {
    start: () =>
      next(async () => {
        worker ??= await book.startWorker();
      }),
    stop: () =>
      next(async () => {
        await worker?.stop();
        worker = undefined;
      }),
    status,
  };
}
