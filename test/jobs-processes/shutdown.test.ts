import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { open } from "../../src/index.ts";
import { ofOthers } from "../support/job-kinds.ts";
import { startJobProcess } from "../support/job-process.ts";
import { readStory, untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, testFolder, bookUrl } from "../support/open-test.ts";
import { readSession } from "../support/session-row.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a handler that never ends keeps its process alive no longer than its book is open", async (t) => {
      const url = await bookUrl(t, backend);
      const program = join(import.meta.dirname, "deaf-close-program.ts");

      const { stdout } = await promisify(execFile)(process.execPath, [program, url], { timeout: 60_000 });

      assert.equal(stdout, "closed\n");
    });

    test("book.work() told to stop lets runs end within its grace and gives the rest to others", async (t) => {
      const url = await bookUrl(t, backend);
      const folder = testFolder(t);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      const slow = await book.jobs.enqueue("slow", {}, { priority: 2 });
      const listening = await book.jobs.enqueue("listening", {}, { priority: 1 });
      const work = { concurrency: 2, grace: 300 };
      const first = startJobProcess(t, { url, folder, work, untilSignal: true });
      const { sessionId } = await first.hear("open");
      await Promise.all([first.hear("began"), first.hear("began")]);
      const waiting = await book.jobs.enqueueMany(ofOthers("noop"), [{}, {}, {}]);

      first.signal("SIGTERM");
      const { code, stderr } = await first.ended;

      assert.equal(code, 0, stderr);
      assert.equal((await readSession(book, sessionId)).status, "success");
      assert.deepEqual(
        first.said.findLast(({ said }) => said === "aborted"),
        {
          said: "aborted",
          jobId: listening.id,
          cause: "shutdown",
        },
      );
      assert.equal((await book.jobs.get(slow.id)).status, "completed");
      const cancelled = await book.jobs.get(listening.id);
      assert.deepEqual([cancelled.status, cancelled.run?.status], ["cancelled", "cancelled"]);
      const again = await book.jobs.get(cancelled.retriedBy ?? "");
      assert.deepEqual([again.status, again.attempt, again.losses], ["queued", 1, 0]);
      for (const { id } of waiting) {
        const { status, runId, retriedBy } = await book.jobs.get(id);
        assert.deepEqual([status, runId, retriedBy], ["queued", null, null]);
      }

      // Elsewhere.
      const second = startJobProcess(t, { url, folder, work, untilSignal: true });
      const began = await second.hear("began");
      await book.jobs.cancel(again.id);
      await untilAllEnded(book);
      second.signal("SIGTERM");
      assert.equal((await second.ended).code, 0);
      assert.equal(began.jobId, again.id);
      const { runs } = await readStory(book, folder);
      assert.deepEqual(
        runs
          .filter(({ pid }) => pid === second.pid)
          .map(({ status }) => status)
          .toSorted(),
        ["cancelled", "success", "success", "success"],
      );
      assert.deepEqual(await book.doctor(), []);
    });

    test("a handler that ignores its signal ends with its process, soon after the grace, and its job begins again only then", async (t) => {
      const url = await bookUrl(t, backend);
      const folder = testFolder(t);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      const { id } = await book.jobs.enqueue("deaf", {});
      const first = startJobProcess(t, { url, folder, work: { grace: 300 }, untilSignal: true });
      await first.hear("began");
      const second = startJobProcess(t, { url, folder, work: { grace: 300 }, untilSignal: true });
      await second.hear("open");

      first.signal("SIGTERM");
      const { code, stderr } = await first.ended;
      const while1 = second.said.filter(({ said }) => said === "began").length;
      const again = await second.hear("began");

      assert.equal(code, 23, stderr);
      assert.match(stderr, /daybook: 1 of its runs did not end within the grace of 300ms, so the process ends/);
      assert.equal(while1, 0);
      const chain = await book.jobs.chain(id);
      assert.deepEqual(
        chain.map(({ status, losses, attempt, run }) => [status, losses, attempt, run?.status]),
        [
          ["failed", 0, 1, "lost"],
          ["running", 0, 1, undefined],
        ],
      );
      assert.equal(again.jobId, chain[1]?.id);
      second.signal("SIGTERM");
      assert.equal((await second.ended).code, 23);
    });
  });
}
