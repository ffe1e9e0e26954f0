import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

const hour = 3_600_000;
const minute = 60_000;
const work = job("work", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    const openAt = async (t: TestContext, start: number) => {
      const moved = manualClock({ at: start });
      // Both clocks go on with each step: time in which nobody was there.
      const clock = { ...moved, monotonic: moved.now };
      const { book, url } = await openTest(t, backend, { use: [work], clock });
      const { store } = await openTestStore(t, backend, { url, clock });
      const tick = (): Promise<void> => fireAll(store);
      return { book, clock, tick, url };
    };
    const say = async (book: Book, name: string, at: number): Promise<string> =>
      (await book.schedules.why(name, at)).because.join(" ");

    test("why answers for every kind of decision", async (t) => {
      const midnight = Date.UTC(2026, 2, 29);
      const { book, clock, tick } = await openAt(t, midnight - 4 * hour + 1);
      const allow = { job: work, params: {}, overlap: "allow" } as const;
      await book.schedules.create("night", { daily: "02:30", zone: "Europe/Madrid", ...allow });
      await book.schedules.create("late", { cron: "0 * * * *", ...allow });
      await book.schedules.create("all", { cron: "0 * * * *", ...allow, missed: "all" });
      await book.schedules.create("busy", { cron: "0 * * * *", job: work, params: {} });
      clock.step(2 * hour + 10 * minute);
      await tick();
      const missed = midnight - 3 * hour;
      const latest = midnight - 2 * hour;
      assert.match(
        await say(book, "late", missed),
        /^It did not run: no process was working.*a later one was made up for/,
      );
      assert.match(await say(book, "late", latest), /^It ran late: .*the latest missed slot.*1 before it were missed/);
      assert.match(await say(book, "all", missed), /^It ran late: .*every missed slot was caught up/);
      clock.step(50 * minute);
      await tick();
      assert.match(
        await say(book, "busy", midnight - hour),
        /^It did not run: the job of the slot before had not ended/,
      );
      assert.match(await say(book, "all", midnight - hour), /^It ran: the slot was fired on time/);
      clock.step(midnight + hour - clock.now());
      await tick();
      assert.match(await say(book, "night", midnight + hour), /^It ran at the first valid moment/);
      await book.schedules.backfill("late", missed, missed);
      assert.match(await say(book, "late", missed), /^It ran because somebody asked for this stretch/);
      clock.step(1234);
      await book.schedules.trigger("night");
      assert.match(await say(book, "night", midnight + hour + 1234), /^It ran because somebody triggered it by hand/);
      await book.schedules.pause("late", "audit");
      clock.step(2 * hour);
      await book.schedules.resume("late");
      assert.match(await say(book, "late", midnight + 2 * hour), /^It did not run: the schedule was paused.*audit/);
    });

    test("why knows jitter, bounds, the number of fires and what has left", async (t) => {
      const noon = Date.UTC(2026, 0, 15, 12);
      const { book, clock, tick } = await openAt(t, noon + 10_000);
      const every = { job: work, params: {}, overlap: "allow" } as const;
      const { id } = await book.schedules.create("jitter", { cron: "0 * * * *", ...every, jitter: "30m" });
      await book.schedules.create("few", { cron: "*/10 * * * * *", ...every, maxFires: 2 });
      await book.schedules.create("bounded", { every: "1h", ...every, start: noon + hour, end: noon + 3 * hour });
      const { nextAt } = await book.schedules.get("jitter");
      assert.ok(id !== "" && (nextAt ?? 0) > noon + hour);
      assert.match(await say(book, "bounded", noon), /It is not due.*It begins at 2026-01-15T13:00/);
      assert.match(await say(book, "bounded", noon + 4 * hour), /It ended at 2026-01-15T15:00.*none after it/);
      // A whole minute stands for its slots, and the schedule was made before the one in it that comes.
      await book.schedules.create("half", { cron: "30 * * * * *", ...every, maxFires: 1 });
      assert.match(await say(book, "half", noon), /^It is due then, which is in the future/);

      clock.step(50_000);
      await tick();
      assert.match(await say(book, "few", noon + 45_000), /not due at .*The slot before is .*12:00:40.*12:00:50/);
      assert.match(await say(book, "few", noon + 40_000), /^It has fired 2 times, which is all/);
      clock.step(hour - minute + 1);
      await tick();
      assert.match(
        await say(book, "jitter", noon + hour),
        /^It is due then, which is now; with its jitter it fires at/,
      );

      clock.step(hour);
      await tick();
      assert.match(await say(book, "jitter", noon + hour), /^It ran/);
      assert.equal((await book.retain({ decisions: "0s" })).decisions, 0, "their jobs are open");
      await (await book.startWorker()).idle();
      await book.retain({ decisions: "0s", apply: true });
      assert.match(await say(book, "jitter", noon + hour), /not kept any more.*have left by retention/);
    });

    test("decisions that have left fire nothing again, and backfill refuses their stretch", async (t) => {
      const noon = Date.UTC(2026, 0, 15, 12);
      const { book, clock, tick, url } = await openAt(t, noon + 1);
      for (const seen of [book, book.tenant("acme")]) {
        await seen.schedules.create("hourly", { cron: "0 * * * *", job: work, params: {}, missed: "skip" });
      }
      clock.step(3 * hour);
      await tick();
      const jobs = async (): Promise<number> => (await book.jobs.list()).items.length;
      const dry = await book.retain({ decisions: "0s" });
      assert.equal(dry.decisions, 1, "the one that fired has an open job");
      // Who works decides slots too, also in the midst of what follows, so it leaves.
      const { book: working } = await openTest(t, backend, { url, use: [work], clock });
      await (await working.startWorker()).idle();
      await working.close();
      assert.equal((await book.retain({ decisions: "1h", apply: true })).decisions, 0);
      assert.equal((await book.retain({ decisions: "0s", apply: true })).decisions, 2);

      await tick();
      assert.deepEqual([(await book.schedules.decisions("hourly")).items, await jobs()], [[], 1]);
      assert.equal((await book.tenant("acme").schedules.decisions("hourly")).items.length, 2);
      await assert.rejects(book.schedules.backfill("hourly", noon, noon + hour), /have left by retention/);
      clock.step(hour);
      const { slots } = await book.schedules.backfill("hourly", noon + 3 * hour + 1, noon + 4 * hour);
      assert.equal(slots.length, 1);
      assert.deepEqual(await book.doctor(), []);
      await assert.rejects(book.retain({ decisions: { olderThan: "0s", keep: 1 } } as never), { code: "invalid" });
    });
  });
}
