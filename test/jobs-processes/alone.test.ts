// After its process was lost a job runs alone in its session, so that only the guilty one is blamed.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { backends, cleanup, openTest } from "../support/open-test.ts";
import { until, whileTimePasses } from "../support/session-row.ts";

async function makeAlone(book: Book, id: string): Promise<void> {
  await book.write((tx) => tx.sql`update job set alone = 1 where id = ${id}`);
}

function gated(name: string): { run: ReturnType<typeof job>; began: () => number; open: () => void } {
  const gate = Promise.withResolvers<void>();
  let began = 0;
  const run = job(name, {
    run() {
      began++;
      return gate.promise;
    },
  });
  return { run, began: () => began, open: gate.resolve };
}

for (const backend of backends) {
  describe(backend, () => {
    test("jobs that must run alone follow each other, also when each ends by finish", async (t) => {
      let running = 0;
      let most = 0;
      const lonely = job("lonely", {
        async run(_params, { finish }) {
          most = Math.max(most, ++running);
          await finish(() => undefined);
          running--;
        },
      });
      // Nothing else wakes the worker: the clock stands still, so nobody's heart beats.
      const { book } = await openTest(t, backend, { use: [lonely], clock: manualClock() });
      const made = await book.jobs.enqueueMany(lonely, [{}, {}, {}, {}]);
      for (const { id } of made) await makeAlone(book, id);

      const worker = await book.startWorker();
      await worker.idle();

      assert.equal(most, 1);
      assert.equal((await book.jobs.list({ status: "completed" })).items.length, 4);
    });

    test("of two workers in one process, one waits while the other runs a job alone", async (t) => {
      const lonely = gated("lonely");
      const other = gated("other");
      const { book } = await openTest(t, backend, { use: [lonely.run, other.run] });
      const { id } = await book.jobs.enqueue(lonely.run, {}, { queue: "a" });
      await makeAlone(book, id);
      await book.startWorker({ queues: ["a"] });
      await book.startWorker({ queues: ["b"] });
      await until("it runs alone", async () => (lonely.began() === 1 ? true : undefined));

      const waiting = await book.jobs.enqueue(other.run, {}, { queue: "b" });
      // A process of its own is free to run it, so it was offered.
      const { book: elsewhere } = await openTest(t, backend, {
        use: [job("free", { run: () => undefined })],
        url: book.location,
      });
      await elsewhere.startWorker({ queues: ["c"] });
      const free = await elsewhere.jobs.enqueue("free", {}, { queue: "c" });
      await until("others run", async () => ((await book.jobs.get(free.id)).status === "completed" ? true : undefined));
      const meanwhile = [(await book.jobs.get(waiting.id)).status, other.began()];
      lonely.open();
      await until("then it runs", async () => (other.began() === 1 ? true : undefined));
      other.open();

      assert.deepEqual(meanwhile, ["queued", 0]);
    });

    test("a job that must run alone gets its turn where others always run for longer than it is waited for", async (t) => {
      const clock = manualClock();
      let lonelyRuns = 0;
      const lonely = job("lonely", { run: () => void lonelyRuns++ });
      // As soon as one ends the next is there: this worker is never empty by itself.
      const long = job("long", {
        async run(_params, { book }) {
          await book.jobs.enqueue(long, {});
          await clock.sleep(25_000);
        },
      });
      const { book } = await openTest(t, backend, { use: [lonely, long], clock });
      cleanup(t, () => whileTimePasses(clock, book.close()));
      await book.jobs.enqueueMany(long, [{}, {}]);
      await book.startWorker({ concurrency: 2, grace: 0 });
      await until("both run", async () =>
        (await book.jobs.list({ status: "running" })).items.length === 2 ? true : undefined,
      );
      const { id } = await book.jobs.enqueue(lonely, {});
      await makeAlone(book, id);

      for (let seconds = 0; lonelyRuns === 0 && seconds < 600; seconds++) {
        await clock.advance(1000);
        await book.jobs.get(id); // a round trip, in which the worker has its turn as well
      }

      assert.equal(lonelyRuns, 1);
    });
  });
}
