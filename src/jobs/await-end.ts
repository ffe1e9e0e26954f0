// Waits for the end of a job or a group: looks, and looks again when there is news of it. Nothing is polled.
import { durationMs, formatDuration, type Duration } from "../core/duration.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import { joinWaiters, type AwaitedEnd } from "./waiters.ts";

export type AwaitOptions = {
  /** How long to wait; default without limit. What is waited for goes on either way. */
  readonly timeout?: Duration;
};

/** What a look found: the end, what to wait for, or nothing that holds, so that it looks again. */
export type Look<T> = { readonly ended: T } | { readonly waitsFor: AwaitedEnd } | "again";

/** `look` is told once the time is over, as words, and throws then unless it finds the end. */
export async function awaitEnd<T>(
  store: Store,
  options: AwaitOptions,
  { verb, what }: { readonly verb: string; readonly what: string },
  look: (waited: string | undefined) => Promise<Look<T>>,
): Promise<T> {
  refuseUnknown(options, ["timeout"], verb);
  const timeoutMs = options.timeout === undefined ? limits.durationMsMax : durationMs(options.timeout, "timeout");
  const waiter = joinWaiters(store);
  // It keeps the process alive as well: somebody waits.
  const timer = store.clock.after(timeoutMs, () => waiter.expire(), { keepAlive: true });
  try {
    for (;;) {
      // Listening comes first and then the look: an end is seen, or it is heard of.
      const news = waiter.news();
      if (waiter.over === "closed") throw new DaybookError("closed", `the book was closed while waiting for ${what}`);
      const found = await look(waiter.over === "timeout" ? formatDuration(timeoutMs) : undefined);
      if (found === "again") continue;
      if ("ended" in found) return found.ended;
      waiter.waitFor(found.waitsFor);
      if (waiter.over === undefined) await news;
    }
  } finally {
    timer.cancel();
    waiter.leave();
  }
}
