// After close(): who may still use the book, and what becomes of a handler that ignores its signal.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { app, entity, event, job, manualClock, type Book } from "../../src/index.ts";
import { z } from "zod";
import { heldJob } from "../jobs/handlers.ts";
import { backends, openTest } from "../support/open-test.ts";
import { until, whileTimePasses } from "../support/session-row.ts";

const Note = entity("note", { schema: z.object({ id: z.string() }), key: "id" });
const closedVerb = {
  code: "closed",
  message: /^book\.[a-zA-Z.]+ was called after book\.close\(\): open the book again$/,
};

/** One verb of each room, a write and a read where it has both. */
const verbs: readonly ((book: Book) => unknown)[] = [
  (book) => book.write(() => undefined),
  (book) => book.read(async () => undefined),
  (book) => book.jobs.enqueue("deaf", {}),
  (book) => book.jobs.list(),
  (book) => book.jobs.runNow("deaf", {}),
  (book) => book.groups.list(),
  (book) => book.reservations.reserve("default"),
  (book) => book.schedules.create("s", { every: "1m", job: "deaf", params: {} }),
  (book) => book.calls.submit({ url: "https://example.org/" }),
  (book) => book.events.publish("said", {}),
  (book) => book.listeners.list(),
  (book) => book.sinks.list(),
  (book) => book.deadLetters.list(),
  (book) => book.apps.list(),
  (book) => book.queues.list(),
  (book) => book.templates.list(),
  (book) => book.runs.list(),
  (book) => book.retain({ apply: true }),
  (book) => book.sessions.list(),
  (book) => book.records.put(Note, { id: "n" }),
  (book) => book.records.find(Note, "n"),
  (book) => book.records.transact(() => undefined),
  (book) => book.info(),
  (book) => book.metrics(),
  (book) => book.startWorker(),
];

for (const backend of backends) {
  describe(backend, () => {
    test("from the call of close() on every verb is refused, also while a handler ignores its signal", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf");
      const { book, url } = await openTest(t, backend, { use: [deaf.job, Note], clock });
      const { book: other } = await openTest(t, backend, { url, worker: false });
      const acme = book.tenant("acme");
      await book.jobs.enqueue(deaf.job, {});
      await book.startWorker({ grace: "2s" });
      const { succeed, context } = await deaf.whenBegun(1);

      const closing = book.close();
      for (const verb of verbs) await assert.rejects(async () => verb(book), closedVerb, String(verb));
      await whileTimePasses(clock, closing, 100);
      for (const verb of verbs) await assert.rejects(async () => verb(acme), closedVerb, String(verb));
      assert.throws(() => book.events.emit("said", {}), closedVerb);
      await assert.rejects(context.book.jobs.list(), closedVerb, "the deaf handler's own book");
      await book.close();

      assert.equal((await other.jobs.list()).items.length, 1, "nothing was enqueued");
      succeed();
      await whileTimePasses(clock, untilStatus(other, "completed"));
    });

    test("a handler that uses its grace may use the book, and its finish is kept", async (t) => {
      const said = event("said", { schema: z.object({ by: z.string() }) });
      const begun = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const outer: { book?: Book } = {};
      const careful = job("careful", {
        async run(_params, { book: own, finish }) {
          begun.resolve();
          await goOn.promise;
          await own.events.publish(said, { by: "own" });
          await outer.book?.events.publish(said, { by: "outer" });
          await finish((tx) => tx.events.publish(said, { by: "finish" }));
        },
      });
      const { book, url } = await openTest(t, backend, { use: [careful, said] });
      const { book: other } = await openTest(t, backend, { url, worker: false });
      outer.book = book;
      const { id } = await book.jobs.enqueue(careful, {});
      await book.startWorker();
      await begun.promise;

      const closing = book.close();
      goOn.resolve();
      await closing;

      assert.equal((await other.jobs.get(id)).status, "completed");
      assert.equal((await other.events.list({ topic: "said" })).items.length, 3);
    });

    test("an app that is told to stop may still write to its book", async (t) => {
      const home = app("home", {
        setup({ book, onStop }) {
          onStop(async () => void (await book.events.publish("home.stopped", {})));
        },
      });
      const { book, url } = await openTest(t, backend, { use: [home] });
      const { book: other } = await openTest(t, backend, { url, worker: false });

      await book.close();

      assert.equal((await other.events.list({ topic: "home.stopped" })).items.length, 1);
    });

    test("a cancel that is asked after the shutdown ends the run of a deaf handler", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf");
      const { book, url } = await openTest(t, backend, { use: [deaf.job], clock });
      const { book: other } = await openTest(t, backend, { url, worker: false });
      const { id } = await book.jobs.enqueue(deaf.job, {});
      await book.startWorker({ grace: 0 });
      await deaf.whenBegun(1);
      await whileTimePasses(clock, book.close(), 100);

      await other.jobs.cancel(id);
      await whileTimePasses(clock, untilStatus(other, "cancelled"), 100);

      const chain = await other.jobs.chain(id);
      assert.deepEqual(
        chain.map(({ status, run }) => [status, run?.error?.type]),
        [["cancelled", "CancelledError"]],
      );
    });

    test("the timeout of a deaf handler ends its run after the shutdown, too", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf", { timeout: "1m", attempts: 1 });
      const { book, url } = await openTest(t, backend, { use: [deaf.job], clock });
      const { book: other } = await openTest(t, backend, { url, worker: false });
      await book.jobs.enqueue(deaf.job, {});
      await book.startWorker({ grace: 0 });
      await deaf.whenBegun(1);
      await whileTimePasses(clock, book.close(), 100);

      await clock.advance("50s");
      const before = (await other.jobs.list()).items[0]?.status;
      await whileTimePasses(clock, untilStatus(other, "failed"), 100);

      assert.equal(before, "running");
    });

    test("direct work that ignores its signal holds its queue until it ends, however long that takes", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf");
      const { book, url } = await openTest(t, backend, { use: [deaf.job], clock });
      const { book: other } = await openTest(t, backend, { url, worker: false });
      const result = book.jobs.runNow(deaf.job, {}, { queue: "narrow" });
      const refused = assert.rejects(result, { code: "closed" });
      const { succeed } = await deaf.whenBegun(1);
      await whileTimePasses(clock, book.close(), 1000);
      await refused;
      const active = async (): Promise<number> => (await other.reservations.list()).length;

      for (let renewed = 0; renewed < 6; renewed++) {
        const [before, since] = [(await other.reservations.list())[0]?.expiresAt ?? 0, clock.now()];
        await until("it is renewed", async () => {
          // It is renewed by the clock, and it lasts ten minutes.
          if (clock.now() - since < 300_000) await clock.advance("1m");
          return ((await other.reservations.list())[0]?.expiresAt ?? 0) > before + 120_000 ? true : undefined;
        });
      }

      assert.equal(await active(), 1);
      succeed();
      await whileTimePasses(
        clock,
        until("it is let go", async () => ((await active()) === 0 ? true : undefined)),
      );
    });
  });
}

function untilStatus(book: Book, status: string): Promise<unknown> {
  return until(`a job is ${status}`, async () => (await book.jobs.list({ status: status as never })).items[0]);
}
