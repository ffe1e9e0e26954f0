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
  /** How long stop() waits for what runs before it asks it to end; default 30 s. */
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
    graceMs: durationMs(options.grace ?? "30s", "grace"),
    queues: queues === undefined ? null : new Set(queues.map((name: string) => checkName(name, "queue"))),
  };
}

export type Worker = {
  /** Resolves when nothing runs and nothing that could run is left. */
  idle(): Promise<void>;
  /** Claims nothing more, waits for what runs (`grace`), then ends it; its jobs run again elsewhere. */
  stop(): Promise<void>;
  readonly running: number;
};

export function refuseWithoutWorker(): never {
  throw invalid("the book was opened with worker: false, so it runs no jobs: open it without");
}
