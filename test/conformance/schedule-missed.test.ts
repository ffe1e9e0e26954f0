import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { fireDue } from "../../src/schedules/fire.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

const hour = 3_600_000;
const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);

for (const backend of backends) {
  describe(backend, () => {
    const openAt = async (t: TestContext, start: number) => {
      const told: string[] = [];
      const work = job("work", {
        run: (_: unknown, { job: { schedule: slot } }) =>
          void told.push(`${((slot?.nominalAt ?? 0) - noon) / hour} ${slot?.reason}, ${slot?.missed} missed`),
      });
      const clock = manualClock({ at: start });
      const { book, url } = await openTest(t, backend, { use: [work], clock });
      const { store } = await openTestStore(t, backend, { url, clock });
      const look = (): Promise<boolean> => store.write((tx) => fireDue(tx, { kinds: {} }));
      const tick = async (): Promise<void> => {
        await fireAll(store);
      };
      return { book, clock, tick, look, work, told };
    };

    for (const [what, options, upAt, expected] of [
      ["latest, up ten minutes after a slot", {}, 6 * hour + 10 * minute, ["6 late, 5 missed"]],
      ["latest, up half a minute after a slot", {}, 6 * hour + minute / 2, ["6 fired, 5 missed"]],
      ["latest, later than one period by its own", { maxLateness: "5m" }, 6 * hour + 10 * minute, []],
      ["skip, up half a minute after a slot", { missed: "skip" }, 6 * hour + minute / 2, ["6 fired, 5 missed"]],
      [
        "all, but not what is too late",
        { missed: "all", maxLateness: "2h" },
        6 * hour + 10 * minute,
        ["5 caught_up, 4 missed", "6 caught_up, 0 missed"],
      ],
    ] as const) {
      test(`the handler sees how many slots it stands for: ${what}`, async (t) => {
        const { book, clock, tick, work, told } = await openAt(t, noon + 1);
        await book.schedules.create("hourly", { cron: "0 * * * *", job: work, params: {}, ...options });
        clock.step(upAt);
        await tick();
        await (await book.startWorker({ concurrency: 4 })).idle();
        assert.deepEqual(told, expected);
      });
    }

    for (const backAt of [1000, minute - 1000]) {
      test(`missed: "all" loses no slot when the worker is back ${backAt} ms after the newest`, async (t) => {
        const { book, clock, tick, work, told } = await openAt(t, noon + 1);
        await book.schedules.create("hourly", { cron: "0 * * * *", job: work, params: {}, missed: "all" });
        clock.step(6 * hour + backAt);
        await tick();
        await (await book.startWorker({ concurrency: 4 })).idle();

        const caughtUp = [1, 2, 3, 4, 5].map((slot) => `${slot} caught_up, 0 missed`);
        assert.deepEqual(told, [...caughtUp, "6 fired, 0 missed"]);
        // The next slot finds nothing that has not ended.
        clock.step(hour);
        await tick();
        assert.equal((await book.schedules.decisions("hourly")).items[0]?.kind, "fired");
      });
    }

    test("slots missed for longer than a period or a day are not made up for by default", async (t) => {
      const { book, clock, tick, work } = await openAt(t, noon);
      const once = { at: noon + hour, job: work, params: {} };
      await book.schedules.create("once", once);
      await book.schedules.create("sure", { ...once, maxLateness: "7d" });
      await book.schedules.create("weekly", { cron: "0 13 * * THU", job: work, params: {} });
      clock.step(26 * hour + 1);
      await tick();
      const kind = async (name: string): Promise<unknown> => (await book.schedules.decisions(name)).items[0]?.kind;
      assert.deepEqual(
        [await kind("once"), await kind("sure"), await kind("weekly")],
        ["skipped_missed", "late", "skipped_missed"],
      );
    });

    test("more slots than one transaction should hold are decided in several", async (t) => {
      const { book, clock, tick, work, look } = await openAt(t, noon);
      await book.write(async (tx) => {
        for (let index = 0; index < 40; index++) {
          await tx.schedules.create(`s${index}`, { every: "1s", job: work, params: {}, overlap: "allow" });
        }
      });
      clock.step(59_999);
      const jobs = async (): Promise<number> => {
        const [made] = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_job_now`);
        return Number(made?.n);
      };
      assert.equal(await look(), true);
      assert.equal(await jobs(), 34 * 59);
      await tick();
      assert.equal(await jobs(), 40 * 59);
    });
  });
}
