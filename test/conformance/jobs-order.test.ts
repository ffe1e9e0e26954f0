import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, seededRandom, type Book, type Job, type ManualClock } from "../../src/index.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, testFolder, type Backend } from "../support/open-test.ts";

type Named = { readonly n: number };

for (const backend of backends) {
  describe(backend, () => {
    test("jobs run by priority, then by place in line, whenever they were made and whatever their id", async (t) => {
      const { book, order, expected } = await openMixed(t, backend);

      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      assert.deepEqual(order, expected);
    });

    test("the order is the same after the book was closed and opened again in the middle", async (t) => {
      const { book, url, order, expected, use } = await openMixed(t, backend);
      const worker = await book.startWorker({ concurrency: 1 });
      while (order.length < 20) await new Promise((resolve) => setImmediate(resolve));
      await worker.stop();
      await book.close();
      const before = order.length;

      const { book: again } = await openTest(t, backend, { url, use });
      const next = await again.startWorker({ concurrency: 1 });
      await next.idle();

      assert.ok(before >= 20 && before < expected.length, `${before} before`);
      assert.deepEqual(order, expected);
    });

    test("a retry stands behind what was made before it, and a job that was released stands where it stood", async (t) => {
      const clock = manualClock();
      const order: number[] = [];
      let failed = false;
      const flaky = job("flaky", {
        attempts: 2,
        backoff: ["0ms"],
        run({ n }: Named) {
          order.push(n);
          if (n !== 1 || failed) return;
          failed = true;
          throw new Error("once");
        },
      });
      const { book } = await openTest(t, backend, { use: [flaky], clock });
      await book.jobs.pause("flaky");
      await book.jobs.enqueueMany(flaky, [{ n: 1 }, { n: 2 }]);
      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();
      await book.queues.pause("default");
      await book.jobs.resume("flaky");
      await book.jobs.enqueueMany(flaky, [{ n: 3 }, { n: 4 }]);

      await book.queues.resume("default");
      await worker.idle();

      assert.deepEqual(order, [1, 2, 3, 4, 1]);
    });

    test("two lanes take turns, however many jobs stand in each", async (t) => {
      const clock = manualClock();
      const order: string[] = [];
      const slow = job("slow", {
        async run(_params: Named, { job: { queue } }) {
          order.push(queue);
          await pass(clock, 25); // longer than what is claimed in batches
        },
      });
      const { book } = await openTest(t, backend, { use: [slow], clock });
      await book.jobs.enqueueMany(slow, numbers(30), { queue: "long" });
      await book.jobs.enqueueMany(slow, numbers(5), { queue: "short" });

      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      assert.deepEqual(order.slice(0, 10), [
        "long",
        "short",
        "long",
        "short",
        "long",
        "short",
        "long",
        "short",
        "long",
        "short",
      ]);
      assert.equal(order.length, 35);
    });

    test("nobody's first job waits for more than a round, beside a tenant with 2,000 jobs", async (t) => {
      const order: string[] = [];
      const work = job("work", {
        run(_params: Named, context) {
          order.push(context.job.tenant);
        },
      });
      const { book } = await openTest(t, backend, { use: [work], durability: "normal" });
      const tenants = Array.from({ length: 200 }, (_, n) => `t${String(n).padStart(3, "0")}`);
      const greedy = book.tenant("greedy");
      await greedy.jobs.enqueueMany(work, numbers(2000));
      await Promise.all(tenants.map((id) => book.tenant(id).jobs.enqueue(work, { n: 0 })));

      const worker = await book.startWorker({ concurrency: 4 });
      await worker.idle();

      assert.equal(order.length, 2200);
      const last = Math.max(...tenants.map((id) => order.indexOf(id)));
      // Every round looks into 20 lanes and takes at most 100 jobs, so 201 lanes have all been served after 11 rounds.
      assert.ok(last <= 1100, `the last tenant's first job was the ${last}th`);
      const greedyBefore = order.slice(0, last).filter((tenant) => tenant === "greedy").length;
      assert.ok(greedyBefore > 0, "the greedy one has its turns too");
    });

    test("a worker of one queue finds its lane behind any number of others, and leaves those alone", async (t) => {
      const seen: string[] = [];
      const work = job("work", {
        run(_params: Named, context) {
          seen.push(context.job.queue);
        },
      });
      const { book } = await openTest(t, backend, { use: [work] });
      for (let n = 0; n < 45; n++) await book.jobs.enqueue(work, { n }, { queue: `other-${n}` });
      await book.jobs.enqueueMany(work, numbers(3), { queue: "mine" });

      const worker = await book.startWorker({ queues: ["mine"] });
      await worker.idle();

      assert.deepEqual(seen, ["mine", "mine", "mine"]);
      assert.equal((await book.jobs.list({ status: "queued" })).items.length, 45);
    });

    test("closed lanes in front do not keep an open one from being served", async (t) => {
      const seen: string[] = [];
      const work = job("work", {
        run(_params: Named, context) {
          seen.push(context.job.queue);
        },
      });
      const { book } = await openTest(t, backend, { use: [work] });
      for (let n = 0; n < 45; n++) {
        await book.jobs.enqueue(work, { n }, { queue: `closed-${n}` });
        await book.queues.pause(`closed-${n}`);
      }
      await book.jobs.enqueue(work, { n: 0 }, { queue: "open" });

      const worker = await book.startWorker();
      await worker.idle();

      assert.deepEqual(seen, ["open"]);
      await book.queues.resume("closed-44");
      await worker.idle();
      assert.deepEqual(seen, ["open", "closed-44"]);
    });

    test("a claim shares what it takes among the lanes and begins the next one behind the last", async (t) => {
      const work = job("work", { run: (_params: Named) => undefined });
      const at = await openEngine(t, backend, { use: [work] });
      for (const queue of ["a", "b", "c"]) await at.jobs.enqueueMany(work, numbers(4), { queue });
      const by = at.claimer();
      const queues = async (want: number): Promise<string> =>
        (await at.claim(want, by)).map((each) => each.queue).join("");

      assert.deepEqual([await queues(1), await queues(1), await queues(1), await queues(1)], ["a", "b", "c", "a"]);
      assert.equal(await queues(5), "bcabc");
      assert.equal(await queues(10), "bca");
    });
  });
}

test("the order is the same on a copied file", async (t) => {
  const { book, url, order, expected, use } = await openMixed(t, "sqlite");
  await book.close();
  const copy = join(testFolder(t), "copy.db");
  await copyFile(url, copy);
  await using copied = await openCopy(copy, use);
  const worker = await copied.startWorker({ concurrency: 1 });

  await worker.idle();

  assert.deepEqual(order, expected);
});

async function openCopy(url: string, use: NonNullable<Parameters<typeof openTest>[2]>["use"]): Promise<Book> {
  const { open } = await import("../../src/index.ts");
  return open(url, { use: use ?? [] });
}

/** A book with a mixed set in one lane: priorities, equal and moved creation times, delayed ones that are due, and ids in
 *  no order. */
async function openMixed(
  t: TestContext,
  backend: Backend,
): Promise<{ book: Book; url: string; order: number[]; expected: number[]; use: [Job<Named>] }> {
  const order: number[] = [];
  const work = job("work", {
    run({ n }: Named) {
      order.push(n);
    },
  });
  const clock = manualClock();
  const { book, url } = await openTest(t, backend, { use: [work], clock, random: seededRandom(7) });
  const random = seededRandom(11);
  const made: { n: number; priority: number; made: number }[] = [];
  for (let n = 0; n < 60; n++) {
    const priority = [-1000, -1, 0, 0, 0, 1, 100, 1000][Math.floor(random() * 8)] ?? 0;
    if (random() < 0.3) clock.step(random() < 0.5 ? 1000 : -1000);
    await book.jobs.enqueue(work, { n }, { priority, ...(random() < 0.2 ? { in: 1 } : {}) });
    made.push({ n, priority, made: n });
  }
  clock.step(10_000);
  await book.close();
  const expected = made.toSorted((a, b) => b.priority - a.priority || a.made - b.made).map(({ n }) => n);
  const { book: opened } = await openTest(t, backend, { url, use: [work] });
  return { book: opened, url, order, expected, use: [work] };
}

function numbers(count: number): Named[] {
  return Array.from({ length: count }, (_, n) => ({ n }));
}

/** Time passes for the handler that waits, while everything else has its turn too. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  let done = false;
  clock.after(ms, () => (done = true));
  while (!done) await clock.advance(ms);
}
