// The last event of each topic, for those who compare with it or come late. The topic heard longest ago is forgotten first.
import { limits } from "../../core/limits.ts";
import type { LiveEvent } from "./live-event.ts";

export type Recent = {
  get(topic: string): LiveEvent | undefined;
  set(event: LiveEvent): void;
  values(): Iterable<LiveEvent>;
};

export function createRecent(): Recent {
  const byTopic = new Map<string, LiveEvent>();
  return {
    get: (topic) => byTopic.get(topic),
    set(event) {
      // Taken out first, so that it goes to the end of the line.
      byTopic.delete(event.topic);
      byTopic.set(event.topic, event);
      if (byTopic.size <= limits.liveTopicsMax) return;
      const [oldest] = byTopic.keys();
      if (oldest !== undefined) byTopic.delete(oldest);
    },
    values: () => byTopic.values(),
  };
}
