// What a job costs a book on which nothing else happens.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import { startWorker } from "../../src/jobs/worker/start-worker.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a job costs three write transactions: its enqueue, its claim, and its end with a look for the next", async (t) => {
      const commits: number[] = [];
      let committed = 0;
      const listening = Promise.withResolvers<void>();
      const fault = (moment: string, text: string): void => {
        if (moment !== "after") return;
        if (text === "commit") committed++;
        if (text.startsWith("listen")) listening.resolve();
      };
      const quick = job("quick", { run: () => undefined });
      const at = await openEngine(t, backend, { use: [quick], fault });
      const worker = await startWorker(at.engine);
      // Whoever begins to hear others looks once.
      if (backend === "postgres") await listening.promise;
      await new Promise((resolve) => setImmediate(resolve));
      await worker.idle();

      for (let made = 0; made < 20; made++) {
        committed = 0;
        await at.jobs.enqueue(quick, {});
        await worker.idle();
        commits.push(committed);
      }

      assert.deepEqual(
        commits,
        Array.from({ length: 20 }, () => 3),
      );
      await worker.stop();
    });
  });
}
