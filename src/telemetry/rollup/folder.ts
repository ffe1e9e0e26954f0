// Folds from time to time, in the processes that work: a second after runs were written, and with every sweep. Where that takes
// long, because thousands of series have runs, it folds less often and counts more runs together. It has no loop of its own; a
// book in which nothing runs is left alone. Whatever fails here is tried again later and stops nobody.
import type { Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { Store } from "../../storage/store.ts";
import { foldSlice, newPace, readMark } from "./fold.ts";
import { createHorizon } from "./horizon.ts";

export type Folder = {
  /** Runs were written: fold them in a moment, unless another process does. */
  soon(): void;
  /** Folds all that can be folded now; resolves to up to which run that is. */
  fold(): Promise<number>;
  stop(): Promise<void>;
};

/** Folds all that can be folded now. */
export async function foldRuns(store: Store): Promise<number> {
  const { seq } = await createHorizon(store)();
  const pace = newPace();
  while ((await foldSlice(store, seq, pace)) > 0) continue;
  return readMark(store);
}

const retryMsMax = 60_000;

export function openFolder(store: Store): Folder {
  const horizon = createHorizon(store);
  const pace = newPace();
  let timer: Timer | undefined;
  let folding: Promise<unknown> = Promise.resolve();
  let known: number | undefined;
  let failures = 0;
  let restMs: number = limits.foldMs;
  let stopped = false;

  function soon(ms: number = restMs): void {
    if (timer !== undefined || stopped) return;
    timer = store.clock.after(ms, () => {
      timer = undefined;
      void inTurn(foldUnlessOthersDo).catch(() => soon(Math.min(retryMsMax, limits.foldMs * 2 ** ++failures)));
    });
  }

  // One at a time: two of the same process would only read the same slice twice.
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = folding.then(work);
    folding = done.catch(() => undefined);
    return done;
  }

  // Who finds the mark elsewhere than it left it is not the one who folds; who no longer does is the next to try.
  async function foldUnlessOthersDo(): Promise<void> {
    const mark = await readMark(store);
    const others = known !== undefined && known !== mark;
    known = mark;
    if (others) return soon();
    await foldAll();
  }

  async function foldAll(): Promise<number> {
    const begun = store.clock.monotonic();
    const { seq, open } = await horizon();
    while ((await foldSlice(store, seq, pace)) > 0) continue;
    const tookMs = store.clock.monotonic() - begun;
    restMs = Math.min(limits.foldMsMax, Math.max(limits.foldMs, tookMs * limits.foldRestFactor));
    failures = 0;
    known = await readMark(store);
    if (open) soon();
    return known;
  }

  return {
    soon: () => soon(),
    fold: () => inTurn(foldAll),
    async stop() {
      timer?.cancel();
      await inTurn(foldAll).catch(() => undefined);
      stopped = true;
      timer?.cancel();
    },
  };
}
