// Jobs in real processes that are really killed: the full counts of what test/jobs-processes tries in small.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { endBackendsUnderLoad } from "../support/job-backends.ts";
import { killGroups } from "../support/job-group-kills.ts";
import { killUnderLoad } from "../support/job-kill-loop.ts";
import { dieAt, killPoints } from "../support/job-kill-points.ts";
import { startJobProcess } from "../support/job-process.ts";
import { shareOut } from "../support/job-share.ts";
import { stopOutsideOfWrites } from "../support/job-stop.ts";
import { readStory, untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, openTestStore, testFolder } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("each of 5,000 jobs is run once and by one of eight processes", async (t) => {
      const { story, byProcess } = await shareOut(t, backend, { processes: 8, jobs: 5000 });

      assert.equal(story.runs.length, 5000);
      assert.equal(byProcess.size, 8);
    });

    test("300 kills of workers and producers under load lose nothing and break no limit", async (t) => {
      await killUnderLoad(t, backend, { kills: 300, workers: 3, producers: 2 });
    });

    test("killed at every pass of every point, a job that finishes with an effect leaves it exactly once", async (t) => {
      const passes = Array.from({ length: 16 }, (_, index) => index + 1);
      const points = killPoints.flatMap((name) => passes.map((pass) => ({ name, pass })));

      const missed = await dieAt(t, backend, points);

      // Three jobs take each point at least three times; a process has no more than so many commits for them.
      assert.ok(
        missed.every(({ pass }) => pass > 2),
        JSON.stringify(missed),
      );
      t.diagnostic(`${points.length - missed.length} kills at ${killPoints.length} points`);
    });

    test("killed at many passes of every point of a turn, a worker leaves groups that the next one ends as they should", async (t) => {
      await killGroups(t, backend, {
        "storage.commit": [5, 7],
        "storage.committed": [6, 8],
        "jobs.settled": [2, 3, 5, 7],
        "jobs.claimed": [1, 2, 4, 6],
        "jobs.step.ran": [1, 3],
        "jobs.step.kept": [2, 4],
        "jobs.finish.worked": [1, 2],
        "jobs.finish.settled": [1, 3],
        "jobs.finish.committed": [1, 2],
      });
    });
  });
}

test("300 ended backends lose nothing, run nothing twice and leave nothing running for ever", async (t) => {
  await endBackendsUnderLoad(t, { ended: 300 });
});

// Real time: the owner is found silent by the other process alone, half a minute later.
describe("stopped past its time to live", { concurrency: true }, () => {
  for (const backend of backends) {
    test(`${backend}: the owner's job is run by another process, and its late result is refused`, async (t) => {
      const { store, url } = await openTestStore(t, backend);
      const folder = testFolder(t);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
      const { id } = await book.jobs.enqueue("late", {});
      const owner = startJobProcess(t, { url, folder, work: { concurrency: 1 } });
      const { sessionId } = await owner.hear("open");
      await owner.hear("began");
      const waiting = await book.jobs.enqueue("noop", {});

      await stopOutsideOfWrites(owner, store, sessionId);
      const other = startJobProcess(t, { url, folder, work: {} });
      other.tell({ do: "go" });
      await untilAllEnded(book, { ms: 90_000 });
      owner.tell({ do: "go" });
      owner.signal("SIGCONT");
      const lost = await owner.hear("lost");
      const superseded = await owner.hear("superseded");

      assert.deepEqual([lost.id, superseded.id], [sessionId, id]);
      const { runs, entries } = await readStory(book, folder);
      assert.deepEqual(
        runs.map(({ pid, status }) => [pid, status]),
        // What had not begun stood in line, so the other process did not wait for the owner's end to run it.
        [other.pid, owner.pid, other.pid].map((pid) => [pid, pid === owner.pid ? "lost" : "success"]),
      );
      assert.ok(entries.every((entry) => entry.pid === other.pid || entry.jobId !== waiting.id));
      const effects = await book.read((tx) => tx.sql<{ pid: number }>`select pid from effect`);
      assert.deepEqual(effects, [{ pid: other.pid }]);
      assert.deepEqual(await book.doctor(), []);
    });
  }
});
