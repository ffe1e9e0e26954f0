// A worker that has run hundreds of quick jobs behaves as on its first day: it takes from the line only what starts now.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, type Book, type Job, type JobRecord, type ManualClock } from "../../src/index.ts";
import type { Worker, WorkerOptions } from "../../src/jobs/worker/start-worker.ts";
import { heldJob, type HeldJob } from "../jobs/handlers.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const quick = job("quick", { run: () => undefined });
const long = (): HeldJob => heldJob("long");

for (const backend of backends) {
  describe(backend, () => {
    test("an urgent job that is enqueued behind a long one runs next", async (t) => {
      const { book, worker, held, order, note } = await openWarm(t, backend, { concurrency: 1 });
      const { succeed } = await beginLong(book, held);
      await book.jobs.enqueueMany(note, ["low0", "low1", "low2", "low3"].map(named));
      await letItLook(book);

      await book.jobs.enqueue(note, named("urgent"), { priority: 10 });
      succeed();
      await worker.idle();

      assert.deepEqual(order, ["urgent", "low0", "low1", "low2", "low3"]);
    });

    test("a job that was moved to the front of its line while a long one ran runs next", async (t) => {
      const { book, worker, held, order, note } = await openWarm(t, backend, { concurrency: 1 });
      const { succeed } = await beginLong(book, held);
      const made = await book.jobs.enqueueMany(note, ["0", "1", "2", "3"].map(named));
      await letItLook(book);

      await book.jobs.move(made[3]?.id ?? "", "first");
      await book.jobs.cancel(made[1]?.id ?? "");
      succeed();
      await worker.idle();

      assert.deepEqual(order, ["3", "0", "2"]);
    });

    test("runNow comes before everything that stands in line", async (t) => {
      const { book, worker, held, order, note } = await openWarm(t, backend, { concurrency: 1 });
      const { succeed } = await beginLong(book, held);
      await book.jobs.enqueueMany(note, ["0", "1", "2"].map(named));
      await letItLook(book);

      const now = book.jobs.runNow(note, named("now"));
      await until(async () => (await book.reservations.list()).length === 1);
      succeed();
      await now;
      await worker.idle();

      assert.deepEqual(order, ["now", "0", "1", "2"]);
    });

    for (const what of ["queue", "name"] as const) {
      test(`after a pause of the ${what} nothing more of it starts`, async (t) => {
        const { book, worker, held, order, note } = await openWarm(t, backend, { concurrency: 1 });
        const { succeed } = await beginLong(book, held, { queue: "other" });
        await book.jobs.enqueueMany(
          note,
          Array.from({ length: 10 }, (_, n) => named(String(n))),
        );
        await letItLook(book);

        await (what === "queue" ? book.queues.pause("default") : book.jobs.pause("note"));
        succeed();
        await worker.idle();
        const paused = [...order];
        await (what === "queue" ? book.queues.resume("default") : book.jobs.resume("note"));
        await worker.idle();

        assert.deepEqual([paused, order.length], [[], 10]);
      });
    }

    for (const what of ["queue", "name"] as const) {
      test(`a rate of 2 per second of a ${what} starts 2 in a second, also after the worker was busy for long`, async (t) => {
        const clock = manualClock();
        let starts = 0;
        const rate = { max: 2, per: "1s" } as const;
        const rated = job("rated", { ...(what === "name" ? { rate } : {}), run: () => void starts++ });
        const { book, worker, held } = await openWarm(t, backend, { concurrency: 1 }, { use: [rated], clock });
        if (what === "queue") await book.queues.limit("narrow", { rate });
        const { succeed } = await beginLong(book, held);
        await book.jobs.enqueueMany(
          rated,
          Array.from({ length: 10 }, () => ({})),
          { queue: "narrow" },
        );

        const seen: number[] = [];
        for (let second = 0; second < 8; second++) {
          if (second === 5) succeed();
          if (second < 5) await letItLook(book);
          else await worker.idle();
          seen.push(starts);
          await clock.advance(1000);
        }

        assert.deepEqual(seen, [0, 0, 0, 0, 0, 2, 4, 6]);
      });
    }

    test("a second worker that is idle takes what a busy one has no place for", async (t) => {
      const { book, held, order, note, url, use } = await openWarm(t, backend, { concurrency: 1 });
      const { succeed } = await beginLong(book, held);
      await book.jobs.enqueueMany(
        note,
        Array.from({ length: 10 }, (_, n) => named(String(n))),
      );
      await letItLook(book);

      const { book: beside } = await openTest(t, backend, { url, use });
      await (await beside.startWorker({ concurrency: 1 })).idle();

      assert.deepEqual(order, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
      succeed();
    });

    test("a parent that waits for its child's result does not keep another worker from running the child", async (t) => {
      const waits = Promise.withResolvers<void>();
      const parent: Job = job("parent", {
        async run(_params, { book: inside }) {
          const child = await inside.jobs.enqueue("note", named("child"));
          waits.resolve();
          await child.result();
        },
      });
      const { book, worker, order, url, use } = await openWarm(t, backend, { concurrency: 1 }, { use: [parent] });
      const { id } = await book.jobs.enqueue(parent, {});
      await waits.promise;
      await letItLook(book);

      const { book: beside } = await openTest(t, backend, { url, use });
      await beside.startWorker({ concurrency: 1 });
      await worker.idle();

      assert.deepEqual([order, (await book.jobs.get(id)).status], [["child"], "completed"]);
    });

    test("what does not run stands in line: queued, in its place, and nobody's", async (t) => {
      const { book, held, note } = await openWarm(t, backend, { concurrency: 1 });
      const { succeed } = await beginLong(book, held);
      const made = await book.jobs.enqueueMany(note, ["0", "1", "2"].map(named));
      const before = await records(book, made);

      await letItLook(book);

      const after = await records(book, made);

      assert.deepEqual(after, before);
      assert.deepEqual(
        after.map(({ status, sessionId, startedAt }) => [status, sessionId, startedAt]),
        made.map(() => ["queued", null, null]),
      );
      const places = await Promise.all(made.map(async ({ id }) => (await book.jobs.place(id))?.place));
      assert.deepEqual(places, [1, 2, 3]);
      succeed();
    });

    test("a run that does nothing is recorded as nothing, however long the one before it took", async (t) => {
      const clock = manualClock();
      const { book, worker, held, note } = await openWarm(t, backend, { concurrency: 1 }, { clock });
      const { succeed } = await beginLong(book, held);
      const made = await book.jobs.enqueueMany(note, ["0", "1", "2"].map(named));
      await letItLook(book);

      await clock.advance(12_000);
      const endedAt = clock.now();
      succeed();
      await worker.idle();

      const times = (await records(book, made)).map(({ run }) => [run?.startedAt, run?.endedAt, run?.durationMs]);
      assert.deepEqual(
        times,
        made.map(() => [endedAt, endedAt, 0]),
      );
    });
  });
}

const named = (name: string): { name: string } => ({ name });

type Warm = {
  readonly book: Book;
  readonly url: string;
  readonly use: readonly Job[];
  readonly worker: Worker;
  readonly held: HeldJob;
  /** Writes down the name that it is given. */
  readonly note: Job<{ name: string }>;
  readonly order: string[];
};

/** A book whose only worker has run 200 quick jobs. */
async function openWarm(
  t: TestContext,
  backend: Backend,
  options: WorkerOptions,
  { use: more = [], clock }: { use?: readonly Job[]; clock?: ManualClock } = {},
): Promise<Warm> {
  const order: string[] = [];
  const note = job("note", { run: ({ name }: { name: string }) => void order.push(name) });
  const held = long();
  const use = [quick, note as Job, held.job, ...more];
  const { book, url } = await openTest(t, backend, {
    use,
    durability: "normal",
    ...(clock === undefined ? {} : { clock }),
  });
  const worker = await book.startWorker({ grace: 0, ...options });
  await book.jobs.enqueueMany(
    quick,
    Array.from({ length: 200 }, () => ({})),
  );
  await worker.idle();
  return { book, url, use, worker, held, note, order };
}

/** Gives a worker that would claim ahead the time for it: it was woken, and others commit meanwhile. */
async function letItLook(book: Book): Promise<void> {
  for (let commit = 0; commit < 10; commit++) await tamper(book, (tx) => tx.sql`update daybook_lane set queue = queue`);
}

async function beginLong(book: Book, held: HeldJob, options: { queue?: string } = {}) {
  await book.jobs.enqueue(held.job, {}, options);
  return held.whenBegun(1);
}

function records(book: Book, made: readonly { readonly id: string }[]): Promise<JobRecord[]> {
  return Promise.all(made.map(({ id }) => book.jobs.get(id)));
}

async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setImmediate(resolve));
}
