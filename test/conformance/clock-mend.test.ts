// What a clock that was wrong has left in a book that nobody had open when it was right again: doctor finds it, mend puts it right.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, listener, manualClock, type Book, type ManualClock } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { backends, bookUrl, openTest, type Backend } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

const [second, minute, day] = [1000, 60_000, 86_400_000];
const start = "2026-03-02T12:00:10Z";
const noop = job("noop", { run: () => undefined });
const rated = job("rated", { rate: { max: 1, per: "1m" }, run: () => undefined });
const fails = job("fails", {
  backoff: ["10m"],
  run: () => {
    throw new Error("no");
  },
});
const heard = listener("heard", { on: "said", run: () => undefined });
const use = [noop, rated, fails, heard];

type World = { readonly book: Book; readonly clock: ManualClock; readonly url: string };

/** A book whose program ran with a clock that was ahead, and a second program, whose clock is right. */
async function afterProgram(
  t: TestContext,
  backend: Backend,
  { ahead, before, wrongly }: { ahead: number; before?: (book: Book) => unknown; wrongly: (of: World) => unknown },
): Promise<World> {
  const url = await bookUrl(t, backend);
  const wrong = manualClock({ at: start });
  const { book: first } = await openTest(t, backend, { url, use, clock: wrong });
  await before?.(first);
  wrong.step(ahead);
  await wrongly({ book: first, clock: wrong, url });
  await first.close();
  const clock = manualClock({ at: start });
  const { book } = await openTest(t, backend, { url, use, clock });
  return { book, clock, url };
}

const names = async (book: Book): Promise<string[]> => (await book.doctor()).map(({ name }) => name);
const statusOf = async (book: Book, id: string): Promise<string> => (await book.jobs.get(id)).status;

/** Lets time pass no faster than the server can write beats. */
async function pass({ book, clock }: Pick<World, "book" | "clock">, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5 * second) {
    await clock.advance(5 * second);
    await book.write(() => undefined);
  }
}

for (const backend of backends) {
  describe(backend, () => {
    test("a job that was replaced to run at once stays in line, however far ahead the clock was", async (t) => {
      let id = "";
      const { book } = await afterProgram(t, backend, {
        ahead: 365 * day,
        before: async (first) => void (id = (await first.jobs.enqueue(noop, {}, { in: "1h", key: "k" })).id),
        wrongly: ({ book: first }) => first.jobs.enqueue(noop, {}, { key: "k", onConflict: "replace" }),
      });

      await book.mend();

      assert.equal(await statusOf(book, id), "queued");
    });

    test("doctor finds due times that no rule explains, mend says them, mends them, and then all is well", async (t) => {
      const ids: Record<string, string> = {};
      const { book, clock } = await afterProgram(t, backend, {
        ahead: 365 * day,
        async wrongly({ book: first }) {
          ids["in"] = (await first.jobs.enqueue(noop, {}, { in: "10m", key: "k", keyScope: { window: "1h" } })).id;
          ids["at"] = (await first.jobs.enqueue(noop, {}, { at: Date.parse(start) + 366 * day })).id;
          ids["call"] = (await first.calls.submit({ url: "https://example.org/", in: "10m" })).id;
          await first.events.publish("said", {}, { in: "10m", dedupeKey: "d", dedupeWindow: "1h" });
          await first.schedules.create("once", { in: "10m", job: noop, params: {} });
          await first.schedules.create("cron", { cron: "0 * * * *", job: noop, params: {} });
          await first.jobs.enqueueMany(rated, [{}, {}]);
          await first.jobs.enqueue(fails, {});
          const worker = await first.startWorker();
          await worker.idle();
          await worker.stop();
        },
      });
      const now = clock.now();
      const found = await names(book);

      const dry = await book.mend({ dryRun: true });
      assert.deepEqual(await names(book), found);
      const done = await book.mend();

      assert.deepEqual(found, [
        "no job waits longer than its own delay or backoff",
        "no key is held for longer than its window",
        "no open job, and none that holds a key, was made in the future",
        "no rate counts in a window that is still to come",
        "no schedule has decided slots that are still to come",
        'no schedule with "in" is counted from a time that is still to come',
        "no event was published in the future",
        "no call that has not begun was submitted in the future",
      ]);
      assert.deepEqual([dry.dryRun, dry.mended.map(({ name }) => name)], [true, found]);
      assert.ok(done.mended.length > 0 && !done.dryRun);
      assert.deepEqual(await book.doctor(), []);
      assert.deepEqual((await book.mend()).mended, []);
      const due = async (id = ""): Promise<number> => (await book.jobs.get(id)).availableAt - now;
      assert.deepEqual([await due(ids["in"]), await due(ids["at"])], [10 * minute, 366 * day]);
      assert.equal((await book.calls.get(ids["call"] ?? "")).dueAt, now + 10 * minute);
      assert.equal((await book.schedules.get("once")).nextAt, now + 10 * minute);
      assert.equal((await book.schedules.get("cron")).nextAt, Date.parse("2026-03-02T13:00:00Z"));
      await clock.advance("1h");
      const again = await book.jobs.enqueue(noop, {}, { key: "k", keyScope: { window: "1h" } });
      assert.equal(again.created, true);
      assert.equal((await book.events.publish("said", {}, { dedupeKey: "d", dedupeWindow: "1h" })).created, true);
    });

    test("a job that was let into line before its time goes back to wait for it", async (t) => {
      const ids: string[] = [];
      const { book, clock } = await afterProgram(t, backend, {
        ahead: day,
        async before(first) {
          const later = { in: "10m", queue: "other" } as const;
          for (let n = 0; n < 3; n++) ids.push((await first.jobs.enqueue(noop, {}, later)).id);
        },
        async wrongly({ book: first }) {
          // It serves another queue, so it lets them in and runs none of them.
          const worker = await first.startWorker({ queues: ["default"] });
          await worker.idle();
          await worker.stop();
          assert.equal(await statusOf(first, ids[0] ?? ""), "queued");
        },
      });
      assert.deepEqual(await names(book), ["no job stands in line before its time"]);

      assert.deepEqual((await book.mend()).mended, [{ name: "no job stands in line before its time", count: 3 }]);

      const worker = await book.startWorker();
      await worker.idle();
      assert.equal(await statusOf(book, ids[0] ?? ""), "waiting");
      await pass({ book, clock }, 11 * minute);
      await worker.idle();
      for (const id of ids) assert.equal(await statusOf(book, id), "completed");
    });

    test("a reservation that was made by a clock ahead ends when it should", async (t) => {
      const clock = manualClock({ at: start });
      const { book } = await openTest(t, backend, { use, clock });
      clock.step(day);
      await book.reservations.reserve("default", { expires: "10m" });
      clock.step(-day);
      const { id } = await book.jobs.enqueue(noop, {});

      const [held] = await until("it is mended", async () => {
        const list = await book.reservations.list();
        return (list[0]?.expiresAt ?? 0) < clock.now() + day ? list : undefined;
      });
      const worker = await book.startWorker();
      await pass({ book, clock }, 9 * minute);
      const before = await statusOf(book, id);
      await pass({ book, clock }, 2 * minute);
      await worker.idle();

      assert.ok(Math.abs((held?.expiresAt ?? 0) - Date.parse(start) - 10 * minute) <= second);
      assert.deepEqual([before, await statusOf(book, id)], ["queued", "completed"]);
    });

    test("what a clock that ran ahead has fired is not fired again, and what it left out is decided at its time", async (t) => {
      const clock = manualClock({ at: start });
      const { book } = await openTest(t, backend, { use, clock });
      await book.schedules.create("minutes", { every: "1m", job: noop, params: {}, overlap: "allow" });
      await book.startWorker();
      await pass({ book, clock }, 10 * second);
      const fired = async (): Promise<number[]> =>
        (await book.schedules.decisions("minutes")).items.flatMap(({ at, jobId }) =>
          jobId === null ? [] : [(at - Date.parse("2026-03-02T12:00:00Z")) / minute],
        );

      clock.step(3 * minute);
      await roomsOf(book).ticker?.tick();
      const ahead = await fired();
      clock.step(-3 * minute);
      await book.write(() => undefined);
      // The book does it by itself as well; on a clock that stands still it would not look a second time.
      await until("the cursor has stepped back", async () =>
        (await book.mend()).mended.length === 0 ? true : undefined,
      );
      for (let passed = 0; passed < 5; passed++) {
        await pass({ book, clock }, minute);
        await roomsOf(book).ticker?.tick();
      }

      assert.deepEqual(ahead, [3]);
      assert.deepEqual(
        (await fired()).toSorted((a, b) => a - b),
        [1, 2, 3, 4, 5],
      );
    });

    test("what is due far ahead by its own wish is nobody's fault", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock({ at: start }) });
      await book.jobs.enqueue(noop, {}, { in: "365d" });
      await book.jobs.enqueue(noop, {}, { at: Date.parse(start) + 3650 * day });
      await book.events.publish("said", {}, { at: Date.parse(start) + 365 * day });
      await book.calls.submit({ url: "https://example.org/", in: "30d" });
      await book.schedules.create("far", { at: Date.parse(start) + 365 * day, job: noop, params: {} });
      await book.reservations.reserve("default", { expires: "1d" });

      assert.deepEqual([await book.doctor(), (await book.mend()).mended], [[], []]);
    });

    test("a clock that was set back for good is believed after a minute, and then what it wrote before is mended", async (t) => {
      const clock = manualClock({ at: start });
      const { book } = await openTest(t, backend, { use, clock });
      await clock.advance("10s");
      const { id } = await book.jobs.enqueue(noop, {}, { in: "10m" });

      clock.step(-day);
      await book.jobs.enqueue(noop, {});
      await assert.rejects(book.mend(), { code: "conflict" });
      await clock.advance("2m");

      const due = await until("it is mended", async () => {
        const { availableAt } = await book.jobs.get(id);
        return availableAt < clock.now() + day / 2 ? availableAt : undefined;
      });
      assert.ok(due <= clock.now() + 10 * minute);
    });

    test("what runs is not taken for timed out by a clock that was set", async (t) => {
      const clock = manualClock({ at: start });
      const done = Promise.withResolvers<void>();
      const slow = job("slow", { timeout: "1m", run: () => done.promise });
      const { book } = await openTest(t, backend, { use: [slow], clock });
      const { id } = await book.jobs.enqueue(slow, {});
      const worker = await book.startWorker();
      await pass({ book, clock }, 5 * second);

      clock.step(day);
      await pass({ book, clock }, 20 * second);
      clock.step(-day);
      await pass({ book, clock }, 20 * second);
      done.resolve();
      await worker.idle();

      assert.equal(await statusOf(book, id), "completed");
    });

    test("a session that began in the future has its beat and its end in the present", async (t) => {
      const clock = manualClock({ at: Date.parse(start) + 365 * day });
      const { book } = await openTest(t, backend, { clock });
      clock.step(-365 * day);
      await book.write(() => undefined);
      await clock.advance("2m");
      await until("it is mended", async () => ((await book.doctor()).length === 0 ? true : undefined));
      await clock.advance("5s");

      const { items } = await book.sessions.list();
      assert.ok((items[0]?.lastHeartbeatAt ?? Infinity) <= clock.now());
    });
  });
}
