// Waits for the turn of a queue that somebody else holds: whoever ends a reservation wakes those who wait, in every process.
import { DaybookError } from "../../core/error.ts";
import type { Store } from "../../storage/store.ts";
import { joinWaiters } from "../waiters.ts";

/** Somebody else holds the queue, until then at the latest. */
export type Refused = { readonly refusal: DaybookError; readonly expiresInMs: number };

/** Asks until the turn is granted, for at most `waitMs`; with 0 it asks once and throws the refusal. */
export async function waitForTurn<T extends object>(
  store: Store,
  waitMs: number,
  ask: () => Promise<T | Refused>,
): Promise<T> {
  const waiter = joinWaiters(store);
  const timer = waitMs === 0 ? undefined : store.clock.after(waitMs, () => waiter.expire(), { keepAlive: true });
  try {
    for (;;) {
      const news = waiter.news();
      waiter.waitFor("any");
      const asked = await ask();
      if (!("refusal" in asked)) return asked;
      if (waiter.over === "closed") throw new DaybookError("closed", "the book was closed while waiting for a turn");
      if (waitMs === 0) throw asked.refusal;
      if (waiter.over === "timeout") throw new DaybookError("timeout", asked.refusal.message, asked.refusal);
      // It may never be released: then it expires.
      const expiry = store.clock.after(asked.expiresInMs, () => waiter.wake());
      await news.finally(() => expiry.cancel());
    }
  } finally {
    timer?.cancel();
    waiter.leave();
  }
}
