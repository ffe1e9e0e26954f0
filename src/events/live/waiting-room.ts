// Events that were published for a later time wait here, in memory: whoever opens the book after they were published
// does not hear them live.
import type { Clock, Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";

export type WaitingRoom<Event> = { until(at: number, event: Event): void; close(): void };

export function createWaitingRoom<Event>(
  clock: Clock,
  letGo: (event: Event) => void,
  full: () => void,
): WaitingRoom<Event> {
  const timers = new Set<Timer>();
  return {
    until(at, event) {
      const ms = at - clock.now();
      if (ms <= 0) return letGo(event);
      if (timers.size >= limits.liveDelayedMax) return full();
      const timer = clock.after(ms, () => {
        timers.delete(timer);
        letGo(event);
      });
      timers.add(timer);
    },
    close() {
      for (const timer of timers) timer.cancel();
      timers.clear();
    },
  };
}
