import { type Clock, sleepOn, systemClock, type Timer } from "./clock.ts";
import { durationMs, type Duration } from "./duration.ts";
import { invalid } from "./error.ts";
import { quote } from "./quote.ts";
import { refuseUnknown } from "./suggest.ts";
import { timeMs, type TimeInput } from "./time.ts";

export type ManualClock = Clock & {
  /** Moves wall and monotonic time, and fires the timers that fall due, in order, each at its own moment. */
  advance(duration: Duration): Promise<void>;
  /** Moves the wall clock only, as an operator or NTP would; back with a number below 0 or a text such as "-1h". No timer fires. */
  step(duration: Duration): void;
  /** Moves the wall clock as a machine finds it that slept: monotonic time has stood still meanwhile. No timer fires. */
  suspend(duration: Duration): void;
};

type Pending = { readonly dueMs: number; readonly run: () => void };

// A timer's work often goes through a few turns of the loop (a group commit waits one, its callers another) before it
// sets the next timer. Work in other threads can take longer: a test that waits for those awaits them itself.
const turnsPerStep = 4;

/** A clock for tests: it stands still until it is moved, so `after(0)` too waits for `advance`. The book waits for other processes
 *  and for the database in real time, so a clock that stands still keeps nothing from being written or closed.
 *
 *  ```ts
 *  const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
 *  await clock.advance("10m");
 *  ``` */
export function manualClock(options: { at?: TimeInput } = {}): ManualClock {
  if (typeof options !== "object" || options === null) {
    throw invalid(`manualClock takes options, not ${quote(options)}: manualClock({ at: "2026-11-01T00:00:00Z" })`);
  }
  refuseUnknown(options, ["at"], "manualClock");
  let wallMs = options.at === undefined ? Date.UTC(2026, 0, 1) : timeMs(options.at, "at");
  let monotonicMs = 0;
  let asleepMs = 0;
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

  const advance = async (duration: Duration): Promise<void> => {
    if (typeof duration === "number" && duration < 0) {
      throw invalid(`a manual clock does not advance by ${duration}: use step() to go back`);
    }
    const targetMs = monotonicMs + durationMs(duration, "advance");
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
    // A timer may be set at a fraction of a millisecond, but wall time is whole.
    now: () => Math.floor(wallMs),
    monotonic: () => monotonicMs,
    uptime: () => monotonicMs + asleepMs,
    after,
    sleep: (ms, signal) => sleepOn(after, ms, signal),
    nextTurn: () => systemClock.nextTurn(),
    advance,
    step: (duration) => void (wallMs += stepMs(duration)),
    suspend(duration) {
      const ms = durationMs(duration, "suspend");
      wallMs += ms;
      asleepMs += ms;
    },
  };
}

function stepMs(duration: Duration): number {
  // A clock may be set to any time, however far that is.
  if (Number.isSafeInteger(duration)) return Number(duration);
  if (typeof duration !== "string")
    throw invalid(`step is ${quote(duration)}: give whole milliseconds or text such as "-1h"`);
  const back = duration.startsWith("-");
  return (back ? -1 : 1) * durationMs(back ? duration.slice(1) : duration, "step");
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
