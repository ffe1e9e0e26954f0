import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { checkName } from "../../core/name.ts";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";

export type WorkerOptions = {
  /** How many runs at the same time; default 10. */
  readonly concurrency?: number;
  /** Only these queues; default all. */
  readonly queues?: readonly string[];
  /** How long stop() waits for what runs before it asks it to end; default 8 s, because a container has 10. */
  readonly grace?: Duration;
};

export type WorkerSettings = ReturnType<typeof checkWorkerOptions>;

const known: readonly (keyof WorkerOptions)[] = ["concurrency", "queues", "grace"];

export function checkWorkerOptions(options: WorkerOptions) {
  refuseUnknown(options, known, "worker");
  const { queues } = options;
  if (queues !== undefined && !Array.isArray(queues)) {
    throw invalid(`queues is ${quote(queues)}: give a list of names, such as ["mail"]`);
  }
  return {
    concurrency: checkCount(options.concurrency ?? 10, "concurrency", 1, 10_000),
    graceMs: graceMsOf(options),
    queues: queues === undefined ? null : new Set(queues.map((name: string) => checkName(name, "queue"))),
  };
}

export function graceMsOf({ grace = "8s" }: Pick<WorkerOptions, "grace">): number {
  return durationMs(grace, "grace");
}

export type Worker = {
  /** Resolves when nothing runs and nothing that could run is left. */
  idle(): Promise<void>;
  /** Claims nothing more, waits for what runs (`grace`), then aborts its signal, and what ends by that runs again elsewhere. A
   *  handler that ignores its signal for a second is not waited for; its run stays this process's own until it ends. */
  stop(): Promise<void>;
  /** Resolves after `stop` once every handler has ended, also those that ignored their signal. */
  ended(): Promise<void>;
  readonly running: number;
};

export function refuseWithoutWorker(): never {
  throw invalid("the book was opened with worker: false, so it runs no jobs: open it without");
}
