// Tells listeners that something was committed: our own commits at once, those of other processes by looking at
// SQLite's data_version. That look reads one number from shared memory and no table, so it may be frequent.
import type { Clock, Timer } from "../../core/clock.ts";
import type { Connection } from "./connection.ts";

export type Waker = {
  tell(channels: ReadonlySet<string>): void;
  listen(hear: (channel: string | null) => void): () => void;
  close(): void;
};

const lookEveryMs = 50;

export function createWaker(connection: Connection, clock: Clock): Waker {
  const listeners = new Set<(channel: string | null) => void>();
  const query = { text: "pragma data_version", params: [] };
  let version: unknown;
  let timer: Timer | undefined;

  function look(): void {
    timer = clock.after(lookEveryMs, look);
    // Inside a transaction the number cannot change; the group that is open looks again when it is done.
    if (connection.inTransaction) return;
    const found = (connection.get(query) as { data_version: unknown }).data_version;
    const changed = version !== undefined && found !== version;
    version = found;
    if (changed) for (const hear of listeners) hear(null);
  }

  return {
    tell(channels) {
      for (const hear of listeners) for (const channel of channels) hear(channel);
    },
    listen(hear) {
      listeners.add(hear);
      if (timer === undefined) look();
      return () => {
        listeners.delete(hear);
        if (listeners.size > 0) return;
        timer?.cancel();
        timer = undefined;
      };
    },
    close() {
      timer?.cancel();
      listeners.clear();
    },
  };
}
