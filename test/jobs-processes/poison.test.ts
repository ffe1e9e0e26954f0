// A job that kills its process is found out: it alone is blamed, and given up after its allowance.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { ofOthers } from "../support/job-kinds.ts";
import { readStory, untilAllEnded } from "../support/job-story.ts";
import { supervise } from "../support/job-supervisor.ts";
import { backends, cleanup, testFolder, bookUrl } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    for (const losses of [3, 1, 0]) {
      test(`a job that kills its process ends failed after its ${losses} losses and costs its neighbours none`, async (t) => {
        const url = await bookUrl(t, backend);
        const folder = testFolder(t);
        const book = await open(url, { worker: false });
        cleanup(t, () => book.close());
        const neighbours = Array.from({ length: 40 }, (_, index) => ({ ms: index % 4 }));
        await book.jobs.enqueueMany(ofOthers("neighbour"), neighbours.slice(0, 5));
        const poison = await book.jobs.enqueue("poison", {}, { losses });
        await book.jobs.enqueueMany(ofOthers("neighbour"), neighbours.slice(5));
        // Neighbours that do not survive the loss of their process.
        await book.jobs.enqueueMany(ofOthers("neighbour"), neighbours, { losses: 0, queue: "other" });

        const { gone, all, failures } = supervise(t, [{ start: { url, folder, work: { concurrency: 4 } }, count: 2 }]);
        await untilAllEnded(book);

        const { jobs, runs, entries } = await readStory(book, folder);
        const chain = await book.jobs.chain(poison.id);
        // Twice among others, which is nobody's fault, and then alone.
        const deaths = losses === 0 ? 1 : losses + 2;
        assert.deepEqual(
          chain.map((job) => job.status),
          Array.from({ length: deaths }, () => "failed"),
        );
        assert.deepEqual(
          chain.map((job) => job.run?.status),
          Array.from({ length: deaths }, () => "lost"),
        );
        assert.deepEqual(
          chain.map((job) => job.losses),
          Array.from({ length: deaths }, (_, index) => Math.max(0, index - 1)),
        );
        assert.equal(chain.at(-1)?.attempt, 1);
        const { because } = await book.jobs.explain(chain.at(-1)?.id ?? "");
        assert.match(because.join(" "), /session lost/);
        // Every execution of it ended a process, and nothing else did.
        const ofPoison = new Set(chain.map(({ id }) => id));
        const started = entries.filter(({ deed, jobId }) => deed === "start" && ofPoison.has(jobId));
        const dead = new Set(started.map(({ pid }) => pid));
        await Promise.all(all.filter(({ pid }) => dead.has(pid)).map(({ ended }) => ended));
        assert.equal(started.length, deaths);
        assert.deepEqual(gone, dead);
        assert.deepEqual(failures, []);

        const others = jobs.filter(({ name }) => name === "neighbour");
        assert.ok(
          others.every((job) => job.losses === 0),
          "a neighbour was charged",
        );
        const last = others.filter((job) => !others.some(({ retry_of }) => retry_of === job.seq));
        assert.equal(last.length, 80);
        // Only what ran beside its first two executions shared its fate: later it was alone.
        const shared = runs.filter((run) => run.status === "lost" && !ofPoison.has(run.job_id));
        const amongOthers = started.slice(0, 2).map(({ pid }) => pid);
        assert.ok(shared.every((run) => amongOthers.includes(run.pid)));
        // One that must not run twice is given up, even if it ended and nobody could write that down.
        const givenUp = last.filter(({ status }) => status !== "completed");
        assert.ok(givenUp.every((job) => job.losses_max === 0));
        const lostRuns = new Map(runs.map((run) => [run.job_id, run]));
        assert.ok(givenUp.every(({ id }) => dead.has(lostRuns.get(id)?.pid ?? 0)));
        assert.ok(runs.every((run) => run.status === "success" || gone.has(run.pid)));
        assert.deepEqual(await book.doctor(), []);
        t.diagnostic(
          `${deaths} of ${all.length} processes died, ${others.length - 80} neighbours were tried again and ${givenUp.length} given up`,
        );
      });
    }
  });
}
