// Requests to cancel what runs here. Whoever asks wakes us, maybe before the run is known here: so it is counted how often we were.
import type { Store } from "../storage/store.ts";
import { readCancelled } from "./cancel.ts";
import type { RunsInHand } from "./runs-in-hand.ts";

export type Cancels = {
  /** How often somebody may have asked. */
  readonly asked: number;
  /** Aborts the runs that somebody wants to end. */
  heed(): Promise<void>;
};

export function createCancels(
  store: Store,
  runs: Pick<RunsInHand, "inHand" | "cancel">,
  sessionSeq: () => number,
): Cancels {
  let asked = 0;
  return {
    get asked() {
      return asked;
    },
    async heed() {
      asked++;
      if (runs.inHand === 0) return;
      for (const id of await readCancelled(store, sessionSeq()).catch(() => [])) runs.cancel(id);
    },
  };
}
