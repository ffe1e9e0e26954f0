// The full cycle of small batches: enqueued, claimed, run, settled.
import { job, type Book } from "../../src/index.ts";
import type { Load } from "../harness/load.ts";

export const nothing = job("nothing", { run: (params: { n: number }) => params.n });

const batch = 500;

/** Enqueues a batch and works until it is done. */
export function cycle(book: Book): Load {
  const many = Array.from({ length: batch }, (_, n) => ({ n }));
  return async (slice) => {
    const worker = await book.startWorker();
    let done = 0;
    do {
      await book.jobs.enqueueMany(nothing, many);
      await worker.idle();
      done += batch;
    } while (!slice.over());
    await worker.stop();
    return done;
  };
}
