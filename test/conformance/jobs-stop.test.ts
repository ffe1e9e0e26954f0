import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book, type JobRecord } from "../../src/index.ts";
import { startWorker, type Worker } from "../../src/jobs/worker/start-worker.ts";
import { heldJob, reasonOf } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";
import { readSession, whileTimePasses } from "../support/session-row.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("stop waits for what runs, starts nothing more, and leaves the line as it is", async (t) => {
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job] });
      const made = await book.jobs.enqueueMany(held.job, [{}, {}, {}, {}]);
      const worker = await book.startWorker({ concurrency: 1 });
      const { succeed, context } = await held.whenBegun(1);
      const positions = (await all(book)).map(({ position }) => position);

      const stopping = worker.stop();
      const twice = worker.stop();
      succeed("in time");
      await Promise.all([stopping, twice]);

      const found = await all(book);
      assert.equal(context.signal.aborted, false);
      assert.deepEqual(
        found.map(({ status }) => status),
        ["completed", "queued", "queued", "queued"],
      );
      assert.deepEqual(
        found.map(({ runId }) => runId === null),
        [false, true, true, true],
      );
      assert.deepEqual(
        found.map(({ id }) => id),
        made.map(({ id }) => id),
      );
      assert.deepEqual(
        found.map(({ position }) => position),
        [null, ...positions.slice(1)],
      );
      assert.equal(held.begun.length, 1);
      assert.equal((await book.runs.list()).items.length, 1);
    });

    test("what does not end within the grace is told to, recorded as cancelled, and made again at no cost", async (t) => {
      const clock = manualClock();
      const held = heldJob("held", { attempts: 2, losses: 1, priority: 4 });
      const { book } = await openTest(t, backend, { use: [held.job], clock });
      const { id } = await book.jobs.enqueue(held.job, { n: 1 }, { key: "k" });
      const worker = await book.startWorker({ grace: "2s" });
      const { context, fail } = await held.whenBegun(1);
      const reasons: unknown[] = [];
      context.signal.addEventListener("abort", () => {
        reasons.push(reasonOf(context.signal));
        fail(context.signal.reason);
      });

      const stopping = worker.stop();
      await clock.advance(1999);
      const before = reasons.length;
      await clock.advance(1);
      await stopping;

      const [first, second, ...rest] = await book.jobs.chain(id);
      assert.deepEqual([before, reasons], [0, [{ code: "closed", cause: "shutdown" }]]);
      assert.deepEqual(
        [first?.status, first?.run?.status, first?.run?.error?.type],
        ["cancelled", "cancelled", "ShutdownError"],
      );
      assert.deepEqual(
        [second?.status, second?.attempt, second?.losses, second?.priority, second?.params, rest.length],
        ["queued", 1, 0, 4, { n: 1 }, 0],
      );
      assert.equal((await book.jobs.enqueue(held.job, {}, { key: "k" })).id, second?.id);

      const next = await book.startWorker();
      (await held.whenBegun(2)).succeed("elsewhere");
      await next.idle();
      assert.deepEqual((await book.jobs.get(second?.id ?? "")).run?.result, "elsewhere");
      assert.deepEqual(await book.doctor(), []);
    });

    test("a handler that ignores the shutdown does not keep the worker from stopping, and its run is nobody else's until it ends", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf");
      const { book } = await openTest(t, backend, { use: [deaf.job], clock });
      const { id } = await book.jobs.enqueue(deaf.job, {});
      const worker = await book.startWorker({ grace: 0 });
      const { succeed } = await deaf.whenBegun(1);

      const stopping = worker.stop();
      await clock.advance(1000);
      await stopping;
      const other = await book.startWorker();
      await clock.advance(60_000);
      await book.jobs.recover();

      assert.deepEqual([worker.running, deaf.begun.length], [1, 1]);
      assert.equal((await book.jobs.get(id)).status, "running");
      succeed("late, and its own");
      await worker.ended();
      assert.deepEqual(
        (await book.jobs.chain(id)).map(({ status, run }) => [status, run?.result]),
        [["completed", "late, and its own"]],
      );
      await other.stop();
      assert.deepEqual(await book.doctor(), []);
    });

    test("a book closes in spite of a handler that ignores its signal, and its session ends with the handler", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf");
      const { book, url } = await openTest(t, backend, { use: [deaf.job], clock });
      const { book: other } = await openTest(t, backend, { url, worker: false });
      const { id } = await book.jobs.enqueue(deaf.job, {});
      await book.startWorker({ grace: "2s" });
      const { context, fail } = await deaf.whenBegun(1);
      const sessionId = book.sessionId ?? "";

      await whileTimePasses(clock, book.close(), 100);

      assert.equal(context.signal.aborted, true);
      assert.equal((await other.jobs.get(id)).status, "running");
      assert.equal((await readSession(other, sessionId)).status, "running");
      fail(context.signal.reason);
      await whileTimePasses(
        clock,
        until(async () => (await readSession(other, sessionId)).status === "success"),
      );
      assert.deepEqual(
        (await other.jobs.chain(id)).map(({ status, attempt }) => [status, attempt]),
        [
          ["cancelled", 1],
          ["queued", 1],
        ],
      );
    });

    test("closing the book stops its workers, and nothing is left running", async (t) => {
      const quick = job("quick", { run: () => undefined });
      const { book, url } = await openTest(t, backend, { use: [quick] });
      await Promise.all([book.startWorker(), book.startWorker({ concurrency: 1 })]);
      await book.jobs.enqueueMany(
        quick,
        Array.from({ length: 300 }, () => ({})),
      );

      await book.close();

      const { book: later } = await openTest(t, backend, { url, use: [quick] });
      const open = await later.read(
        (tx) =>
          tx.sql<{
            status: string;
          }>`select distinct status from daybook_job_now where status not in ('queued', 'completed')`,
      );
      assert.deepEqual(open, []);
      const worker = await later.startWorker();
      await worker.idle();
      const [done] = await later.read(
        (tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_run where status = 'success'`,
      );
      assert.equal(done?.n, 300);
    });

    test("a worker that is stopped at any moment runs nothing afterwards and leaves nothing behind", async (t) => {
      let running = 0;
      const quick = job("quick", {
        async run() {
          running++;
          await new Promise((resolve) => setImmediate(resolve));
          running--;
        },
      });
      const { book } = await openTest(t, backend, { use: [quick], durability: "normal" });

      for (let round = 0; round < 12; round++) {
        const worker = await book.startWorker({ concurrency: 1 + (round % 3) });
        const making = book.jobs.enqueueMany(
          quick,
          Array.from({ length: 20 }, () => ({ round })),
        );
        for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve));
        await worker.stop();
        assert.equal(running, 0);
        await making;
        assert.deepEqual((await book.jobs.list({ status: "running" })).items, []);
      }

      const last = await book.startWorker();
      await last.idle();
      assert.equal((await book.jobs.list({ status: "completed", limit: 500 })).items.length, 240);
    });

    test("a worker may be started while another one's work ends", async (t) => {
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job] });
      await book.startWorker();
      await book.jobs.enqueue(held.job, {});
      const { succeed } = await held.whenBegun(1);

      const starting = book.startWorker();
      succeed();
      const second = await starting;

      await second.idle();
      await until(async () => (await all(book))[0]?.status === "completed");
    });

    test("a worker that runs a job before it has swept is stopped like any other", async (t) => {
      const held = heldJob("held");
      const { engine, store, jobs } = await openEngine(t, backend, { use: [held.job] });
      const [swept, joined] = [Promise.withResolvers<void>(), Promise.withResolvers<Worker>()];
      let sweeping = false;
      const read: typeof store.read = async (statement) => {
        if (sweeping) await swept.promise;
        return store.read(statement);
      };
      const starting = startWorker({ ...engine, store: { ...store, read } }, {}, undefined, (made) => {
        sweeping = true;
        joined.resolve(made);
      });
      const worker = await joined.promise;
      const { id } = await jobs.enqueue(held.job, {});
      const { succeed } = await held.whenBegun(1);

      const stopping = worker.stop();
      succeed();
      await stopping;
      swept.resolve();

      assert.equal(await starting, worker);
      assert.equal((await jobs.get(id)).status, "completed");
    });

    test("a worker whose storage was closed under it tries once, and no more", async (t) => {
      const held = heldJob("held");
      let turns = 0;
      const clock = manualClock();
      const counted = { ...clock, nextTurn: () => (turns++, clock.nextTurn()) };
      const { store, engine, jobs } = await openEngine(t, backend, { use: [held.job], clock: counted });
      const worker = await startWorker(engine);
      await jobs.enqueue(held.job, {});
      const { succeed } = await held.whenBegun(1);

      await store.close();
      succeed();
      await worker.stop();
      const before = turns;
      for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));

      assert.ok(turns - before <= 2, `${turns - before} turns`);
    });

    test("a worker's options are checked, with the nearest name", async (t) => {
      const { book } = await openTest(t, backend);
      const wrong: [object, RegExp][] = [
        [{ concurency: 5 }, /unknown option "concurency" for worker: did you mean "concurrency"\?/],
        [{ concurrency: 0 }, /concurrency 0 is not a whole number from 1/],
        [{ prefetch: 1 }, /unknown option "prefetch" for worker/],
        [{ grace: "soon" }, /grace is "soon"/],
        [{ queues: [""] }, /queue "" is empty/],
      ];

      for (const [options, message] of wrong)
        await assert.rejects(book.startWorker(options), { code: "invalid", message });
    });
  });
}

async function all(book: Book): Promise<JobRecord[]> {
  return (await book.jobs.list({ limit: 500 })).items.toReversed();
}

async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setImmediate(resolve));
}
