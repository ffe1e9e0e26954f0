// For how long this thread's loop is held: in time that passed, which also counts what the thread waited for a processor where
// others want one, and in processor time, which is the thread's own work alone.
import { monitorEventLoopDelay } from "node:perf_hooks";

export type Held = { readonly passedMs: number; readonly workedMs: number };

export const lookEveryMs = 10;

export function watchLoop(): { stop(): Held } {
  const delay = monitorEventLoopDelay({ resolution: lookEveryMs });
  let workedMs = 0;
  let before = workMs();
  // What lies between two looks is at least the longest work of one turn of the loop.
  const timer = setInterval(() => {
    const now = workMs();
    workedMs = Math.max(workedMs, now - before);
    before = now;
  }, lookEveryMs);
  delay.enable();
  return {
    stop() {
      clearInterval(timer);
      delay.disable();
      return { passedMs: passedMs(delay), workedMs };
    },
  };
}

/** The histogram counts from one look to the next, also where nothing holds the loop. */
export function passedMs({ max }: { readonly max: number }): number {
  return Math.max(0, max / 1e6 - lookEveryMs);
}

function workMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
