// Many lanes of one worker: each job of each of them starts once, and none is forgotten, however warm the worker is.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

type Params = { readonly n: number };

const numbers = (count: number): Params[] => Array.from({ length: count }, (_, n) => ({ n }));

for (const backend of backends) {
  describe(backend, () => {
    for (const tenants of [["default"], ["default", "a", "b"]]) {
      test(`each job of busy queues starts once, with ${tenants.length} tenants`, async (t) => {
        const started: string[] = [];
        const count = job("count", {
          run: (_params: Params, { job: { id } }) => void started.push(id),
        });
        const { book } = await openTest(t, backend, { use: [count], clock: manualClock() });
        const made: string[] = [];
        const fill = async (jobs: number): Promise<void> => {
          for (const tenant of tenants) {
            for (const queue of ["x", "y", "z"]) {
              const refs = await book.tenant(tenant).jobs.enqueueMany(count, numbers(jobs), { queue });
              made.push(...refs.map(({ id }) => id));
            }
          }
        };
        await fill(40);
        const worker = await book.startWorker({ concurrency: 4 });
        await worker.idle();
        await fill(3);
        await worker.idle();

        assert.deepEqual(started.toSorted(), made.toSorted());
        await worker.stop();
      });
    }

    test("a job in any queue of any tenant is found at once by a worker that served others", async (t) => {
      const started: string[] = [];
      const count = job("count", {
        run: (_params: Params, { job: { id } }) => void started.push(id),
      });
      const { book } = await openTest(t, backend, { use: [count], clock: manualClock() });
      const worker = await book.startWorker({ concurrency: 4 });
      const made: string[] = [];
      const orders = [
        ["a/x", "b/x"],
        ["a/x", "a/x"],
        ["a/y"],
        ["b/y"],
        ["c/x", "a/x"],
        ["a/y", "b/y", "c/y"],
        ["c/z"],
        ["a/z", "a/z", "a/x"],
        ["b/z"],
        ["c/y"],
      ];
      for (const places of orders) {
        for (const place of places) {
          const [tenant = "", queue = ""] = place.split("/");
          const { id } = await book.tenant(tenant).jobs.enqueue(count, { n: 0 }, { queue });
          made.push(id);
        }
        await worker.idle();

        assert.deepEqual(started.toSorted(), made.toSorted(), `after ${places.join(" ")}`);
      }
      await worker.stop();
    });
  });
}
