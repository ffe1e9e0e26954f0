// book.work(): the whole life of a worker process.
import type { Worker } from "./jobs/worker/worker-options.ts";

/** Starts the worker and resolves once the process was told to stop and the book is closed. A second signal ends the
 *  process at once, as people expect who press Ctrl-C twice. */
export async function workUntilSignal(start: () => Promise<Worker>, close: () => Promise<void>): Promise<void> {
  const signalled = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  await start();
  await signalled;
  await close();
}
