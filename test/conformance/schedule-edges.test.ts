import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, type Book, type ManualClock, type OpenOptions } from "../../src/index.ts";
import { fires } from "../../src/schedules/fire.ts";
import { begunBy, heldJob } from "../jobs/handlers.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const hour = 3_600_000;
const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);
const work = job<{ n?: number }>("work", {
  attempts: 7,
  limit: { key: () => "all", concurrency: 1 },
  run: () => undefined,
});
const ports = { kinds: { schedule: fires } };

type Desk = { book: Book; clock: ManualClock; url: string; tick(): Promise<void> };

for (const backend of backends) {
  describe(backend, () => {
    const openAt = async (t: TestContext, start: number, options: OpenOptions = {}): Promise<Desk> => {
      const clock = manualClock({ at: start });
      const { book, url } = await openTest(t, backend, { use: [work], clock, ...options });
      const { store } = await openTestStore(t, backend, { url, clock });
      const tick = (): Promise<void> => fireAll(store, ports);
      return { book, clock, url, tick };
    };
    const ledger = async (book: Book, name: string): Promise<string[]> =>
      (await book.schedules.decisions(name, { limit: 500 })).items
        .toReversed()
        .map(({ at, kind, slots }) => `${(at - noon) / minute} ${kind}${slots > 1 ? ` × ${slots}` : ""}`);
    const statuses = async (book: Book): Promise<string[]> =>
      (await book.jobs.list()).items.toReversed().map(({ status }) => status);
    const minutes = { cron: "* * * * *", job: work, params: {}, overlap: "allow" } as const;

    test("a trigger in the very millisecond of a slot does not replace the slot", async (t) => {
      const { book, clock, tick } = await openAt(t, noon - 1000);
      await book.schedules.create("minutes", minutes);
      clock.step(1000);
      await book.schedules.trigger("minutes");
      await book.schedules.trigger("minutes");
      await tick();
      const kinds = (await book.schedules.decisions("minutes")).items.map(({ at, kind }) => [at - noon, kind]);
      assert.deepEqual(kinds, [
        [2, "manual"],
        [1, "manual"],
        [0, "fired"],
      ]);
    });

    test("triggered while it is paused, it fires once and stays paused", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("minutes", minutes);
      await book.schedules.pause("minutes", "audit");
      const jobId = String((await book.schedules.trigger("minutes")).jobId);
      clock.step(2 * minute);
      await tick();
      assert.equal((await book.jobs.get(jobId)).status, "queued");
      assert.deepEqual(await statuses(book), ["queued"]);
      assert.notEqual((await book.schedules.get("minutes")).paused, null);
    });

    test("paused and resumed in one millisecond, nothing is skipped", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("minutes", minutes);
      await book.schedules.pause("minutes");
      await book.schedules.resume("minutes");
      clock.step(minute);
      await tick();
      assert.deepEqual(await ledger(book, "minutes"), ["1 fired"]);
    });

    test("a backfill ahead of the cursor skips the undecided slots before it, and records that", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("hourly", { ...minutes, cron: "0 * * * *", missed: "all" });
      clock.step(5 * hour);
      const { slots } = await book.schedules.backfill("hourly", noon + 3 * hour, noon + 4 * hour);
      assert.equal(slots.length, 2);
      await tick();
      assert.deepEqual(await ledger(book, "hourly"), [
        ...["60 skipped_missed × 2", "180 backfilled", "240 backfilled", "300 fired"],
      ]);
      assert.match(
        (await book.schedules.why("hourly", noon + hour)).because.join(" "),
        /a later stretch was filled in/,
      );
      assert.deepEqual(await book.doctor(), []);
    });

    test("a backfill over a stretch that is partly fired cuts the span in two", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("hourly", { ...minutes, cron: "0 * * * *", missed: "skip" });
      clock.step(6 * hour + 30 * minute);
      await tick();
      assert.deepEqual(await ledger(book, "hourly"), ["60 skipped_missed × 6"]);
      await book.schedules.backfill("hourly", noon + 3 * hour, noon + 3 * hour);
      assert.deepEqual(await ledger(book, "hourly"), [
        ...["60 skipped_missed × 2", "180 backfilled", "240 skipped_missed × 3"],
      ]);
      const { slots, already } = await book.schedules.backfill("hourly", noon + 2 * hour, noon + 4 * hour);
      assert.deepEqual([slots, already], [[noon + 2 * hour, noon + 4 * hour], 1]);
      assert.deepEqual(await ledger(book, "hourly"), [
        ...["60 skipped_missed", "120 backfilled", "180 backfilled", "240 backfilled", "300 skipped_missed × 2"],
      ]);
    });

    test("all catches up on the newest thousand, and the rest is one decision", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("minutes", { ...minutes, missed: "all" });
      clock.step(1203 * minute + 30_000);
      await tick();
      const all = await ledger(book, "minutes");
      const { items } = await book.schedules.decisions("minutes", { limit: 500, after: String(noon + 205 * minute) });
      assert.deepEqual(
        items.map(({ at, kind, slots }) => [(at - noon) / minute, kind, slots]),
        [
          [204, "caught_up", 1],
          [203, "caught_up", 1],
          [1, "skipped_missed", 202],
        ],
      );
      assert.match(items.at(-1)?.note ?? "", /only the newest 1000/);
      assert.deepEqual([all.at(-1), all.at(-2)], ["1203 fired", "1202 caught_up"]);
      const rows = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_job_now`);
      assert.equal(Number(rows[0]?.n), 1001);
    });

    test("a schedule with jitter and a maximum ends when two late slots reach the maximum", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("few", { ...minutes, jitter: "30s", maxFires: 2 });
      for (let step = 0; step < 20; step++) {
        clock.step(15_000);
        await tick();
      }
      assert.deepEqual(await ledger(book, "few"), ["1 fired", "2 fired"]);
      assert.deepEqual(await book.schedules.preview("few"), []);
      clock.step(10 * minute);
      await book.schedules.edit("few", { maxFires: null });
      await tick();
      assert.deepEqual(await ledger(book, "few"), ["1 fired", "2 fired"], "what was over does not catch up");
      clock.step(2 * minute);
      await tick();
      assert.ok((await ledger(book, "few")).length > 2);
    });

    test("with gap skip, the day on which the clock leaves the time out has no slot", async (t) => {
      const { book, clock, tick } = await openAt(t, Date.UTC(2026, 2, 28, 12));
      const nights = { ...minutes, cron: "30 2 * * *", zone: "Europe/Madrid" };
      await book.schedules.create("skips", { ...nights, gap: "skip" });
      await book.schedules.create("shifts", nights);
      for (let step = 0; step < 48; step++) {
        clock.step(hour / 2);
        await tick();
        clock.step(hour / 2);
        await tick();
      }
      const local = async (name: string): Promise<unknown[]> =>
        (await book.schedules.decisions(name)).items.map((each) => [each.local, each.kind]).toReversed();
      assert.deepEqual(await local("skips"), [["2026-03-30T02:30:00", "fired"]]);
      assert.deepEqual(await local("shifts"), [
        ["2026-03-29T02:30:00", "shifted_dst"],
        ["2026-03-30T02:30:00", "fired"],
      ]);
      assert.match((await book.schedules.why("skips", "2026-03-29T01:00:00Z")).because[0] ?? "", /^It is not due at/);
    });

    test("a template whose params are no object is fired as it is, with what its job's definition says", async (t) => {
      const { book, clock, tick } = await openAt(t, noon - 1000);
      await book.templates.create("list", { job: "work", params: [1, 2] as never, queue: "mail" });
      await book.schedules.create("plain", { cron: "* * * * *", template: "list", overlap: "allow" });
      await book.schedules.create("over", { cron: "* * * * *", template: "list", params: { n: 3 }, queue: "own" });
      clock.step(1000);
      await tick();
      const made = (await book.jobs.list()).items.toReversed();
      assert.deepEqual(
        made.map(({ params, attempts, queue }) => [params, attempts, queue]),
        [
          [[1, 2], 7, "mail"],
          [{ n: 3 }, 7, "own"],
        ],
      );
      const limited = await book.read((tx) => tx.sql<{ limits: string | null }>`select limits from daybook_job_now`);
      assert.ok(limited.every(({ limits }) => limits !== null));
    });

    test("queue: cancelling a waiting job releases no other, and an edit strands none", async (t) => {
      const held = heldJob("held");
      const { book, clock, tick } = await openAt(t, noon - 1000, { use: [held.job] });
      await book.schedules.create("line", { ...minutes, job: held.job, overlap: "queue" });
      const worker = await book.startWorker({ concurrency: 5 });
      clock.step(1000);
      await tick();
      const { succeed } = await begunBy(held, clock, 1);
      for (let slot = 0; slot < 3; slot++) {
        clock.step(minute);
        await tick();
      }
      const [, second] = (await book.jobs.list()).items.toReversed();
      await book.jobs.cancel(second?.id ?? "");
      assert.deepEqual(await statuses(book), ["running", "cancelled", "waiting", "waiting"]);

      await book.schedules.edit("line", { overlap: "allow" });
      await book.schedules.remove("line");
      succeed();
      const next = await begunBy(held, clock, 2);
      assert.deepEqual(await statuses(book), ["completed", "cancelled", "running", "waiting"]);
      next.succeed();
      (await begunBy(held, clock, 3)).succeed();
      await worker.idle();
      assert.deepEqual(await statuses(book), ["completed", "cancelled", "completed", "completed"]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a zone that this machine does not know pauses its schedule, and no other", async (t) => {
      const { book, clock, tick } = await openAt(t, noon - 1000);
      for (const name of ["bad", "good"]) await book.schedules.create(name, minutes);
      await tamper(book, (tx) => tx.sql`update daybook_schedule set zone = 'Mars/Base' where name = 'bad'`);
      clock.step(1000);
      await tick();
      assert.deepEqual([await ledger(book, "bad"), await ledger(book, "good")], [[], ["0 fired"]]);
      const [bad] = (await book.schedules.list()).items;
      assert.match(bad?.paused?.note ?? "", /it cannot be read: .*Mars\/Base/);
      assert.match(bad?.words ?? "", /^cron \* \* \* \* \* \(Mars\/Base\)/);
      await book.schedules.edit("bad", { zone: "UTC" });
      await book.schedules.resume("bad");
      clock.step(minute);
      await tick();
      assert.deepEqual(await ledger(book, "bad"), ["1 fired"]);
    });

    test("an edit keeps the settings of the job's definition, even in a process that does not know it", async (t) => {
      const { book, clock, url } = await openAt(t, noon - 1000);
      await book.schedules.create("minutes", { ...minutes, queue: "mail" });
      const { book: stranger } = await openTest(t, backend, { url, worker: false, clock });
      await stranger.schedules.edit("minutes", { cron: "5 * * * *", jitter: undefined } as never);
      await stranger.schedules.edit("minutes", { params: { n: 4 }, priority: 3 });
      const { attempts, params, queue, priority } = await book.jobs.get(
        String((await book.schedules.trigger("minutes")).jobId),
      );
      assert.deepEqual([attempts, params, queue, priority], [7, { n: 4 }, "mail", 3]);
    });
  });
}

for (const backend of backends) {
  test(`${backend}: one schedule that cannot be decided does not keep the others from firing`, async (t) => {
    const clock = manualClock({ at: noon });
    const { book } = await openTest(t, backend, { use: [work], clock });
    for (const name of ["bad", "good"]) {
      await book.schedules.create(name, { cron: "* * * * *", job: work, params: {}, overlap: "allow" });
    }
    await tamper(book, (tx) => tx.sql`update daybook_schedule set job = 'no json' where name = 'bad'`);
    await book.startWorker();
    while ((await book.schedules.decisions("good")).items.length < 2) await clock.advance(1000);
    assert.deepEqual((await book.schedules.decisions("bad")).items, []);
  });
}
