// A clock on which a day takes seconds. Whoever waits on it waits for the day to come that far, so schedules fire, retries back off
// and jobs take as long as they would; only nobody has to sit through it.
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import type { Clock } from "daybook";

export type DayClock = Clock & {
  /** Lets the day go on until that moment. */
  liveUntil(at: number): Promise<void>;
  /** False while something goes on that takes real time, such as a request: the day waits for it. */
  isQuiet: () => boolean;
  /** Resolves when what was to be written is on disk: at times another thread has the file. */
  written: () => Promise<unknown>;
};

type Timer = { readonly at: number; readonly run: () => void };

const secondMs = 1000;

/** How often the engine's own work comes, here. A heartbeat may be half as old as a session's time to live, 30 s. */
const beatMs = 12 * secondMs;
const minuteMs = 60 * secondMs;

/** The engine looks after itself: every second by a heartbeat, every five by a look at those of others, and about every fifteen at
 *  what others left behind. A day has 86,400 seconds, so here that comes less often; all else comes at its own moment. */
function dueAt(now: number, ms: number, keepAlive: boolean): number {
  if (ms === secondMs) return nextRound(now + ms, beatMs);
  if (ms === 5 * secondMs || (keepAlive && ms >= 7.5 * secondMs && ms <= 22.5 * secondMs))
    return nextRound(now + ms, minuteMs);
  return now + Math.max(0, ms);
}

function nextRound(at: number, stepMs: number): number {
  return Math.ceil(at / stepMs) * stepMs;
}

/** What happens in one moment goes through a few turns of the loop before it sets the next timer. */
const turnsPerMoment = 6;
/** For how many turns more the day stands still for a request, and then, for so many milliseconds, for a program. Beyond that it
 *  goes on, a hundred times as fast as they do. */
const patienceTurns = 400;
const patienceMs = 5;
const meanwhileMs = 100;

/** `signal` ends the day early: then `liveUntil` throws. */
export function createDayClock(from: number, signal?: AbortSignal): DayClock {
  let nowMs = from;
  const timers = new Set<Timer>();

  const after: Clock["after"] = (ms, run, { keepAlive = false } = {}) => {
    const timer = { at: dueAt(nowMs, ms, keepAlive), run };
    timers.add(timer);
    return { cancel: () => void timers.delete(timer) };
  };

  /** Fires all that is due at the next moment at which something is, if that is soon enough. */
  function fireNext(until: number): boolean {
    let at = Number.POSITIVE_INFINITY;
    for (const timer of timers) at = Math.min(at, timer.at);
    if (at > until) return false;
    nowMs = Math.max(nowMs, at);
    const due = [...timers].filter((timer) => timer.at <= nowMs);
    for (const timer of due) if (timers.delete(timer)) timer.run();
    return true;
  }

  async function settle(): Promise<void> {
    for (let turn = 0, quiet = 0; quiet < turnsPerMoment && turn < patienceTurns; turn++) {
      await nextTurn();
      quiet = clock.isQuiet() ? quiet + 1 : 0;
    }
    for (let waited = 0; !clock.isQuiet() && waited < patienceMs; waited++) await wait(1);
  }

  const clock: DayClock = {
    now: () => Math.floor(nowMs),
    monotonic: () => nowMs,
    after,
    async sleep(ms, until) {
      if (until?.aborted === true) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = (): void => resolve();
      const timer = after(ms, wake);
      until?.addEventListener("abort", wake);
      await promise;
      until?.removeEventListener("abort", wake);
      timer.cancel();
    },
    nextTurn: () => nextTurn(),
    isQuiet: () => true,
    written: async () => undefined,
    async liveUntil(until) {
      await settle();
      while (nowMs < until) {
        signal?.throwIfAborted();
        const next = clock.isQuiet() ? until : Math.min(until, nowMs + meanwhileMs);
        if (!fireNext(next)) nowMs = next;
        await settle();
        if (nowMs % beatMs > 0) continue;
        await clock.written();
        await settle();
      }
    },
  };
  return clock;
}
