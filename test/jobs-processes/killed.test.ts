// What a kill costs: one run for each place, and nothing of what stands in line. What is shown right after it is true.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { ofOthers } from "../support/job-kinds.ts";
import { startJobProcess } from "../support/job-process.ts";
import { backends, cleanup, testFolder, bookUrl } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("of 100 jobs in line behind one that runs, a kill loses the one and leaves 99 in their places", async (t) => {
      const url = await bookUrl(t, backend);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      const work = { concurrency: 1 };
      const worker = startJobProcess(t, { url, folder: testFolder(t), work, untilSignal: true });
      // Warm, because that is when workers claimed ahead.
      const quick = await book.jobs.enqueueMany(
        ofOthers("noop"),
        Array.from({ length: 300 }, () => ({})),
      );
      await Promise.all(quick.map((each) => each.result()));
      const { id: long } = await book.jobs.enqueue("held", {});
      await worker.hear("began");
      const made = await book.jobs.enqueueMany(
        ofOthers("noop"),
        Array.from({ length: 99 }, () => ({})),
      );
      const before = await Promise.all(made.map(({ id }) => book.jobs.get(id)));

      worker.signal("SIGKILL");
      await worker.ended;
      await book.sessions.look();

      const lost = await book.jobs.get(long);
      assert.deepEqual([lost.status, lost.run?.status], ["failed", "lost"]);
      const again = await book.jobs.get(lost.retriedBy ?? "");
      assert.deepEqual([again.status, again.waitsFor, again.attempt], ["queued", null, 1]);
      const first = await book.queues.line("default", { limit: 1 });
      assert.equal(first.items[0]?.id, again.id, "it stands where it stood");
      assert.deepEqual(await Promise.all(made.map(({ id }) => book.jobs.get(id))), before);
      assert.deepEqual(await book.doctor(), []);
    });

    test("right after a kill nothing of the process is shown as running, and a dry recovery counts what it would end", async (t) => {
      const url = await bookUrl(t, backend);
      const book = await open(url, { worker: false, attach: false });
      cleanup(t, () => book.close());
      const worker = startJobProcess(t, { url, folder: testFolder(t), work: { concurrency: 1 }, untilSignal: true });
      const { sessionId } = await worker.hear("open");
      const { id } = await book.jobs.enqueue("held", {});
      await worker.hear("began");
      const running = await book.jobs.get(id);

      worker.signal("SIGKILL");
      await worker.ended;

      const { items } = await book.sessions.list();
      const session = items.find((each) => each.id === sessionId);
      assert.deepEqual([session?.status, session?.stoppedAt], ["unknown", session?.lastHeartbeatAt]);
      const [dry, shown] = [await book.jobs.recover({ dryRun: true }), await book.jobs.get(id)];
      assert.deepEqual([dry.lost, dry.recovered], [1, 0]);
      assert.deepEqual([running.gone, shown.status, shown.gone], [false, "running", true]);
    });
  });
}
