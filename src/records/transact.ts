// Runs a function again when it lost against somebody else: the function, never what it had computed before.
import { isDaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { jitter } from "../core/random.ts";
import type { Store } from "../storage/store.ts";

const firstPauseMs = 10;

export async function retryConflicts<T>({ waitClock, random }: Store, attempt: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "conflict" || retries >= limits.transactRetriesMax) throw error;
      await waitClock.sleep(jitter(random, firstPauseMs * 2 ** retries));
    }
  }
}
