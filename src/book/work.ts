// book.work(): the whole life of a worker process.
import { systemClock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import type { Worker } from "../jobs/worker/start-worker.ts";

/** How a process ends that was told to stop and had to leave a handler that ignored its signal. Above the codes of errors. */
export const exitCutOff = 23;

/** What closing may take after the grace: a second for handlers to heed their signal, and the last commits. */
const closeMsMax = 1500;

const signals = ["SIGINT", "SIGTERM"] as const;

type Working = {
  /** How long what runs may go on. */
  readonly graceMs: number;
  close(): Promise<void>;
  /** How many handlers run. */
  running(): number;
};

/** Starts the worker and resolves once the process was told to stop and the book is closed. A second signal ends the
 *  process at once, as people expect who press Ctrl-C twice. */
export async function workUntilSignal(start: () => Promise<Worker>, working: Working): Promise<void> {
  const { promise: signalled, resolve } = Promise.withResolvers<void>();
  const hear = (): void => {
    release();
    resolve();
  };
  // From here on signals do what they do anyway, whichever comes.
  const release = (): void => signals.forEach((signal) => process.off(signal, hear));
  for (const signal of signals) process.on(signal, hear);
  try {
    await start();
    await signalled;
  } finally {
    release();
  }
  await closeInTime(working);
}

/** Closes the book of a process that was told to stop. What does not end within its grace ends with the process, before another process
 *  can begin it: the others see that this one is gone, and its runs are lost to them. */
export async function closeInTime({ graceMs, close, running }: Working): Promise<void> {
  const cutOff = (): void => {
    const grace = formatDuration(graceMs);
    const what = running() === 0 ? "closing the book" : `${running()} of its runs`;
    process.stderr.write(
      `daybook: ${what} did not end within the grace of ${grace}, so the process ends; lost runs run again\n`,
    );
    process.exit(exitCutOff);
  };
  const timer = systemClock.after(graceMs + closeMsMax, cutOff, { keepAlive: true });
  try {
    await close();
  } finally {
    // close() has told its caller that it failed, and the caller may have more to do.
    if (running() === 0) timer.cancel();
  }
  if (running() > 0) cutOff();
}
