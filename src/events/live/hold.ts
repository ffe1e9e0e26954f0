// `for`: an event is acted on once its predicate has held for a while. Each topic is timed by itself, since a door that
// closes says nothing about the window. It acts once for each time that the predicate begins to hold.
import type { Clock, Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { LiveEvent } from "./live-event.ts";

export type Hold = {
  /** The predicate holds for this event. */
  holds(event: LiveEvent): void;
  /** It does not, or nobody knows whether it does. */
  ends(topic: string): void;
  stop(): void;
};

type Held = { last: LiveEvent; timer: Timer | undefined };

/** `forget` is told of a topic that was given up because too many are timed at once. */
export function createHold(clock: Clock, forMs: number, act: (event: LiveEvent) => void, forget: () => void): Hold {
  const topics = new Map<string, Held>();

  function ends(topic: string): void {
    topics.get(topic)?.timer?.cancel();
    topics.delete(topic);
  }

  return {
    holds(event) {
      const known = topics.get(event.topic);
      if (known !== undefined) {
        known.last = event;
        return;
      }
      const [oldest] = topics.size < limits.liveTopicsMax ? [] : topics.entries();
      if (oldest !== undefined) {
        if (oldest[1].timer !== undefined) forget();
        ends(oldest[0]);
      }
      const held: Held = { last: event, timer: undefined };
      held.timer = clock.after(forMs, () => {
        held.timer = undefined;
        act(held.last);
      });
      topics.set(event.topic, held);
    },
    ends,
    stop() {
      for (const { timer } of topics.values()) timer?.cancel();
      topics.clear();
    },
  };
}
