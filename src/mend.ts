// mend: puts right what doctor finds and a rule can mend. That is, so far, times which no rule explains: they were written, or
// acted upon, while the clock was wrong.
import { conflict } from "./core/error.ts";
import { limits } from "./core/limits.ts";
import { refuseUnknown } from "./core/suggest.ts";
import { checks } from "./examine.ts";
import { stepBackAll } from "./schedules/step-back.ts";
import type { Check } from "./storage/check.ts";
import type { Store } from "./storage/store.ts";

export type Mended = {
  /** True: this is what would be mended, and nothing was. */
  readonly dryRun: boolean;
  /** What did not hold, and how many of it. */
  readonly mended: readonly { readonly name: string; readonly count: number }[];
};

const sliceMax = 500;

export async function mend(store: Store, options: { readonly dryRun?: boolean } = {}): Promise<Mended> {
  refuseUnknown(options, ["dryRun"], "mend");
  const { dryRun = false } = options;
  if (!dryRun && store.time.settled(limits.clockAheadMs) === null) {
    throw conflict("the wall clock was set a moment ago: mend when it has kept its time for a minute", {});
  }
  const mended: { name: string; count: number }[] = [];
  await store.readsLong(async (reader) => {
    for (const check of checks) {
      if (check.mend === undefined) continue;
      const found = await reader.all<{ seq: number }>(check.find(reader.dialect, store.clock.now()));
      const seqs = found.map(({ seq }) => seq);
      const count = dryRun ? seqs.length : await mendFound(store, check.mend, seqs);
      if (count > 0) mended.push({ name: check.name, count });
    }
  });
  return { dryRun, mended };
}

// In slices, each a transaction of its own, so that other writers have their turn.
async function mendFound(store: Store, put: NonNullable<Check["mend"]>, seqs: readonly number[]): Promise<number> {
  let count = 0;
  for (let from = 0; from < seqs.length; from += sliceMax) {
    count += await store.write((tx) => put(tx, seqs.slice(from, from + sliceMax)));
  }
  return count;
}

/** Mends by itself once a clock that had run ahead is right again: at once when it has the time back that it had before, else when
 *  it has kept its new time for a minute. */
export function mendAfterSetBack(store: Store): () => void {
  let timer = { cancel: (): void => undefined };
  let setBackMs = 0;
  const look = (): void => {
    timer.cancel();
    const now = store.time.settled(limits.clockAheadMs);
    if (now === null) timer = store.clock.after(limits.clockAheadMs, look);
    // What fails here is still found by doctor, and mended by hand.
    else void putRight(now - (store.clock.monotonic() - setBackMs)).catch(() => undefined);
  };
  // This process saw it, so what is ahead by less than clocks may differ is known to be wrong as well.
  const putRight = async (rightSince: number): Promise<void> => {
    await stepBackAll(store, { aheadMs: 0, rightSince });
    await mend(store);
  };
  const stopHearing = store.time.onSet((byMs) => {
    if (byMs >= 0) return;
    setBackMs = store.clock.monotonic();
    look();
  });
  return () => {
    stopHearing();
    timer.cancel();
  };
}
