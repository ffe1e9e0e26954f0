import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { ofOthers } from "../support/job-kinds.ts";
import { startJobProcess } from "../support/job-process.ts";
import { readStory, untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, testFolder, bookUrl } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("of a process killed between the commit of its claim and the first start, what may not be lost fails and the rest is made again", async (t) => {
      const url = await bookUrl(t, backend);
      const folder = testFolder(t);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      await book.jobs.enqueueMany(ofOthers("noop"), [{}, {}, {}]);
      await book.jobs.enqueueMany(ofOthers("noop"), [{}, {}], { losses: 0 });
      const first = startJobProcess(t, { url, folder, work: {}, dieOnClaim: true });
      const { signal } = await first.ended;

      const other = startJobProcess(t, { url, folder, work: {} });
      await untilAllEnded(book);

      const { jobs, runs, entries } = await readStory(book, folder);
      assert.equal(signal, "SIGKILL");
      assert.deepEqual(
        jobs.map(({ status, losses }) => [status, losses]),
        [...Array.from({ length: 5 }, () => ["failed", 0]), ...Array.from({ length: 3 }, () => ["completed", 0])],
      );
      assert.deepEqual(
        runs.map(({ pid, status }) => [pid, status]),
        [
          ...Array.from({ length: 5 }, () => [first.pid, "lost"]),
          ...Array.from({ length: 3 }, () => [other.pid, "success"]),
        ],
      );
      assert.ok(entries.every(({ pid }) => pid === other.pid));
      assert.deepEqual(await book.doctor(), []);
    });
  });
}
