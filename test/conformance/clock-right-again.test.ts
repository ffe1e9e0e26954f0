// After a clock that was wrong is right again: no slot of a schedule is lost, what was to wait waits, and what is old leaves.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, type Book, type ManualClock, type ScheduleOptions, type Worker } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { backends, bookUrl, openTest, type Backend } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
const noon = Date.parse("2026-03-02T12:00:00Z");
const noop = job("noop", { run: () => undefined });

type World = { readonly book: Book; readonly clock: ManualClock; readonly worker?: Worker };

/** Lets time pass no faster than the server can write beats and decide slots. */
async function pass({ book, clock, worker }: World, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5 * second) {
    await clock.advance(Math.min(5 * second, ms - passed));
    await tick(book);
    await worker?.idle();
  }
}

async function tick(book: Book): Promise<void> {
  await book.write(() => undefined);
  await roomsOf(book).ticker?.tick();
}

/** The slots that were fired, in units since noon, in order. */
async function fired(book: Book, name: string, unit: number): Promise<number[]> {
  const { items } = await book.schedules.decisions(name, { limit: 500 });
  const slots = items.flatMap(({ at, jobId }) => (jobId === null ? [] : [(at - noon) / unit]));
  return slots.toSorted((a, b) => a - b);
}

/** A book that a program with a clock that was a day ahead has had open, and another one opens later, with the right time. */
async function openLater(t: TestContext, backend: Backend, later: number, schedule: ScheduleOptions): Promise<World> {
  const url = await bookUrl(t, backend);
  const wrong = manualClock({ at: noon + 10 * second });
  const { book: first } = await openTest(t, backend, { url, use: [noop], clock: wrong });
  await first.schedules.create("it", { ...schedule, job: noop, params: {}, overlap: "allow" } as never);
  wrong.step(day);
  await first.startWorker();
  await tick(first);
  await first.close();
  const clock = manualClock({ at: noon + later });
  const { book } = await openTest(t, backend, { url, use: [noop], clock });
  await book.startWorker();
  await pass({ book, clock }, 20 * second);
  return { book, clock };
}

for (const backend of backends) {
  describe(backend, () => {
    test("slots that were due before anybody saw that the clock had run ahead are made up for", async (t) => {
      const { book } = await openLater(t, backend, 5.5 * minute, {
        every: "1m",
        missed: "all",
        maxLateness: "10m",
      } as never);

      const slots = await fired(book, "it", minute);
      assert.deepEqual(slots.slice(0, 5), [1, 2, 3, 4, 5]);
      assert.ok((slots[5] ?? 0) > 60, "what the wrong clock had fired stays");
      assert.deepEqual(await book.doctor(), []);
    });

    test("a daily slot that a clock which ran ahead left out is fired late, as if nobody had worked", async (t) => {
      const { book } = await openLater(t, backend, 20 * hour, { cron: "0 7 * * *", maxLateness: "2h" } as never);
      const { items } = await book.schedules.decisions("it");

      assert.deepEqual(
        items.map(({ at, kind }) => [(at - noon) / hour, kind]),
        [[19, "late"]],
      );
    });

    test("no slot is lost in the minute in which a clock that was set back is not yet believed", async (t) => {
      const clock = manualClock({ at: noon + day + 10 * second });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      await book.startWorker();
      await book.schedules.create("minutes", { every: "1m", job: noop, params: {}, overlap: "allow" });
      await pass({ book, clock }, 3 * minute);
      const ahead = await fired(book, "minutes", minute);

      clock.step(-day - 3 * minute);
      await book.write(() => undefined);
      await pass({ book, clock }, 65 * second);
      await until("the cursor has stepped back", async () =>
        ((await book.schedules.get("minutes")).nextAt ?? Infinity) < noon + day ? true : undefined,
      );
      await tick(book);
      await pass({ book, clock }, 3 * minute);

      assert.deepEqual(
        ahead.map((slot) => slot - day / minute),
        [1, 2, 3],
      );
      assert.deepEqual(await fired(book, "minutes", minute), [1, 2, 3, 4, ...ahead]);
    });

    test("a clock that is ahead for a moment by less than clocks may differ loses no slot", async (t) => {
      const clock = manualClock({ at: noon + 5 * second });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      const worker = await book.startWorker();
      await book.schedules.create("often", { every: "10s", job: noop, params: {} });
      await pass({ book, clock }, second);

      clock.step(50 * second);
      await tick(book);
      const ahead = await fired(book, "often", second);
      clock.step(-50 * second);
      await book.write(() => undefined);
      await until("the cursor has stepped back", async () =>
        ((await book.schedules.get("often")).nextAt ?? Infinity) < noon + 50 * second ? true : undefined,
      );
      await pass({ book, clock, worker }, minute);

      assert.ok(ahead.length < 5, "it has fired them all");
      assert.deepEqual(await fired(book, "often", second), [10, 20, 30, 40, 50, 60]);
    });

    test("what was passed by on purpose while the clock ran ahead is not made up for", async (t) => {
      const clock = manualClock({ at: noon + 10 * second });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      const worker = await book.startWorker();
      await book.schedules.create("minutes", { every: "1m", job: noop, params: {}, missed: "all" });
      await book.schedules.pause("minutes");
      await pass({ book, clock, worker }, 3 * minute);

      clock.step(day);
      await book.schedules.resume("minutes");
      clock.step(-day);
      await pass({ book, clock, worker }, 2 * minute);

      assert.deepEqual(await fired(book, "minutes", minute), [4, 5]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a call that was rescheduled while the clock ran ahead is due when its job is", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { clock });
      await clock.advance("10s");
      const { id } = await book.calls.submit({ url: "https://example.org/", in: "1h" });

      clock.step(day);
      await book.calls.reschedule(id, { in: "10m" });
      clock.step(-day);
      const right = clock.now() + 10 * minute;
      await book.write(() => undefined);

      const due = await until("it is mended", async () => {
        const { dueAt } = await book.calls.get(id);
        return dueAt < noon + day ? dueAt : undefined;
      });
      const job = (await book.jobs.list({ kind: "call" })).items[0];
      assert.deepEqual([due, job?.availableAt], [right, right]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("what runs since a clock was behind is not taken for timed out when it is right", async (t) => {
      const clock = manualClock({ at: noon });
      const done = Promise.withResolvers<void>();
      const slow = job("slow", { timeout: "1m", run: () => done.promise });
      const { book } = await openTest(t, backend, { use: [slow], clock });
      const worker = await book.startWorker();
      await pass({ book, clock }, 10 * second);

      clock.step(-hour);
      await pass({ book, clock }, 10 * second);
      const { id } = await book.jobs.enqueue(slow, {});
      await until("it runs", async () => ((await book.jobs.get(id)).status === "running" ? true : undefined));
      clock.step(hour);
      await pass({ book, clock }, 40 * second);
      await book.jobs.recover();
      done.resolve();
      await worker.idle();

      assert.equal((await book.jobs.get(id)).status, "completed");
    });

    test("what a clock counted that was behind by seconds, for minutes, is put right once", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      await pass({ book, clock }, 10 * minute);

      clock.step(-10 * second);
      await pass({ book, clock }, minute);
      const { id } = await book.jobs.enqueue(noop, {}, { in: "1h" });
      const { id: held } = await book.reservations.reserve("desk", { expires: "1h" });
      await book.schedules.create("later", { in: "1h", job: noop, params: {} });
      const due = clock.now() + 10 * second + hour;
      await pass({ book, clock }, minute);
      clock.step(10 * second);
      await pass({ book, clock }, minute);

      const expires = (await book.reservations.list()).find((one) => one.id === held)?.expiresAt;
      const fires = (await book.schedules.get("later")).nextAt;
      assert.deepEqual([(await book.jobs.get(id)).availableAt, expires, fires], [due, due, due]);
    });

    test("what is made once the clock is right keeps its time, although a read that began before goes on", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      await pass({ book, clock }, 10 * minute);
      clock.step(-10 * second);
      await pass({ book, clock }, minute);

      const ends = Promise.withResolvers<void>();
      const reading = roomsOf(book).store.readsLong(() => ends.promise);
      clock.step(10 * second);
      await pass({ book, clock }, 30 * second);
      const { id } = await book.jobs.enqueue(noop, {}, { in: "1h" });
      const due = clock.now() + hour;
      await pass({ book, clock }, 30 * second);
      ends.resolve();
      await reading;
      await pass({ book, clock }, minute);

      assert.equal((await book.jobs.get(id)).availableAt, due);
    });

    test("a clock that is behind for minutes does not make run early what was there before", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      const worker = await book.startWorker();
      await pass({ book, clock }, 10 * minute);
      const { id } = await book.jobs.enqueue(noop, {}, { in: "1h" });
      const due = clock.now() + hour;

      clock.step(-day);
      await pass({ book, clock }, 5 * minute);
      clock.step(day);
      await pass({ book, clock }, 5 * minute);
      await worker.idle();

      const { status, availableAt } = await book.jobs.get(id);
      assert.deepEqual([status, availableAt], ["waiting", due]);
    });

    test("a clock that is set back while the book cannot be read ends nothing", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      const { store } = roomsOf(book);
      await pass({ book, clock }, 10 * second);
      const { read } = store;
      const asked = Promise.withResolvers<void>();

      store.read = () => {
        asked.resolve();
        return Promise.reject(new Error("the server is away"));
      };
      clock.step(-hour);
      await book.write(() => undefined);
      await asked.promise;
      store.read = read;
      await pass({ book, clock }, 10 * second);
      clock.step(hour);
      await pass({ book, clock }, 10 * second);

      assert.equal((await book.jobs.enqueue(noop, {})).status, "queued");
    });

    test("a machine that sleeps every half an hour removes what is old, and one whose clock was set removes nothing else", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { use: [noop], clock });
      const old = await book.jobs.enqueue(noop, {});
      const worker = await book.startWorker();
      await worker.idle();
      for (let slept = 0; slept < 4; slept++) {
        await pass({ book, clock }, 10 * second);
        clock.suspend("8d");
      }
      const young = await book.jobs.enqueue(noop, {});
      await worker.idle();
      clock.step(365 * day);

      const dry = await book.retain({ jobs: "30d" });
      const { jobs } = await book.retain({ jobs: "30d", apply: true });

      assert.deepEqual([dry.jobs, jobs], [1, 1]);
      await assert.rejects(book.jobs.get(old.id), { code: "not_found" });
      assert.equal((await book.jobs.get(young.id)).status, "completed");
    });
  });
}
