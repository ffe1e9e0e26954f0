// A process that is stopped (SIGSTOP) past its time to live loses what it owns, and learns it when it goes on.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { endSilentSession } from "../../src/telemetry/session.ts";
import { ofOthers } from "../support/job-kinds.ts";
import { startJobProcess } from "../support/job-process.ts";
import { stopOutsideOfWrites } from "../support/job-stop.ts";
import { readStory, untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, openTestStore, testFolder } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a stopped owner's late results are refused, and others run what it lost and what stands in line", async (t) => {
      const { store, url } = await openTestStore(t, backend);
      const folder = testFolder(t);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
      const late = await book.jobs.enqueue("late", {}, { priority: 2 });
      const held = await book.jobs.enqueue("held", {}, { priority: 1 });
      await book.jobs.enqueueMany(ofOthers("noop"), [{}, {}, {}]);
      const owner = startJobProcess(t, { url, folder, work: { concurrency: 2 }, ownClock: true });
      const { sessionId } = await owner.hear("open");
      await Promise.all([owner.hear("began"), owner.hear("began")]);
      assert.equal((await book.jobs.list({ status: "running" })).items.length, 2);

      const silent = await stopOutsideOfWrites(owner, store, sessionId);
      const recovered = await store.write(async (tx) => {
        assert.ok(await endSilentSession(tx, silent));
        return recoverSession(tx, { kinds: {} }, silent.seq);
      });
      const again = await store.write((tx) => recoverSession(tx, { kinds: {} }, silent.seq));
      const other = startJobProcess(t, { url, folder, work: {} });
      other.tell({ do: "go" });
      await untilAllEnded(book);
      // It was asleep for longer than its time to live.
      owner.tell({ do: "forward", ms: 60_000 });
      owner.tell({ do: "go" });
      owner.signal("SIGCONT");
      const lost = await owner.hear("lost");
      const superseded = [await owner.hear("superseded"), await owner.hear("superseded")];

      assert.deepEqual([recovered, again], [2, 0]);
      assert.equal(lost.id, sessionId);
      assert.deepEqual(superseded.map(({ id }) => id).toSorted(), [late.id, held.id].toSorted());
      const { runs, entries } = await readStory(book, folder);
      const by = (pid: number): string[] => runs.filter((run) => run.pid === pid).map((run) => run.status);
      assert.deepEqual(by(owner.pid), ["lost", "lost"]);
      assert.deepEqual(by(other.pid), ["success", "success", "success", "success", "success"]);
      const startedHere = entries.filter(({ deed, pid }) => deed === "start" && pid === owner.pid);
      assert.deepEqual(startedHere.map(({ jobId }) => jobId).toSorted(), [late.id, held.id].toSorted());
      const effects = await book.read((tx) => tx.sql<{ pid: number }>`select pid from effect`);
      assert.deepEqual(
        effects.map(({ pid }) => pid),
        [other.pid],
      );
      assert.deepEqual(await book.doctor(), []);

      // It goes on under its new session.
      await other.kill();
      const next = await book.jobs.enqueue("noop", {});
      await untilAllEnded(book);
      const run = await book.jobs.get(next.id);
      assert.equal((await book.runs.get(run.runId ?? "")).sessionId, lost.replacement);
    });
  });
}
