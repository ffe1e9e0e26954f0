import { type Clock, sleepOn, systemClock, type Timer } from "./clock.ts";

export type ManualClock = Clock & {
  /** Moves wall and monotonic time, and fires the timers that fall due, in order, each at its own moment. */
  advance(ms: number): Promise<void>;
  /** Moves the wall clock only, as an operator or NTP would; may be negative. No timer fires. */
  step(ms: number): void;
};

type Pending = { readonly dueMs: number; readonly run: () => void };

// A timer's work often goes through a few turns of the loop (a group commit waits one, its callers another) before it
// sets the next timer. Work in other threads can take longer: a test that waits for those awaits them itself.
const turnsPerStep = 4;

/** A clock for tests: it stands still until it is moved, so `after(0)` too waits for `advance`. */
export function manualClock(options: { at?: number } = {}): ManualClock {
  let wallMs = options.at ?? Date.UTC(2026, 0, 1);
  let monotonicMs = 0;
  const pending = new Set<Pending>();

  const after = (ms: number, run: () => void): Timer => {
    const timer: Pending = { dueMs: monotonicMs + Math.max(0, ms), run };
    pending.add(timer);
    return { cancel: () => void pending.delete(timer) };
  };

  const moveTo = (targetMs: number): void => {
    wallMs += targetMs - monotonicMs;
    monotonicMs = targetMs;
  };

  const advance = async (ms: number): Promise<void> => {
    if (!Number.isInteger(ms) || ms < 0) {
      throw new RangeError(`a manual clock advances by whole milliseconds, not ${ms}; use step() to go back`);
    }
    const targetMs = monotonicMs + ms;
    await settle();
    for (let timer = firstDue(pending, targetMs); timer !== undefined; timer = firstDue(pending, targetMs)) {
      pending.delete(timer);
      moveTo(Math.max(monotonicMs, timer.dueMs));
      timer.run();
      await settle();
    }
    moveTo(Math.max(monotonicMs, targetMs));
    await settle();
  };

  return {
    // A timer may be set at a fraction of a millisecond, but wall time is whole for everyone.
    now: () => Math.floor(wallMs),
    monotonic: () => monotonicMs,
    after,
    sleep: (ms, signal) => sleepOn(after, ms, signal),
    nextTurn: () => systemClock.nextTurn(),
    advance,
    step: (ms) => void (wallMs += ms),
  };
}

/** The earliest timer due by then. A set keeps the order of adding, so timers of one moment fire in that order. */
function firstDue(pending: ReadonlySet<Pending>, byMs: number): Pending | undefined {
  let first: Pending | undefined;
  for (const timer of pending) {
    if (timer.dueMs <= byMs && (first === undefined || timer.dueMs < first.dueMs)) first = timer;
  }
  return first;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < turnsPerStep; turn++) await systemClock.nextTurn();
}
