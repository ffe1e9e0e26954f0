import { describe, test } from "node:test";
import { killUnderLoad } from "../support/job-kill-loop.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("8 kills of workers and producers under load lose nothing and break no limit", async (t) => {
      await killUnderLoad(t, backend, { kills: 8, workers: 2, producers: 1 });
    });
  });
}
