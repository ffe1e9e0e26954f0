// How a worker begins: it says what it hosts, and sweeps before its caller has it.
import type { Claimer } from "../claim/claim.ts";
import type { Reserved } from "../direct/reservation.ts";
import { writeDefinitions } from "../definition.ts";
import type { Engine } from "../engine.ts";
import { newTurns } from "../claim/lane.ts";
import { hostNames } from "../host.ts";
import { createWorker } from "./worker.ts";
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { checkName } from "../../core/name.ts";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";

/** Claims for what this process hosts. With `reserved` the worker serves that reservation alone, and renews it as long as it
 *  lives. `join` is told of it before it claims: it may run a job before it has swept, and closing the book must find it. */
export async function startWorker(
  engine: Engine,
  options: WorkerOptions = {},
  reserved?: Reserved & { renew(): Promise<void> },
  join?: (worker: Worker) => void,
): Promise<Worker> {
  const settings = checkWorkerOptions(options);
  const claimer: Claimer = {
    sessionSeq: engine.session().seq,
    hosts: new Set(reserved === undefined ? engine.definitions.keys() : []),
    queues: settings.queues,
    turns: newTurns(),
    hostCursors: new Map(),
    ...(reserved === undefined ? {} : { reserved }),
    kinds: engine.kinds,
  };
  if (reserved === undefined) await writeDefinitions(engine, [...engine.definitions.values()]);
  await hostNames(engine, claimer);
  const { worker, sweepNow } = createWorker(engine, settings, claimer, () => reserved?.renew());
  join?.(worker);
  await sweepNow();
  return worker;
}

export type WorkerOptions = {
  /** How many runs at the same time; default 10. */
  readonly concurrency?: number;
  /** Only these queues; default all. */
  readonly queues?: readonly string[];
  /** How long stop() waits for what runs before it asks it to end; default 8 s, because a container has 10. */
  readonly grace?: Duration;
  /** Whether an error that escapes from a handler of an app, such as a promise that nobody awaited, ends the process. Otherwise it
   *  fails its run, and the process goes on. Default: false for `work` and `daybook run`, true for `startWorker`. */
  readonly strict?: boolean;
};

export type WorkerSettings = ReturnType<typeof checkWorkerOptions>;

const known: readonly (keyof WorkerOptions)[] = ["concurrency", "queues", "grace", "strict"];

export function checkWorkerOptions(options: WorkerOptions) {
  refuseUnknown(options, known, "worker");
  const { queues, strict } = options;
  if (strict !== undefined && typeof strict !== "boolean") throw invalid(`strict is ${quote(strict)}: true or false`);
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
