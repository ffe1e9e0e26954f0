import { uptime } from "node:os";
import { limits } from "./limits.ts";

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

/** What a clock said that was behind and is right again: from when to when, by itself, and how far it was off. */
export type Behind = { readonly fromMs: number; readonly toMs: number; readonly byMs: number };

/**
 * The time of transactions. It follows the wall clock, also when that is set: a clock that was wrong for a moment is right again
 * for everything that comes after it. Two steps back are smoothed. Behind a small one time stands still until the wall clock has
 * caught up. A large one, to a time that the clock never had, is not believed for some seconds, in which time goes on by the
 * monotonic clock, unless the old time had been kept for no longer than that: a program that starts with a wrong clock follows the
 * right one. Whether the new time or the old one is right, no clock can tell; but a machine that slept knows how long it did. So what is
 * removed for its age is old by both (`atLeast`).
 */
export type SteadyTime = {
  /** The time of the next transaction. */
  now(): number;
  /** The time, if the wall clock runs beside the monotonic one as it did before; after it was set null until it is set back, or has
   *  kept its new time for `forMs`. */
  settled(forMs: number): number | null;
  /** The time, as `settled`, once a clock that was set has kept its new time for as long as it had kept the old one: for a minute at
   *  the least, for an hour at the most. */
  believed(): number | null;
  /** Since when the wall clock has its present time: the moment at which it was set, for as long as a process may not have acted upon
   *  that; else now. */
  rightSince(): number;
  /** The time that has come by every clock: after the wall clock was set, until it is set back or has kept its new time for an hour,
   *  the earlier of the new time and the old one. A machine that slept was not set. */
  atLeast(): number;
  /** Called when a clock that was behind, and was believed, has the time back that it had before. Until all that it returns has
   *  settled, time goes on as it was, so that nothing comes due which was counted from the wrong time. */
  onBehind(putRight: (was: Behind) => Promise<unknown>): () => void;
  /** Whether a clock that was behind is right again, and what it wrote is not yet. */
  isWrong(): boolean;
  /** Resolves once that is put right. */
  putRight(): Promise<unknown>;
  /** Told, after the fact, that the wall clock was set by so many milliseconds. */
  onSet(hear: (byMs: number) => void): () => void;
};

/** How far the wall clock was from the monotonic one, and when that was seen. */
type Seen = { readonly offsetMs: number; readonly atMs: number };

export function createSteadyTime(clock: Clock): SteadyTime {
  const ears = new Set<(byMs: number) => void>();
  const repairs = new Set<(was: Behind) => Promise<unknown>>();
  // While the clock is behind and believed: the first time that it said then.
  let behindFrom: number | undefined;
  let repairing: Seen | undefined;
  let repaired: Promise<unknown> = Promise.resolve();
  let lastNow = Number.NEGATIVE_INFINITY;
  let seen: Seen = look(clock.now());
  let settled = seen;
  let settledFrom = seen.atMs;
  let doubtful: Seen | undefined;
  let heldUntil = Number.NEGATIVE_INFINITY;
  // How far the wall clock was from the time since the machine began, while it was believed.
  const awakeOrAsleep = clock.uptime ?? clock.monotonic;
  let bootedAt = clock.now() - awakeOrAsleep();
  let bootedSeenMs = seen.atMs;

  function look(wallMs: number): Seen {
    const atMs = clock.monotonic();
    return { offsetMs: wallMs - atMs, atMs };
  }

  function noteBoot({ offsetMs, atMs }: Seen): void {
    bootedAt = offsetMs + atMs - awakeOrAsleep();
    bootedSeenMs = atMs;
  }

  /** Reads the wall clock and notes whether it was set. */
  function observe(): number {
    const wallMs = clock.now();
    note(wallMs);
    return wallMs;
  }

  function note(wallMs: number): void {
    const now = look(wallMs);
    const was = seen;
    seen = now;
    if (isSame(was, now)) {
      // Most readings find everything as it was.
      if (doubtful === undefined) {
        settled = now;
        // To ask the system costs more than a reading may.
        if (now.atMs - bootedSeenMs >= limits.clockAheadMs) noteBoot(now);
      } else if (now.atMs - doubtful.atMs >= limits.clockSettleMs) {
        [settled, settledFrom, doubtful] = [now, doubtful.atMs, undefined];
        noteBoot(now);
      }
      return;
    }
    doubtful = isSame(settled, now) ? undefined : now;
    if (doubtful === undefined) settled = now;
    // One that only stands still, as in a test, has not gone back.
    else if (wallMs < was.offsetMs + was.atMs && now.offsetMs < settled.offsetMs) {
      if (was.atMs - settledFrom >= limits.clockHoldMs) heldUntil = now.atMs + limits.clockHoldMs;
    }
    const byMs = Math.round(now.offsetMs - was.offsetMs);
    const fromMs = behindFrom;
    if (doubtful === undefined) behindFrom = undefined;
    if (doubtful === undefined && fromMs !== undefined && repairs.size > 0) {
      repairing = was;
      const told = { fromMs, toMs: Math.ceil(was.offsetMs + now.atMs), byMs };
      repaired = clock
        .nextTurn()
        .then(() => Promise.allSettled([...repairs].map((putRight) => putRight(told))))
        .then(() => {
          // It may have been behind once more meanwhile.
          if (repairing === was) repairing = undefined;
          ears.forEach((hear) => hear(byMs));
        });
      return;
    }
    // Not in the transaction that happened to notice.
    if (ears.size > 0) void clock.nextTurn().then(() => ears.forEach((hear) => hear(byMs)));
  }

  function settledFor(forMs: number): number | null {
    const wallMs = observe();
    if (repairing !== undefined) return null;
    return doubtful === undefined || seen.atMs - doubtful.atMs >= forMs ? wallMs : null;
  }

  return {
    now() {
      const wallMs = observe();
      const isHeld = doubtful !== undefined && seen.atMs < heldUntil;
      const goesOn = isHeld ? settled : repairing;
      const nowMs = goesOn === undefined ? wallMs : Math.floor(goesOn.offsetMs + seen.atMs);
      if (!isHeld && doubtful !== undefined && doubtful.offsetMs < settled.offsetMs) behindFrom ??= nowMs;
      const backMs = lastNow - nowMs;
      return backMs > 0 && backMs <= limits.clockSmoothMs ? lastNow : (lastNow = nowMs);
    },
    settled: settledFor,
    believed() {
      const keptMs = (doubtful?.atMs ?? settledFrom) - settledFrom;
      return settledFor(Math.min(limits.clockSettleMs, Math.max(limits.clockAheadMs, keptMs)));
    },
    rightSince() {
      const wallMs = observe();
      if (doubtful === undefined || seen.atMs - doubtful.atMs > 2 * limits.clockAheadMs) return wallMs;
      return Math.floor(doubtful.offsetMs + doubtful.atMs);
    },
    atLeast() {
      const wallMs = observe();
      return doubtful === undefined ? wallMs : Math.min(wallMs, Math.floor(bootedAt + awakeOrAsleep()));
    },
    onBehind(putRight) {
      repairs.add(putRight);
      return () => repairs.delete(putRight);
    },
    isWrong() {
      observe();
      return repairing !== undefined;
    },
    putRight: () => repaired,
    onSet(hear) {
      ears.add(hear);
      return () => ears.delete(hear);
    },
  };
}

/** A clock that is kept in step by its server runs up to half a part in a thousand faster or slower than it would alone. */
function isSame(before: Seen, after: Seen): boolean {
  const driftMs = Math.abs(after.offsetMs - before.offsetMs);
  return driftMs <= limits.clockSmoothMs + (after.atMs - before.atMs) / 1000;
}
