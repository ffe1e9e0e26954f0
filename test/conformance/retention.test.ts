// One policy says how long things stay: who says it, whom it binds, and what leaves by it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  app,
  job,
  listener,
  manualClock,
  open,
  type Book,
  type LogLine,
  type RetainOptions,
  type Retention,
} from "../../src/index.ts";
import { openLog } from "../../src/open/log.ts";
import { everyMinute, retain } from "../../src/open/retain.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { rawSql } from "../../src/storage/sql.ts";
import { backends, cleanup, openTest, type Backend } from "../support/open-test.ts";
import type { TestContext } from "node:test";

const day = 86_400_000;
const begin = Date.UTC(2026, 5, 1, 12);
const fails = job("fails", {
  attempts: 1,
  run: () => {
    throw new Error("no");
  },
});
const works = job("works", { run: () => undefined });
const home = app("home", { setup: (here) => void here.every("1h", { name: "report" }, () => undefined) });
const hears = listener("hears", { on: "light.*", run: () => undefined });

/** Both of its clocks go on with each step: time in which nobody was there. */
function passing(): ReturnType<typeof manualClock> {
  const clock = manualClock({ at: begin });
  return { ...clock, monotonic: clock.now };
}

/** A book in which one of everything ended at the beginning of June. */
async function openOld(
  t: TestContext,
  backend: Backend,
  retention: Retention = {},
): Promise<{ book: Book; clock: ReturnType<typeof passing> }> {
  const clock = passing();
  const { book } = await openTest(t, backend, { use: [works, fails, home, hears], clock, retention });
  const worker = await book.startWorker();
  await book.jobs.enqueueMany(works, [{}, {}, {}]);
  await book.jobs.enqueue(fails, {});
  await book.schedules.trigger((await book.schedules.list()).items[0]?.name ?? "");
  await book.calls.cancel((await book.calls.submit({ url: "https://stock.example/reserve", in: "1h" })).id);
  for (const topic of ["light.on", "light.off"]) await book.events.publish(topic, null);
  await worker.idle();
  await worker.stop();
  return { book, clock };
}

for (const backend of backends) {
  describe(`retention on ${backend}`, () => {
    test("jobs, calls and events leave after 30 days, what apps' schedules did after 7, and a dry run counts the same", async (t) => {
      const { book, clock } = await openOld(t, backend);
      const gone = async (): Promise<readonly number[]> => {
        const dry = await book.retain();
        const done = await book.retain({ apply: true });
        assert.deepEqual({ ...dry, dryRun: false, slices: done.slices }, done);
        return [done.jobs, done.calls, done.events, done.decisions];
      };

      clock.step(7 * day - 1);
      const young = await gone();
      clock.step(1);
      const week = await gone();
      clock.step(23 * day);
      const month = await gone();
      clock.step(60 * day);
      const quarter = await gone();

      // Four of their own, two deliveries, and the call's. The last event of the book stays.
      assert.deepEqual(
        [young, week, month, quarter],
        [
          [0, 0, 0, 0],
          [1, 0, 0, 0],
          [7, 1, 0, 0],
          [0, 0, 1, 1],
        ],
      );
      assert.deepEqual(await book.doctor(), []);
    });

    test("a retention is about what is named and nothing else, and true means as the policy says", async (t) => {
      const { book, clock } = await openOld(t, backend);
      clock.step(20 * day);
      const would = async (options: RetainOptions): Promise<readonly number[]> => {
        const { jobs, calls, events, decisions } = await book.retain(options);
        return [jobs, calls, events, decisions];
      };

      assert.deepEqual(await would({ jobs: "10d" }), [6, 0, 0, 0]);
      assert.deepEqual(await would({ calls: "10d", events: "10d" }), [1, 1, 1, 0]);
      assert.deepEqual(await would({ runs: true }), [1, 0, 0, 0]);
      assert.deepEqual(await would({ jobs: true, calls: true, events: true }), [0, 0, 0, 0]);
      clock.step(10 * day);
      assert.deepEqual(await would({ jobs: true, decisions: "10d" }), [6, 0, 0, 1]);
    });

    test("a job leaves by whichever of several rules it fits, and is counted once", async (t) => {
      const { book, clock } = await openOld(t, backend);
      clock.step(5 * day);
      const rules = [
        { status: "completed", olderThan: "2d" },
        { name: "works", keep: 1 },
        { status: "failed", olderThan: "9d" },
      ] as const;

      const dry = await book.retain({ jobs: rules });
      const done = await book.retain({ jobs: rules, apply: true });
      const left = (await book.jobs.list()).items.map(({ name }) => name);

      assert.deepEqual([dry.jobs, done.jobs], [5, 5]);
      assert.ok(left.includes("fails") && !left.includes("works"), left.join());
    });

    test("the book keeps the policy that a program opens it with, for every process, until one says another", async (t) => {
      const { book, url } = await openTest(t, backend, { retention: { jobs: { keep: 5 }, events: false } });
      const policy = async (): Promise<unknown> => (await book.tenant("acme").retain()).policy;
      const said = { jobs: { keep: 5 }, events: false, calls: "30d", runs: "7d", logs: "3d" };

      assert.deepEqual(await policy(), { ...said, decisions: "90d", rollups: "400d", sizeMax: 2 ** 30 });
      const silent = await open(url, { readOnly: true });
      cleanup(t, () => silent.close());
      assert.deepEqual((await silent.retain()).policy, await policy());
      const lines: LogLine[] = [];
      const openSaying = async (retention: Retention): Promise<void> => {
        const other = await open(url, { retention, log: (line) => lines.push(line) });
        cleanup(t, () => other.close());
      };
      await openSaying({ events: false, jobs: { keep: 5 } });
      assert.equal(lines.length, 0);
      await openSaying({ events: "2d" });
      assert.equal(JSON.stringify(await policy()).includes('"jobs":"30d"'), true);
      const changes = 'jobs {"keep":5}, now its default; events for ever, now 2d';
      const message = `retention was another in this book, and is now as this program says (${changes})`;
      assert.deepEqual(
        lines.map((line) => [line.level, line.event, line.message]),
        [["info", "retention.changed", message]],
      );
    });

    test("what the policy keeps for ever stays, whatever its age", async (t) => {
      const { book, clock } = await openOld(t, backend, { jobs: false, events: false, runs: false });
      clock.step(1000 * day);

      const { jobs, calls, events } = await book.retain({ apply: true });

      assert.deepEqual([jobs, calls, events], [1, 1, 0]);
    });

    test("of several processes one sees to it in an hour, for all tenants", async (t) => {
      const { book, clock } = await openOld(t, backend);
      const acme = book.tenant("acme");
      await acme.events.publish("light.on", null);
      await book.events.publish("light.dim", null);
      clock.step(40 * day);
      const rooms = roomsOf(book);
      let turns = 0;
      const read = rooms.store.readHeavy;
      const store = { ...rooms.store, readHeavy: ((s) => (turns++, read(s))) as typeof read };
      const [one, two] = [everyMinute({ ...rooms, store }), everyMinute(rooms)];

      clock.step(60_000);
      await two();
      while ((await acme.events.list()).items.length > 0) await rooms.store.waitClock.sleep(1);
      const before = turns;
      await one();
      await book.write(() => undefined);

      assert.equal(turns, before);
      assert.equal((await book.jobs.list()).items.filter(({ status }) => status === "completed").length, 0);
    });

    test("a tenant with nothing old costs no long read, and no pass begins while one is under way", async (t) => {
      const { book, clock } = await openOld(t, backend);
      const { store, ...rooms } = roomsOf(book);
      let [long, turns, ended] = [0, 0, 0];
      const held = Promise.withResolvers<void>();
      const counting: typeof store = {
        ...store,
        readLong: async (statement) => (long++, store.readLong(statement)),
        readsLong: async (run) => (long++, store.readsLong(run)),
        async write(unit, options) {
          turns++;
          await held.promise;
          return store.write(unit, options).finally(() => ended++);
        },
      };
      const policy = { events: true, decisions: true } as const;

      const young = await retain({ ...rooms, store: counting }, "default", policy);
      const few = long;
      clock.step(100 * day);
      const old = await retain({ ...rooms, store: counting }, "default", policy);
      const minute = everyMinute({ ...rooms, store: counting });
      clock.step(60_000);
      await minute();
      clock.step(2 * 3_600_000);
      await minute();
      const begun = turns;
      held.resolve();
      while (ended === 0) await store.waitClock.sleep(1);

      assert.deepEqual([young.events, young.decisions, few], [0, 0, 0]);
      assert.deepEqual([old.events, old.decisions, long > 0, begun], [1, 1, true, 1]);
    });

    test("the log hears once of each pass what left, and by whose word, and of a pass that failed", async (t) => {
      const { book, clock } = await openOld(t, backend);
      const lines: LogLine[] = [];
      let heard = Promise.withResolvers<void>();
      const log = openLog((line: LogLine) => {
        lines.push(line);
        heard.resolve();
      });
      const rooms = { ...roomsOf(book), log };
      const pass = async (minute: () => Promise<void>): Promise<string> => {
        heard = Promise.withResolvers();
        clock.step(3_600_000);
        await minute();
        await heard.promise;
        return `${lines.at(-1)?.level}: ${lines.at(-1)?.message}`;
      };
      const write: typeof rooms.store.write = () => Promise.reject(new Error("no disk"));
      const [minute, failing] = [everyMinute(rooms), everyMinute({ ...rooms, store: { ...rooms.store, write } })];

      clock.step(40 * day);
      const failed = await pass(failing);
      const first = await pass(minute);
      await rooms.store.write((tx) => tx.run(rawSql(`update daybook_retention set policy = '{"decisions":"1d"}'`)));
      const said = await pass(everyMinute(rooms));

      assert.deepEqual(
        [failed, first, said],
        [
          "warn: retention failed, and is tried again: no disk",
          "warn: retention removed what is old by default (jobs: 8, calls: 1, runs: 7, events: 1)",
          "info: retention removed what is old (decisions: 1)",
        ],
      );
      assert.equal(lines.length, 3);
    });

    test("what is wrong with a policy is said before the book is opened", async (t) => {
      const { book, url } = await openTest(t, backend);
      const wrong: [object, RegExp][] = [
        [{ job: "30d" }, /unknown option "job" for retention: did you mean "jobs"\?/],
        [{ events: "soon" }, /retention\.events is "soon", which is not a duration/],
        [{ events: { olderThan: "1d" } }, /retention\.events is .*, which is not a duration/],
        [{ jobs: true }, /retention\.jobs is true: give an age such as "30d", or false to keep all/],
        [{ jobs: [] }, /retention\.jobs is an empty list: give false to keep all/],
        [{ calls: [{ queue: "calls" }] }, /retention\.calls needs "olderThan", "keep" or both/],
        [{ sizeMax: "1 GB" }, /retention\.sizeMax "1 GB" is not a whole number/],
      ];

      for (const [retention, message] of wrong) {
        await assert.rejects(open(url, { retention }), { code: "invalid", message });
      }
      await assert.rejects(book.retain({ events: "soon" }), { code: "invalid", message: /retain\.events is "soon"/ });
      await assert.rejects(book.retain({ jobs: false } as never), { code: "invalid", message: /give an age, or true/ });
      await assert.rejects(open(url, { readOnly: true, retention: {} }), { code: "invalid", message: /retention/ });
    });
  });
}
