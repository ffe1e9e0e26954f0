import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { backends } from "../support/open-test.ts";
import { shareOut } from "../support/job-share.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("each of 600 jobs is run once and by one of four processes", async (t) => {
      const { story, byProcess } = await shareOut(t, backend, { processes: 4, jobs: 600 });

      assert.equal(story.runs.length, 600);
      assert.equal(byProcess.size, 4);
    });
  });
}
