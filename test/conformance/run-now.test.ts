import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { heldJob } from "../jobs/handlers.ts";
import { backends, openTest } from "../support/open-test.ts";
import { until, whileTimePasses } from "../support/session-row.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("direct work runs after what runs and before what stands in line, whose order is untouched", async (t) => {
      const order: string[] = [];
      const held = heldJob("held");
      const quick = job<{ n: number }>("quick", { run: ({ n }) => void order.push(`queued ${n}`) });
      const direct = job<{ n: number }, number>("direct", {
        run({ n }) {
          order.push("direct");
          return n * 2;
        },
      });
      const { book } = await openTest(t, backend, { use: [held.job, quick, direct] });
      await book.jobs.enqueue(held.job, {});
      const worker = await book.startWorker({ concurrency: 1 });
      const { succeed } = await held.whenBegun(1);
      await book.jobs.enqueueMany(quick, [{ n: 1 }, { n: 2 }, { n: 3 }], { priority: 900 });

      const asked = book.jobs.runNow(direct, { n: 21 });
      await untilHeld(book);
      const [reserved] = await book.reservations.list();
      assert.deepEqual([reserved?.queue, reserved?.note, order], ["default", "direct: direct", []]);
      succeed();
      const doubled: number = await asked;
      await worker.idle();

      assert.equal(doubled, 42);
      await untilDone(book, 5);
      assert.deepEqual(order, ["direct", "queued 1", "queued 2", "queued 3"]);
      const [made] = (await book.jobs.list({ name: "direct" })).items;
      assert.deepEqual([made?.origin, made?.status, made?.attempts], ["direct", "completed", 1]);
      assert.deepEqual(await book.reservations.list(), []);
      assert.deepEqual(await book.doctor(), []);
    });

    test("direct work has steps and a finish like any other", async (t) => {
      const direct = job("direct", {
        run: async (_params, { step, finish }) => {
          const one = await step("one", () => 1);
          const two = await step.write("two", async (tx) => (await tx.sql<{ n: number }>`select 2 as n`)[0]?.n ?? 0);
          return finish(() => one + two);
        },
      });
      const { book } = await openTest(t, backend, { use: [direct] });

      assert.equal(await book.jobs.runNow(direct, {}), 3);
    });

    test("a failure goes to the caller and is not tried again", async (t) => {
      const fails = job("fails", {
        attempts: 4,
        run() {
          throw new Error("no paper");
        },
      });
      const { book } = await openTest(t, backend, { use: [fails] });

      await assert.rejects(book.jobs.runNow(fails, {}), { code: "conflict", message: /has failed.*no paper/ });

      const { items } = await book.jobs.list();
      assert.deepEqual(
        items.map(({ status, retriedBy }) => [status, retriedBy]),
        [["failed", null]],
      );
      assert.deepEqual(await book.reservations.list(), []);
    });

    test("while somebody else holds the queue the caller is told, or waits for them", async (t) => {
      const direct = job("direct", { run: () => "ran" });
      const { book, url } = await openTest(t, backend, { use: [direct] });
      const { book: other } = await openTest(t, backend, { url, use: [direct] });
      const { id } = await other.reservations.reserve("default");

      await assert.rejects(book.jobs.runNow(direct, {}, { onBusy: "reject" }), {
        code: "conflict",
        message: /queue "default" is reserved by session/,
      });
      await assert.rejects(book.jobs.runNow(direct, {}, { onBusy: "wait", timeout: 1 }), { code: "timeout" });
      assert.deepEqual((await book.jobs.list()).items, []);
      assert.equal(await book.jobs.runNow(direct, {}, { queue: "elsewhere" }), "ran");
      assert.equal(await book.tenant("acme").jobs.runNow(direct, {}), "ran");

      const waiting = book.jobs.runNow(direct, {});
      await other.reservations.release(id);
      assert.equal(await waiting, "ran");
    });

    test("a caller that no longer waits cancels what it asked for", async (t) => {
      const clock = manualClock();
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job], clock });
      const asked = book.jobs.runNow(held.job, {}, { timeout: "5s" });
      const gone = assert.rejects(asked, { code: "timeout" });
      const { context, fail } = await held.whenBegun(1);
      context.signal.addEventListener("abort", () => fail(context.signal.reason));

      await whileTimePasses(clock, gone, 200);

      const [made] = (await book.jobs.list()).items;
      assert.deepEqual([made?.status, made?.retriedBy], ["cancelled", null]);
      assert.deepEqual(await book.reservations.list(), []);
      await whileTimePasses(clock, book.close(), 200);
    });

    test("an owner that lives keeps its turn for longer than ten minutes", async (t) => {
      const clock = manualClock();
      const held = heldJob("held");
      const quick = job("quick", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [held.job, quick], clock });
      const worker = await book.startWorker();
      const asked = book.jobs.runNow(held.job, {});
      const { succeed } = await held.whenBegun(1);
      const { id } = await book.jobs.enqueue(quick, {});
      const began = clock.now();

      while (clock.now() < began + 1_500_000) {
        await clock.advance(5000);
        // Something is written, and with it the beat; else a time that runs this fast would leave the heart behind.
        await book.queues.resume("unused");
        // So would it leave a renewal that is under way.
        await until("its turn is renewed", async () => {
          const [turn] = await book.reservations.list();
          return (turn?.expiresAt ?? 0) > clock.now() + 300_000 ? true : undefined;
        });
      }
      const [reserved] = await book.reservations.list();
      assert.ok((reserved?.expiresAt ?? 0) > clock.now());
      assert.equal((await book.jobs.get(id)).status, "queued");
      succeed("at last");

      assert.equal(await whileTimePasses(clock, asked, 100), "at last");
      await whileTimePasses(clock, worker.idle(), 100);
      assert.equal((await book.jobs.get(id)).status, "completed");
      await whileTimePasses(clock, book.close(), 100);
    });

    test("closing the book ends direct work and tells the caller", async (t) => {
      const held = heldJob("held");
      const { book, url } = await openTest(t, backend, { use: [held.job], worker: { grace: 1 } });
      const asked = assert.rejects(book.jobs.runNow(held.job, {}));
      const { context, fail } = await held.whenBegun(1);
      context.signal.addEventListener("abort", () => fail(context.signal.reason));

      await book.close();
      await asked;

      const { book: later } = await openTest(t, backend, { url, use: [held.job] });
      assert.deepEqual(
        (await later.jobs.list()).items.map(({ status }) => status),
        ["cancelled"],
      );
      assert.deepEqual(await later.reservations.list(), []);
    });

    test("direct work counts against the limits of its name", async (t) => {
      const held = heldJob("held", { concurrency: 1 });
      const { book } = await openTest(t, backend, { use: [held.job] });
      await book.startWorker();
      await book.jobs.enqueue(held.job, {}, { queue: "other" });
      const first = await held.whenBegun(1);
      const asked = book.jobs.runNow(held.job, {});
      await untilHeld(book);
      first.succeed();
      (await held.whenBegun(2)).succeed("second");

      assert.equal(await asked, "second");
    });

    test("direct work comes before what stands in line for a slot of its name, in any queue", async (t) => {
      const order: string[] = [];
      const held = heldJob("held", { concurrency: 1 });
      const { book } = await openTest(t, backend, { use: [held.job] });
      const worker = await book.startWorker();
      await book.jobs.enqueue(held.job, { n: 0 }, { queue: "other" });
      const first = await held.whenBegun(1);
      await book.jobs.enqueueMany(held.job, [{ n: 1 }, { n: 2 }], { queue: "other" });
      const asked = book.jobs.runNow(held.job, { n: "direct" });
      await untilHeld(book);
      first.succeed();
      for (let n = 2; n <= 4; n++) {
        const { params, succeed } = await held.whenBegun(n);
        order.push(String((params as { n: unknown }).n));
        succeed();
      }

      await asked;
      await worker.idle();
      assert.deepEqual(order, ["direct", "1", "2"]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a slot that was kept for direct work goes to the next when its caller gives up", async (t) => {
      const clock = manualClock();
      const held = heldJob("held", { concurrency: 1 });
      const blocks = heldJob("blocks");
      const { book } = await openTest(t, backend, { use: [held.job, blocks.job], clock });
      await book.startWorker();
      await book.jobs.enqueue(blocks.job, {});
      const blocking = await blocks.whenBegun(1);
      const gone = assert.rejects(book.jobs.runNow(held.job, {}, { timeout: "5s" }), { code: "timeout" });
      await untilHeld(book);
      const { id } = await book.jobs.enqueue(held.job, {}, { queue: "other" });
      while ((await book.jobs.get(id)).waitsFor !== "key") await new Promise((resolve) => setImmediate(resolve));

      await whileTimePasses(clock, gone, 200);
      (await held.whenBegun(1)).succeed();
      blocking.succeed();

      await untilDone(book, 2);
      await whileTimePasses(clock, book.close(), 200);
    });

    test("a worker that cannot be started leaves nothing held", async (t) => {
      const direct = job("direct", { run: () => "ran" });
      const { book } = await openTest(t, backend, { use: [direct], worker: { grace: "soon" } });

      await assert.rejects(book.jobs.runNow(direct, {}), {
        code: "invalid",
        message: /grace is "soon", which is not a duration/,
      });

      assert.deepEqual(await book.reservations.list(), []);
      assert.deepEqual(
        (await book.jobs.list()).items.map(({ status }) => status),
        ["cancelled"],
      );
    });

    test("what cannot be run directly is refused, and nothing is held", async (t) => {
      const direct = job("direct", { run: () => "ran" });
      const { book } = await openTest(t, backend, { use: [direct] });
      await assert.rejects(book.jobs.runNow("direkt", {}), /did you mean "direct"\?/);
      await assert.rejects(
        book.jobs.runNow(direct, {}, { onBusy: "never" } as never),
        /onBusy "never" is not known\. Known: wait, reject/,
      );
      await assert.rejects(book.jobs.runNow(direct, {}, { priority: 5 } as never), /unknown option "priority"/);
      await assert.rejects(
        book.write(() => book.jobs.runNow(direct, {})),
        { code: "invalid" },
      );
      assert.deepEqual(await book.reservations.list({ all: true }), []);
    });
  });
}

async function untilHeld(book: Book): Promise<void> {
  while ((await book.reservations.list()).length === 0) await new Promise((resolve) => setImmediate(resolve));
}

async function untilDone(book: Book, count: number): Promise<void> {
  const done = async (): Promise<number> => (await book.jobs.list({ status: "completed" })).items.length;
  while ((await done()) < count) await new Promise((resolve) => setImmediate(resolve));
}
