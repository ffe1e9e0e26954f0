// The same command for many jobs, chosen by a filter.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, type Book, type JobFilter } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const work = job("work", {
  attempts: 1,
  run({ fails }: { fails?: boolean }) {
    if (fails === true) throw new Error("no");
  },
});
const use = [work, job("other", { run: () => undefined })];

async function statuses(book: Book, filter: JobFilter = {}): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const { status } of (await book.jobs.list({ ...filter, limit: 500 })).items) {
    found[status] = (found[status] ?? 0) + 1;
  }
  return found;
}

async function workOff(book: Book): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
}

for (const backend of backends) {
  describe(`bulk commands on ${backend}`, { concurrency: true }, () => {
    test("open jobs that a filter fits are cancelled, of this tenant, and no others", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const params = Array.from({ length: 250 }, () => ({}));
      await book.jobs.enqueueMany(work, params, { queue: "mail" });
      await book.jobs.enqueueMany(work, params.slice(0, 7), { queue: "mail", in: "1d" });
      await book.jobs.enqueue("other", {}, { queue: "mail" });
      await book.jobs.enqueue(work, {}, { queue: "sms" });
      await book.tenant("b").jobs.enqueue(work, {}, { queue: "mail" });
      const which = { queue: "mail", name: "work" };
      const told: [number, number][] = [];

      const dry = await book.jobs.cancelAll(which, { dryRun: true });
      const untouched = await statuses(book);
      const done = await book.jobs.cancelAll(which, { progress: (...of) => void told.push(of) });
      const again = await book.jobs.cancelAll(which);

      assert.deepEqual(dry, { dryRun: true, count: 257, passed: 0, stopped: false });
      assert.deepEqual(untouched, { queued: 252, waiting: 7 });
      assert.deepEqual(done, { dryRun: false, count: 257, passed: 0, stopped: false });
      assert.deepEqual(told, [
        [100, 257],
        [200, 257],
        [257, 257],
      ]);
      assert.equal(again.count, 0);
      assert.deepEqual(await statuses(book), { cancelled: 257, queued: 2 });
      assert.deepEqual(await statuses(book.tenant("b")), { queued: 1 });
    });

    test("it ends after the slice at which it was stopped, and what was done stays", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.jobs.enqueueMany(
        work,
        Array.from({ length: 250 }, () => ({})),
      );
      const stop = new AbortController();

      const done = await book.jobs.cancelAll({}, { signal: stop.signal, progress: () => stop.abort() });

      assert.deepEqual(done, { dryRun: false, count: 100, passed: 0, stopped: true });
      assert.deepEqual(await statuses(book), { cancelled: 100, queued: 150 });
      const none = await book.jobs.cancelAll({}, { signal: AbortSignal.abort() });
      assert.deepEqual(none, { dryRun: false, count: 0, passed: 0, stopped: true });
    });

    test("what failed is tried again once, also when two ask at the same time", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.jobs.enqueueMany(
        work,
        Array.from({ length: 30 }, (_, n) => ({ fails: n % 2 === 0 })),
      );
      await workOff(book);
      assert.deepEqual(await statuses(book), { completed: 15, failed: 15 });

      const dry = await book.jobs.retryAll({ name: "work" }, { dryRun: true });
      const done = await Promise.all([book.jobs.retryAll({ name: "work" }), book.jobs.retryAll({ name: "work" })]);
      const later = await book.jobs.retryAll({ name: "work" });

      assert.equal(dry.count, 15);
      assert.equal(
        done.reduce((all, { count }) => all + count, 0),
        15,
      );
      assert.equal(later.count, 0);
      assert.deepEqual(await statuses(book), { completed: 15, failed: 15, queued: 15 });
      await book.jobs.cancelAll({});
      assert.equal((await book.jobs.retryAll({ status: "cancelled" }, { dryRun: true })).count, 15);
    });

    test("a filter that is none, or asks for what cannot be done, is refused", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.jobs.enqueue(work, {});
      const wrong: unknown[] = [
        null,
        [],
        7,
        Promise.resolve({ queue: "a" }),
        new Map(),
        { queues: "a" },
        { queue: null },
      ];
      const fields = [{ limit: 1 }, { after: "1" }, { retried: true }, { status: "completed" }, { status: [] }];

      for (const filter of [...wrong, ...fields] as JobFilter[]) {
        await assert.rejects(async () => book.jobs.cancelAll(filter), { code: "invalid" }, JSON.stringify(filter));
        await assert.rejects(async () => book.jobs.retryAll(filter), { code: "invalid" }, JSON.stringify(filter));
      }
      for (const options of [{ dryrun: true }, { dryRun: 1 }, null, Promise.resolve({ dryRun: true })]) {
        await assert.rejects(async () => book.jobs.cancelAll({}, options as never), { code: "invalid" });
      }
      await assert.rejects(book.jobs.retryAll({ status: "queued" }), { code: "invalid", message: /failed, cancelled/ });
      assert.deepEqual(await statuses(book), { queued: 1 });
    });
  });
}
