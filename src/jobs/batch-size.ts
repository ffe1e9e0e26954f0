// How many jobs a worker holds at once. Work that ends at once is claimed in batches, because a transaction per job
// would spend its time committing; work that takes a while is claimed only as slots become free, so that another
// worker finds it and a lost process loses little.
import { limits } from "../core/limits.ts";

export type BatchSize = {
  readonly current: number;
  /** A run ended after this long. */
  ran(ms: number): void;
};

/** A batch that is expected to run for longer than this keeps work from others. */
const batchMsMax = 20;

export function createBatchSize(concurrency: number): BatchSize {
  const most = Math.max(concurrency, limits.claimJobsMax);
  let current = concurrency;
  let fast = 0;
  return {
    get current() {
      return current;
    },
    ran(ms) {
      if (ms * (current / concurrency) > batchMsMax) {
        // By halves: one run that the machine held up must not make small batches of all the quick ones behind it.
        current = Math.max(concurrency, Math.ceil(current / 2));
        fast = 0;
      } else if (++fast >= current) {
        current = Math.min(most, current * 2);
        fast = 0;
      }
    },
  };
}
