// Tells listeners that something was committed: our own commits at once, those of other processes by looking at
// SQLite's data_version. That look reads one number from shared memory and no table, so it may be frequent.
import type { Clock, Timer } from "../../core/clock.ts";
import { tellAll } from "../after-commit.ts";
import type { Connection } from "./connection.ts";

export type Waker = {
  tell(channels: ReadonlySet<string>): void;
  listen(hear: (channel: string | null) => void): () => void;
  close(): void;
};

const lookEveryMs = 50;

/** `alone`: nobody else can commit there, so that there is nothing to look for. */
export function createWaker(connection: Connection, clock: Clock, { alone }: { alone: boolean }): Waker {
  const listeners = new Set<(channel: string | null) => void>();
  const query = { text: "pragma data_version", params: [] };
  let version: unknown;
  let missed = false;
  let timer: Timer | undefined;

  function look(): void {
    timer = clock.after(lookEveryMs, look);
    // Inside a transaction the number cannot change; the group that is open looks again when it is done.
    if (connection.inTransaction) missed = true;
    else compare();
  }
  function compare(): void {
    const found = readVersion();
    if (found === undefined) return;
    // Whoever began to listen during a transaction may have missed a change before it.
    const changed = version === undefined ? missed : found !== version;
    missed = false;
    version = found;
    if (changed) tellAll(listeners, null);
  }
  function readVersion(): unknown {
    try {
      return (connection.get(query) as { data_version: unknown }).data_version;
    } catch {
      return undefined; // the file is busy for a moment, after the crash of another process: the next look will do
    }
  }

  return {
    tell(channels) {
      for (const channel of channels) tellAll(listeners, channel);
      if (missed && listeners.size > 0 && !connection.inTransaction) compare();
    },
    listen(hear) {
      listeners.add(hear);
      if (timer === undefined && !alone) look();
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
