import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, schedule, type Book, type ManualClock, type OpenOptions } from "../../src/index.ts";
import { releaseSchedules } from "../../src/schedules/write-schedule.ts";
import { join } from "node:path";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, openTest, openTestStore, testFolder } from "../support/open-test.ts";
import { begunBy, heldJob } from "../jobs/handlers.ts";
import { until, whileTimePasses } from "../support/session-row.ts";
import { tamper } from "../support/tamper.ts";

const hour = 3_600_000;
const noon = Date.UTC(2026, 0, 15, 12);
const work = job<{ n?: number }>("work", { attempts: 1, run: () => undefined });

type Desk = { book: Book; clock: ManualClock; url: string; tick(): Promise<void>; restore(): Promise<void> };

for (const backend of backends) {
  describe(backend, () => {
    // Ticks are taken by the test, so that the time of each decision is known; the ticker has tests of its own.
    const openAt = async (t: TestContext, start = noon, options: OpenOptions = {}, url?: string): Promise<Desk> => {
      const clock = manualClock({ at: start });
      const opened = await openTest(t, backend, {
        use: [work],
        clock,
        ...options,
        ...(url === undefined ? {} : { url }),
      });
      const { store } = await openTestStore(t, backend, { url: opened.url, clock });
      const tick = (): Promise<void> => fireAll(store);
      const restore = async (): Promise<void> => void (await releaseSchedules(store, undefined));
      return { book: opened.book, clock, url: opened.url, tick, restore };
    };
    const kinds = async (book: Book, name: string): Promise<string[]> =>
      (await book.schedules.decisions(name, { limit: 500 })).items
        .toReversed()
        .map(({ kind, slots }) => (slots > 1 ? `${kind} × ${slots}` : kind));
    const jobsOf = async (book: Book): Promise<number> => (await book.jobs.list({ limit: 500 })).items.length;

    test("a slot is fired once, with its job, and the handler sees which slot it is", async (t) => {
      const told: unknown[] = [];
      const tells = job("tells", { run: (_params: unknown, { job: { schedule: fire } }) => void told.push(fire) });
      const { book, clock, tick } = await openAt(t, noon, { use: [tells] });
      await book.schedules.create("hourly", { cron: "0 * * * *", job: tells, params: { n: 1 } });
      await tick();
      assert.equal(await jobsOf(book), 0);
      clock.step(hour);
      await tick();
      await tick();

      assert.deepEqual(await kinds(book, "hourly"), ["fired"]);
      const worker = await book.startWorker();
      await worker.idle();
      assert.deepEqual(told, [
        { name: "hourly", nominalAt: noon + hour, firedAt: noon + hour, lateMs: 0, reason: "fired", missed: 0 },
      ]);
      const { fires, nextAt, lastFiredAt, words } = await book.schedules.get("hourly");
      assert.deepEqual([fires, nextAt, lastFiredAt], [1, noon + 2 * hour, noon + hour]);
      assert.notEqual(words, "");
      assert.deepEqual(await book.doctor(), []);
    });

    for (const [missed, expected, runs] of [
      ["latest", ["skipped_missed × 5", "late"], 1],
      ["all", ["caught_up", "caught_up", "caught_up", "caught_up", "caught_up", "caught_up"], 6],
      ["skip", ["skipped_missed × 6"], 0],
    ] as const) {
      test(`after six hours down, ${missed} makes ${runs} of six slots`, async (t) => {
        const { book, clock, tick } = await openAt(t, noon + 1);
        await book.schedules.create("hourly", {
          cron: "0 * * * *",
          job: work,
          params: {},
          missed,
        });
        clock.step(6 * hour + 10 * 60_000);
        await tick();

        assert.deepEqual(await kinds(book, "hourly"), expected);
        const made = (await book.jobs.list()).items.toReversed();
        assert.equal(made.length, runs);
        const { items } = await book.schedules.decisions("hourly");
        const fired = items.filter(({ jobId }) => jobId !== null).toReversed();
        assert.deepEqual(
          fired.map(({ jobId }) => jobId),
          made.map(({ id }) => id),
        );
        if (missed === "latest") assert.match(fired[0]?.note ?? "", /5 before it were missed/);
        const worker = await book.startWorker();
        await worker.idle();
        // A worker decides slots too, and one that it holds is passed by here.
        await worker.stop();
        clock.step(50 * 60_000);
        await tick();
        assert.equal((await kinds(book, "hourly")).at(-1), "fired");
        assert.deepEqual(await book.doctor(), []);
      });
    }

    test("a slot that is missed for longer than maxLateness is not made up for", async (t) => {
      const { book, clock, tick } = await openAt(t);
      await book.schedules.create("daily", { daily: "13:00", job: work, params: {}, maxLateness: "1h" });
      clock.step(3 * hour);
      await tick();
      assert.deepEqual(await kinds(book, "daily"), ["skipped_missed"]);
    });

    test("a new, an edited, a resumed and a restored schedule never catch up", async (t) => {
      const { book, clock, tick, restore } = await openAt(t, noon + 1);
      const options = { cron: "0 * * * *", job: work, params: {}, missed: "all" } as const;
      await book.schedules.create("paused", options);
      await book.schedules.create("edited", options);
      await book.schedules.create("restored", options);
      await book.schedules.pause("paused", "holiday");
      clock.step(3 * hour);
      await book.schedules.resume("paused");
      await book.schedules.edit("edited", { cron: "30 * * * *" });
      await tamper(book, (tx) => tx.sql`update daybook_schedule set held = 1 where name = 'restored'`);
      await restore();
      await tick();

      assert.deepEqual(await kinds(book, "paused"), ["skipped_paused × 3"]);
      assert.match((await book.schedules.decisions("paused")).items[0]?.note ?? "", /holiday/);
      assert.deepEqual(await kinds(book, "edited"), ["skipped_missed × 3"]);
      assert.deepEqual(await kinds(book, "restored"), ["skipped_missed × 3"]);
      assert.equal(await jobsOf(book), 0);
      clock.step(hour);
      await tick();
      assert.deepEqual((await kinds(book, "paused")).at(-1), "fired");
    });

    test("a clock set back repeats no slot, and a clock set forward counts as downtime", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("hourly", { cron: "0 * * * *", job: work, params: {}, overlap: "allow" });
      clock.step(hour);
      await tick();
      clock.step(noon - hour - clock.now());
      await tick();
      clock.step(hour + 1);
      await tick();
      assert.deepEqual(await kinds(book, "hourly"), ["fired"]);
      clock.step(noon + 4 * hour + 600_000 - clock.now());
      await tick();
      assert.deepEqual(await kinds(book, "hourly"), ["fired", "skipped_missed × 2", "late"]);
    });

    test("removed and made again within the minute, it fires the slot once", async (t) => {
      const { book, clock, tick } = await openAt(t, noon - 1000);
      const options = { cron: "* * * * *", job: work, params: {}, overlap: "allow" } as const;
      await book.schedules.create("minutes", options);
      clock.step(1000);
      await tick();
      await book.schedules.remove("minutes");
      await assert.rejects(book.schedules.get("minutes"), { code: "not_found" });
      clock.step(noon - 500 - clock.now());
      await book.schedules.create("minutes", options);
      clock.step(500);
      await tick();
      assert.equal(await jobsOf(book), 1);
    });

    for (const [overlap, statuses, ledger] of [
      ["skip", ["running"], ["fired", "skipped_overlap"]],
      ["queue", ["running", "waiting"], ["fired", "fired"]],
      ["allow", ["running", "queued"], ["fired", "fired"]],
    ] as const) {
      test(`while the job before runs, ${overlap} makes ${ledger[1]}`, async (t) => {
        const held = heldJob("held");
        const { book, clock, tick } = await openAt(t, noon - 1000, { use: [held.job] });
        await book.schedules.create("minutes", { cron: "* * * * *", job: held.job, params: {}, overlap });
        const worker = await book.startWorker({ concurrency: 1 });
        clock.step(1000);
        await tick();
        const { succeed } = await begunBy(held, clock, 1);
        clock.step(60_000);
        await tick();

        const open = (await book.jobs.list()).items.toReversed();
        assert.deepEqual(
          open.map(({ status }) => status),
          statuses,
        );
        assert.deepEqual((await kinds(book, "minutes")).slice(0, 2), ledger);
        succeed();
        if (overlap !== "skip") (await begunBy(held, clock, 2)).succeed();
        await worker.idle();
        assert.deepEqual(await book.doctor(), []);
      });
    }

    test("cancel ends the job before and runs the new one", async (t) => {
      const held = heldJob("held");
      const { book, clock, tick } = await openAt(t, noon - 1000, { use: [held.job] });
      await book.schedules.create("minutes", { cron: "* * * * *", job: held.job, params: {}, overlap: "cancel" });
      clock.step(1000);
      await tick();
      clock.step(60_000);
      await tick();
      assert.deepEqual(
        (await book.jobs.list()).items.map(({ status }) => status),
        ["queued", "cancelled"],
      );
    });

    test("jitter is the schedule's own, start and end bound it, and so does the number of fires", async (t) => {
      const { book, clock, tick } = await openAt(t, noon);
      await book.schedules.create("bounded", {
        every: "1h",
        job: work,
        params: {},
        overlap: "allow",
        jitter: "10m",
        maxFires: 2,
        start: noon + 90 * 60_000,
        end: noon + 10 * hour,
      });
      const { nextAt } = await book.schedules.get("bounded");
      const offset = (nextAt ?? 0) - (noon + 2 * hour);
      assert.ok(offset >= 0 && offset <= 600_000);
      for (let slot = 0; slot < 6; slot++) {
        clock.step(hour);
        await tick();
        clock.step(offset);
        await tick();
      }
      const { items } = await book.schedules.decisions("bounded");
      assert.equal(items.length, 2);
      assert.equal((await book.schedules.get("bounded")).nextAt, null);
    });

    test("it pauses after failures in a row, and says so", async (t) => {
      const fails = job("fails", {
        attempts: 1,
        run() {
          throw new Error("no");
        },
      });
      const { book, clock, tick } = await openAt(t, noon - 1000, { use: [fails] });
      await book.schedules.create("minutes", { cron: "* * * * *", job: fails, params: {}, pauseAfterFailures: 2 });
      const worker = await book.startWorker();
      for (let slot = 0; slot < 3; slot++) {
        clock.step(slot === 0 ? 1000 : 60_000);
        await tick();
        while ((await book.jobs.list({ status: "failed" })).items.length <= Math.min(slot, 1)) await clock.advance(1);
        await worker.idle();
      }
      const { paused, failures, nextAt } = await book.schedules.get("minutes");
      assert.deepEqual([failures, nextAt], [2, null]);
      assert.match(paused?.note ?? "", /2 jobs in a row failed/);
      assert.equal(await jobsOf(book), 2);
    });

    test("trigger and backfill fire by hand, once each slot, with a dry run", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("hourly", { cron: "0 * * * *", job: work, params: {}, missed: "skip" });
      clock.step(4 * hour);
      await tick();
      const jobId = String((await book.schedules.trigger("hourly")).jobId);
      await book.schedules.trigger("hourly");
      assert.equal((await book.jobs.get(jobId)).status, "queued");
      const stretch = [noon, noon + 3 * hour] as const;
      const dry = await book.schedules.backfill("hourly", ...stretch, { dryRun: true });
      assert.deepEqual(dry.slots, [noon, noon + hour, noon + 2 * hour, noon + 3 * hour]);
      assert.equal(await jobsOf(book), 3);
      assert.deepEqual((await book.schedules.backfill("hourly", ...stretch)).slots, dry.slots);
      const again = await book.schedules.backfill("hourly", ...stretch);
      assert.deepEqual([again.slots, again.already, await jobsOf(book)], [[], 4, 7]);
      assert.deepEqual((await kinds(book, "hourly")).toSorted(), [
        ...["backfilled", "backfilled", "backfilled", "backfilled", "fired", "manual", "manual"],
      ]);
      await assert.rejects(book.schedules.backfill("hourly", noon + hour, noon), { code: "invalid" });
      await assert.rejects(book.schedules.backfill("hourly", noon, clock.now() + 1), /in the future/);
    });

    test("why answers for each decision, and for a time that is no slot", async (t) => {
      const { book, clock, tick } = await openAt(t, noon + 1);
      await book.schedules.create("hourly", { cron: "0 * * * *", job: work, params: {} });
      const why = async (at: number): Promise<string> => (await book.schedules.why("hourly", at)).because.join(" ");
      assert.match(await why(noon - hour), /was made at .* after that slot/);
      assert.match(await why(noon + 30 * 60_000), /not due at .*The slot before is .*The next one is/);
      assert.match(await why(noon + hour), /in the future/);
      clock.step(hour);
      assert.match(await why(noon + hour), /not decided yet/);
      await tick();
      assert.match(await why(noon + hour), /fired on time.*Its job is/);
      clock.step(hour);
      await tick();
      assert.match(await why(noon + 2 * hour), /had not ended/);
      clock.step(3 * hour + 600_000);
      await tick();
      assert.match(await why(noon + 3 * hour), /no process was working.*2 slots/);
      await book.schedules.pause("hourly", "audit");
      clock.step(hour);
      assert.match(await why(noon + 6 * hour), /paused since .*audit/);
      await book.schedules.resume("hourly");
      assert.match(await why(noon + 6 * hour), /the schedule was paused/);
    });

    test("a template is read when it is fired, and an archived one pauses the schedule", async (t) => {
      const { book, clock, tick } = await openAt(t, noon - 1000);
      await book.templates.create("report", { job: work, params: { n: 1 }, priority: 7 });
      await book.schedules.create("minutes", { cron: "* * * * *", template: "report", overlap: "allow" });
      clock.step(1000);
      await book.templates.edit("report", { params: { n: 2 } });
      await tick();
      const [made] = (await book.jobs.list()).items;
      assert.deepEqual([made?.params, made?.priority, made?.template], [{ n: 2 }, 7, "report"]);
      await book.templates.archive("report");
      clock.step(60_000);
      await tick();
      assert.match((await book.schedules.get("minutes")).paused?.note ?? "", /archived/);
      assert.deepEqual(await kinds(book, "minutes"), ["fired", "skipped_paused"]);
      await assert.rejects(book.schedules.create("other", { cron: "* * * * *", template: "report" }), {
        code: "conflict",
      });
    });

    test("a definition in code is written once, changed when it changes, and not edited elsewhere", async (t) => {
      const clock = manualClock({ at: noon });
      const first = schedule("code", { cron: "0 * * * *", job: work, params: {} });
      const { book, url } = await openTest(t, backend, { use: [work, first], clock });
      const made = await book.schedules.get("code");
      const { book: same } = await openTest(t, backend, { url, use: [work, first], clock });
      assert.equal((await same.schedules.get("code")).updatedAt, made.updatedAt);
      await assert.rejects(same.schedules.edit("code", { cron: "5 * * * *" }), /defined in code/);
      clock.step(1000);
      const changed = schedule("code", { cron: "30 * * * *", job: work, params: {} });
      const { book: later } = await openTest(t, backend, { url, use: [work, changed], clock });
      assert.deepEqual((await later.schedules.get("code")).nextAt, noon + 30 * 60_000);
      const { book: without } = await openTest(t, backend, { url, use: [work], clock });
      assert.equal((await without.schedules.list()).items.length, 1);
    });

    test("a schedule of one tenant does not exist for another, and fires in its own", async (t) => {
      const { book, clock, tick } = await openAt(t, noon - 1000);
      const acme = book.tenant("acme");
      await acme.schedules.create("minutes", { cron: "* * * * *", job: work, params: {} });
      await assert.rejects(book.schedules.trigger("minutes"), { code: "not_found" });
      await book.schedules.create("minutes", { daily: "07:00", job: work, params: {} });
      clock.step(1000);
      await tick();
      assert.deepEqual([await jobsOf(acme), await jobsOf(book)], [1, 0]);
    });

    test("a preview shows the next fires in both zones, also of an edit before it is saved", async (t) => {
      const { book } = await openAt(t, Date.UTC(2026, 2, 27, 12));
      await book.schedules.create("early", { daily: "02:30", zone: "Europe/Madrid", job: work, params: {} });
      const fires = await book.schedules.preview("early", { count: 3, zone: "America/New_York" });
      assert.deepEqual(
        fires.map(({ local, there, dst }) => [local, there, dst]),
        [
          ["2026-03-28T02:30:00", "2026-03-27T21:30:00", null],
          ["2026-03-29T02:30:00", "2026-03-28T21:00:00", "gap"],
          ["2026-03-30T02:30:00", "2026-03-29T20:30:00", null],
        ],
      );
      const [edited] = await book.schedules.preview("early", { count: 1, edit: { daily: "05:00" } });
      assert.equal(edited?.local, "2026-03-28T05:00:00");
      assert.equal((await book.schedules.get("early")).expression, "02:30");
    });

    test("an invalid schedule is refused, and an undefined job gives a warning", async (t) => {
      const { book } = await openAt(t);
      const create = (options: object): Promise<unknown> =>
        book.schedules.create("wrong", { job: work, params: {}, ...options } as never);
      for (const options of [
        ...[{}, { cron: "* * * * *", daily: "07:00" }, { cron: "* * * * *", missed: "some" }],
        ...[
          { cron: "0 0 31 2 *" },
          { cron: "" },
          { cron: "* * * * *", jiter: 5 },
          { daily: "07:00", zone: "Mars/Base" },
        ],
        ...[
          { cron: "* * * * *", template: "x" },
          { every: "1h", start: noon, end: noon - 1 },
        ],
      ]) {
        await assert.rejects(create(options), { code: "invalid" }, JSON.stringify(options));
      }
      await assert.rejects(create({ cron: "* * * * *", job: undefined, template: "none" }), { code: "not_found" });
      assert.deepEqual((await book.schedules.list()).items, []);
      const { warning } = await book.schedules.create("ghost", { every: "1h", job: "nobody" });
      assert.match(warning ?? "", /job "nobody" was never hosted/);
      await assert.rejects(book.schedules.create("ghost", { every: "1h", job: work }), { code: "conflict" });
      await assert.rejects(book.schedules.pause("gost"), /did you mean "ghost"\?/);
    });
  });
}

test("a released copy of a book does not catch up on slots since its backup, and goes on", async (t) => {
  const clock = manualClock({ at: noon });
  const { book } = await openTest(t, "sqlite", { use: [work], clock });
  const options = { job: work, params: {}, missed: "all", overlap: "allow" } as const;
  await book.schedules.create("hourly", { ...options, cron: "0 * * * *" });
  await book.schedules.create("paused", { ...options, cron: "0 * * * *" });
  await book.schedules.pause("paused");
  const path = join(testFolder(t), "copy.db");
  await book.backup(path);

  const later = manualClock({ at: noon + 4 * hour - 60_000 });
  const { book: copy } = await openTest(t, "sqlite", { url: path, use: [work], clock: later });
  await copy.startWorker();
  const ledger = async (name: string): Promise<unknown[]> =>
    (await copy.schedules.decisions(name)).items.map(({ kind, slots, note }) => [kind, slots, note]);
  await copy.release();
  await copy.schedules.resume("paused");
  const passed = ["skipped_missed", 3, "the book was restored from a backup"];
  assert.deepEqual(await ledger("hourly"), [passed]);

  // The first slot after that is fired like any other.
  await later.advance(60_000);
  for (const name of ["hourly", "paused"]) {
    const decided = async (): Promise<true | undefined> => (await ledger(name)).length === 2 || undefined;
    await whileTimePasses(later, until(`the next slot of "${name}" is decided`, decided));
  }
  assert.deepEqual(await ledger("hourly"), [["fired", 1, null], passed]);
  assert.deepEqual((await ledger("paused"))[0], ["fired", 1, null]);
});

for (const backend of backends) {
  test(`${backend}: the ticker fires on time by itself, and looks again when a schedule is made`, async (t) => {
    const clock = manualClock({ at: noon });
    const { book } = await openTest(t, backend, { use: [work], clock });
    await book.startWorker();
    await book.schedules.create("minutes", { cron: "* * * * *", job: work, params: {}, overlap: "allow" });
    await fires(book, clock, 3);
    const { items } = await book.schedules.decisions("minutes");
    assert.deepEqual(
      items.map(({ kind }) => kind),
      Array.from({ length: items.length }, () => "fired"),
    );
  });
}

/** A slot at a time: a clock that runs ahead of the book would make of the next slot one that was missed. */
async function fires(book: Book, clock: ManualClock, count: number): Promise<void> {
  for (let slot = 1; slot <= count; slot++) {
    await clock.advance(60_000);
    const fired = async (): Promise<true | undefined> =>
      (await book.schedules.get("minutes")).fires >= slot || undefined;
    await whileTimePasses(clock, until(`slot ${slot} is fired`, fired));
  }
}
