// The same rows and the same statements without the engine: what a careful person would write with node:sqlite alone.
import type { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../src/core/clock.ts";
import { inLoop, type Load } from "../harness/load.ts";
import { sampleParams } from "../harness/queue.ts";
import { prepareBareBook, type BareClaim } from "./bare-statements.ts";

export type BareBook = {
  /** Inserts jobs in transactions of `size`. */
  enqueue(size: number): Load;
  /** Inserts exactly so many. */
  fill(jobs: number): void;
  /** Claims `size` jobs, runs them and settles them together with the next claim, until none is left. Says how many there
   *  were per second, beginning after the first claim. */
  drain(size: number): number;
};

export function openBareBook(db: DatabaseSync): BareBook {
  const statements = prepareBareBook(db);
  const begin = db.prepare("begin immediate");
  const commit = db.prepare("commit");

  function insert(count: number): void {
    begin.run();
    statements.insert(
      systemClock.now(),
      Array.from({ length: count }, (_, n) => JSON.stringify(sampleParams(n))),
    );
    commit.run();
  }

  function turn(ended: readonly BareClaim[], want: number): BareClaim[] {
    const now = systemClock.now();
    begin.run();
    if (ended.length > 0) statements.settle(now, ended);
    const claimed = statements.claim(now, want);
    commit.run();
    return claimed;
  }

  return {
    enqueue: (size) =>
      inLoop(() => {
        insert(size);
        return size;
      }),
    fill(jobs) {
      for (let left = jobs; left > 0; left -= 1000) insert(Math.min(left, 1000));
    },
    drain(size) {
      let claimed = turn([], size);
      const begun = performance.now();
      let done = 0;
      while (claimed.length > 0) {
        for (const { params } of claimed) JSON.parse(params);
        done += claimed.length;
        claimed = turn(claimed, size);
      }
      return (done * 1000) / (performance.now() - begun);
    },
  };
}
