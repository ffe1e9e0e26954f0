// PostgreSQL: connections break under load, and at the very moment of a commit.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, open, type Book } from "../../src/index.ts";
import { jobSuperseded } from "../../src/jobs/kind.ts";
import { startProxy, type Loss } from "../storage/postgres-proxy.ts";
import { endBackendsUnderLoad } from "../support/job-backends.ts";
import { untilAllEnded } from "../support/job-story.ts";
import { cleanup, bookUrl } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

test("20 ended backends lose nothing, run nothing twice and leave nothing running for ever", async (t) => {
  await endBackendsUnderLoad(t, { ended: 20 });
});

type Parts = {
  /** Reaches the server without the proxy. */
  readonly direct: Book;
  readonly runs: readonly string[];
  readonly superseded: readonly unknown[];
  readonly cuts: () => number;
};

/** A worker behind a proxy that cuts the wire at the commit after the first statement that says so. */
async function openThrough(t: TestContext, cut: { after: string; loss: Loss }): Promise<Parts> {
  const url = await bookUrl(t, "postgres");
  const proxy = await startProxy(t, url);
  const direct = await open(url, { worker: false });
  cleanup(t, () => direct.close());
  const runs: string[] = [];
  const superseded: unknown[] = [];
  let cuts = 0;
  const fault = (moment: "before" | "after", text: string): void => {
    if (cuts > 0 || moment === "after" || !text.includes(cut.after)) return;
    cuts++;
    proxy.cutAt("commit", cut.loss);
  };
  cleanup(
    t,
    jobSuperseded.subscribe((fields) => superseded.push(fields)),
  );
  const note = job("note", { run: (_params, context) => void runs.push(context.job.runId) });
  const book = await open(proxy.url, { use: [note], fault });
  cleanup(t, () => book.close());
  const worker = await book.startWorker({ concurrency: 1 }); // one turn at a time
  await worker.idle();
  return { direct, runs, superseded, cuts: () => cuts };
}

const steps = [
  { what: "a claim", after: "update daybook_line as line set status = 'running'" },
  { what: "an ending", after: "insert into daybook_run (" },
  {
    what: "a claim of one that must run alone",
    after: "update daybook_line as line set status = 'running'",
    alone: true,
  },
];

for (const { what, after, alone = false } of steps) {
  for (const loss of ["request", "answer"] as const) {
    test(`${what} whose commit lost its ${loss} is made up for: the job runs once and is not called superseded`, async (t) => {
      const { direct, runs, superseded, cuts } = await openThrough(t, { after, loss });

      await direct.queues.pause("default");
      const { id } = await direct.jobs.enqueue("note", {});
      if (alone) await tamper(direct, (tx) => tx.sql`update daybook_job set alone = 2 where id = ${id}`);
      await direct.queues.resume("default");
      await untilAllEnded(direct);

      const { status, attempt, losses, runId } = await direct.jobs.get(id);
      assert.equal(cuts(), 1);
      assert.deepEqual([status, attempt, losses], ["completed", 1, 0]);
      assert.deepEqual(runs, [runId]);
      assert.deepEqual(
        (await direct.runs.list()).items.map((run) => run.id),
        [runId],
      );
      // The second settle is over only with the turn after it.
      await direct.jobs.enqueue("note", {});
      await untilAllEnded(direct);
      assert.deepEqual(superseded, []);
      assert.deepEqual(await direct.doctor(), []);
    });
  }
}
