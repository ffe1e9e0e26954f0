// Measures a queue in a child process, so that neither its memory nor what the engine has compiled for another is shared.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { About } from "./queue.ts";

export type QueueTask = {
  /** The address of the module that exports `openQueue`. */
  readonly module: string;
  /** A file, or the address of a database that nobody else uses. */
  readonly place: string;
  /** The folder of another checkout of Daybook. */
  readonly checkout?: string;
  readonly warmUpJobs: number;
  readonly pings: number;
  /** One after another. The first also gives the rate of enqueue, and the idle time after a drain. */
  readonly drains: readonly Drain[];
};

export type Drain = { readonly places: number; readonly jobs: number };

export type Figures = {
  readonly about: About;
  readonly enqueuePerS: number;
  readonly drainPerS: Readonly<Record<number, number>>;
  /** The median time from enqueue to the handler's start, before the drains and after the first. */
  readonly idleMs: number;
  readonly drainedIdleMs: number;
  readonly rssMb: number;
};

export async function measureQueue(task: QueueTask): Promise<Figures> {
  const child = fork(fileURLToPath(import.meta.resolve("./queue-process.ts")), [JSON.stringify(task)]);
  let figures: Figures | undefined;
  child.on("message", (message) => (figures = message as Figures));
  const [code] = (await once(child, "exit")) as [number | null];
  if (figures === undefined) throw new Error(`the process that measures ${task.module} ended with ${code}`);
  return figures;
}

/** The jobs that warm a queue up and those that are measured, by the size of the whole benchmark. */
export function sized(jobs: number, places: readonly number[]): Pick<QueueTask, "warmUpJobs" | "pings" | "drains"> {
  // With fewer places a job takes longer.
  const share = (count: number): number => (count >= 100 ? 1 : count >= 10 ? 0.5 : 0.15);
  return {
    warmUpJobs: Math.min(jobs, 5000),
    pings: 200,
    drains: places.map((count) => ({ places: count, jobs: Math.ceil(jobs * share(count)) })),
  };
}
