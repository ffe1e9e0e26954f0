// Started by bench/recovery.ts: a process that works off what is in a book, and says when it is full and when it is done.
import { setTimeout as sleep } from "node:timers/promises";
import { job, open } from "../../src/index.ts";

export type Told = { readonly said: "full" } | { readonly said: "done"; readonly ms: number };

export const places = 10;
export const jobMs = 300;

let begun = 0;

export const work = job("work", {
  async run() {
    if (++begun === places) tell({ said: "full" });
    await sleep(jobMs);
  },
});

function tell(told: Told): void {
  process.send?.(told);
}

if (import.meta.main) {
  const openedAt = performance.now();
  const book = await open(process.argv[2] ?? "", { use: [work] });
  const worker = await book.startWorker({ concurrency: places });
  await worker.idle();
  tell({ said: "done", ms: performance.now() - openedAt });
  await book.close();
  process.disconnect?.();
}
