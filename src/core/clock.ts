import { uptime } from "node:os";

export type Timer = { cancel(): void };

/**
 * Every reading of time goes through a clock, so that tests can move it. `now` is what people see and may jump when
 * the machine's clock is set; `monotonic` is for measuring and never goes back.
 */
export type Clock = {
  /** Wall time in whole milliseconds since 1970. */
  now(): number;
  /** Milliseconds since an origin that all threads of this machine share, so worker threads can compare readings. */
  monotonic(): number;
  /** Milliseconds since the machine began, with the time in which it slept, which `monotonic` leaves out on some systems. A clock
   *  without it is taken never to sleep. */
  uptime?(): number;
  /** Runs once after `ms`. It does not keep the process alive unless `keepAlive` says so. */
  after(ms: number, run: () => void, options?: { keepAlive?: boolean }): Timer;
  /** Keeps the process alive. Resolves early, and does not reject, when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Resolves after pending I/O callbacks had their chance to run. */
  nextTurn(): Promise<void>;
};

// setTimeout keeps its delay in 31 bits, and a longer one fires after one millisecond instead of late.
const timeoutMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  // performance.now() would be cheaper, but each thread counts it from its own start, and computing that start is off by as much
  // as the machine delayed us between two readings.
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  uptime: () => uptime() * 1000,
  after,
  sleep: (ms, signal) => sleepOn(after, ms, signal),
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
};

function after(ms: number, run: () => void, options: { keepAlive?: boolean } = {}): Timer {
  let handle: NodeJS.Timeout;
  const arm = (leftMs: number): void => {
    const stepMs = Math.min(leftMs, timeoutMsMax);
    handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs);
    if (options.keepAlive !== true) handle.unref();
  };
  arm(Math.max(0, ms));
  return { cancel: () => clearTimeout(handle) };
}

/**
 * Runs once `ms` have passed on this clock or in real time, whichever comes first. It bounds code of this process, which may
 * follow the book's clock or not: on a clock that a test has stopped, real time ends it all the same.
 */
export function afterEither(clock: Clock, ms: number, run: () => void, options?: { keepAlive?: boolean }): Timer {
  if (clock === systemClock) return after(ms, run, options);
  const ring = (): void => {
    both.cancel();
    run();
  };
  const timers = [clock.after(ms, ring, options), after(ms, ring, options)];
  const both: Timer = { cancel: () => timers.forEach((timer) => timer.cancel()) };
  return both;
}

/** The one meaning of `sleep`, shared with the manual clock so that both treat the signal alike. */
export function sleepOn(start: Clock["after"], ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = start(ms, end, { keepAlive: true });
    // A signal often outlives thousands of sleeps, so each one takes its listener away again.
    signal?.addEventListener("abort", end, { once: true });
    function end(): void {
      timer.cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    }
  });
}
