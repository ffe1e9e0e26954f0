// A copy of a book does nothing that the original may do, until somebody says so.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import {
  job,
  listener,
  manualClock,
  open,
  schedule,
  sink,
  type Book,
  type ManualClock,
  type OpenOptions,
} from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { target, testKey, workAll, type Target } from "../calls/target.ts";
import { backends, cleanup, openTest, openTestStore, type Backend } from "../support/open-test.ts";

const noon = Date.UTC(2026, 0, 15, 12);
const hour = 3_600_000;

type Shop = {
  readonly copy: Book;
  readonly clock: ManualClock;
  readonly url: string;
  readonly options: OpenOptions;
  /** What ran since the book was marked, by name. */
  readonly ran: string[];
  readonly server: Target;
};

/** A book in which something of every kind is open, marked as a copy and opened again. */
async function openCopy(
  t: TestContext,
  backend: Backend,
  more: (book: Book) => Promise<unknown> = async () => undefined,
): Promise<Shop> {
  const ran: string[] = [];
  const tells =
    (name: string): (() => void) =>
    () =>
      void ran.push(name);
  const work = job<{ n?: number }>("work", { run: tells("work") });
  const grouped = job<{ n: number }>("grouped", { attempts: 1, run: ({ n }) => void ran.push(`grouped ${n}`) });
  const hears = listener("hears", { on: "said", run: tells("hears") });
  const replays = listener("replays", { on: "said", from: "beginning", run: tells("replays") });
  const hourly = schedule("hourly", { cron: "0 * * * *", job: work, params: {}, missed: "all" });
  const server = await target(t);
  const clock = manualClock({ at: noon + 1 });
  const calls = { key: testKey, allow: ["127.0.0.0/8"] };
  const options = { clock, calls, use: [work, grouped, hears, hourly] };
  const { book, url } = await openTest(t, backend, options);
  await book.jobs.enqueue(work, {});
  await book.jobs.enqueue(work, {}, { in: "2h", key: "later" });
  await book.tenant("acme").jobs.enqueue(work, {});
  await book.groups.create({ mode: "sequential", onFailure: "continue" }, (group) => {
    group.add(grouped, { n: 1 });
    group.add(grouped, { n: 2 });
  });
  await book.events.publish("said", { n: 1 });
  await book.calls.submit({ url: server.url });
  await book.schedules.trigger("hourly");
  await more(book);
  await book.close();
  // Who listens from the beginning is brought there by a job.
  const all = { ...options, use: [...options.use, replays] };
  await (await open(url, all)).close();
  const marked = await open(url, { attach: false, worker: false, clock });
  await marked.markAsCopy();
  await marked.close();
  const copy = await open(url, all);
  cleanup(t, () => copy.close());
  return { copy, clock, url, options: all, ran, server };
}

const counts = async (book: Book): Promise<object> => {
  const { jobs, schedules } = await book.held();
  return {
    ...Object.fromEntries(jobs.map(({ tenant, kind, count }) => [`${tenant} ${kind}`, count])),
    ...Object.fromEntries(schedules.map(({ tenant, count }) => [`${tenant} schedules`, count])),
  };
};

const all = (jobs: readonly { readonly count: number }[]): number => jobs.reduce((sum, { count }) => sum + count, 0);

const sorted = (all: readonly string[]): string[] => all.toSorted();

const everything = {
  "acme job": 1,
  "default call": 1,
  "default catch_up": 1,
  "default delivery": 1,
  "default job": 4,
  "default schedule": 1,
  "default schedules": 1,
};

for (const backend of backends) {
  describe(backend, () => {
    test("a copy claims no job of any kind and fires nothing, but does what is asked of it", async (t) => {
      const { copy, clock, url, ran, server } = await openCopy(t, backend);
      const { store } = await openTestStore(t, backend, { url, clock });

      assert.deepEqual(await counts(copy), everything);
      clock.step(3 * hour);
      await fireAll(store);
      await workAll(copy);
      assert.deepEqual([ran, server.received], [[], []]);
      assert.deepEqual(await counts(copy), everything);
      assert.deepEqual(await copy.doctor(), []);

      await copy.jobs.enqueue("work", {});
      await copy.write((tx) => tx.sql`create table note (body text)`);
      await workAll(copy);
      assert.deepEqual([ran, server.received], [["work"], []]);
    });

    test("a worker that is warm passes by what is held", async (t) => {
      const { copy, ran } = await openCopy(t, backend, (book) =>
        book.jobs.enqueueMany(
          "work",
          Array.from({ length: 20 }, () => ({})),
          { priority: 10 },
        ),
      );
      const before = await counts(copy);
      const worker = await copy.startWorker();
      await worker.idle();

      for (let round = 1; round <= 5; round++) {
        await Promise.all(Array.from({ length: 30 }, () => copy.jobs.enqueue("work", {})));
        await worker.idle();
        assert.equal(ran.length, round * 30);
      }

      await worker.stop();
      assert.deepEqual(await counts(copy), before);
    });

    test("what is held says so, with when it was made", async (t) => {
      const { copy } = await openCopy(t, backend);
      const { jobs } = await copy.held({ kind: "job", tenant: "acme" });
      const [held] = (await copy.tenant("acme").jobs.list()).items;

      const explained = await copy.tenant("acme").jobs.explain(held?.id ?? "");

      assert.deepEqual(jobs, [
        { tenant: "acme", kind: "job", count: 1, behind: 0, oldestAt: noon + 1, newestAt: noon + 1 },
      ]);
      assert.deepEqual([held?.status, held?.waitsFor, explained.reason], ["waiting", "release", "held"]);
      assert.match(explained.because[0] ?? "", /open when this book was copied.*"daybook release".*or drops it/);
      assert.equal((await copy.schedules.get("hourly")).held, true);
      assert.equal((await copy.schedules.get("hourly")).nextAt, null);
    });

    for (const [kind, goes] of [
      ["job", ["grouped 1", "grouped 2", "work", "work"]],
      ["delivery", ["hears"]],
      ["catch_up", ["replays"]],
      ["schedule", ["work"]],
      ["call", []],
    ] as const) {
      test(`released by kind, exactly each ${kind} goes out`, async (t) => {
        const { copy, ran, server } = await openCopy(t, backend);

        const dry = await copy.release({ kind, dryRun: true });
        assert.deepEqual(await counts(copy), everything);
        await copy.release({ kind });
        await workAll(copy);

        assert.deepEqual(sorted(ran), goes);
        assert.equal(server.received.length, kind === "call" ? 1 : 0);
        const left = Object.entries(everything).filter(([name]) => !name.endsWith(` ${kind}`));
        const schedules = left.filter(([name]) => kind !== "schedule" || name !== "default schedules");
        assert.deepEqual(await counts(copy), Object.fromEntries(schedules));
        const named = Object.entries(everything).filter(([name]) => name.endsWith(` ${kind}`));
        assert.equal(
          dry.jobs,
          named.reduce((sum, [, count]) => sum + count, 0),
        );
        assert.deepEqual(await copy.doctor(), []);
      });
    }

    test("released by tenant or by age, what was named goes out, and the rest with the last release", async (t) => {
      const { copy, clock, ran, server } = await openCopy(t, backend, async (book) =>
        book.jobs.enqueue("work", { n: 2 }),
      );
      await copy.release({ tenant: "acme" });
      await workAll(copy);
      assert.deepEqual(ran, ["work"]);

      clock.step(hour);
      assert.equal((await copy.release({ newerThan: "30m" })).jobs, 0);
      assert.equal((await copy.release({ kind: "job", olderThan: "30m" })).jobs, 5);
      await workAll(copy);
      assert.equal(ran.length, 5);
      assert.equal(server.received.length, 0);

      assert.deepEqual(await copy.release(), { dryRun: false, dropped: false, jobs: 4, behind: 0, schedules: 1 });
      await workAll(copy);
      assert.equal(server.received.length, 1);
      assert.deepEqual(await counts(copy), {});
      assert.deepEqual(await copy.release(), { dryRun: false, dropped: false, jobs: 0, behind: 0, schedules: 0 });
      await copy.schedules.pause("hourly");
      clock.step(hour);
      await workAll(copy);
      assert.deepEqual(ran.filter((name) => name === "work").length, 5, "the job whose time has come has run");
    });

    test("released schedules pass by what was due, and fire from then on", async (t) => {
      const { copy, clock, url } = await openCopy(t, backend);
      const { store } = await openTestStore(t, backend, { url, clock });
      clock.step(3 * hour);
      await copy.schedules.pause("hourly");
      await copy.schedules.resume("hourly");
      await fireAll(store);
      assert.equal((await copy.schedules.get("hourly")).nextAt, null, "to resume it is not to release it");

      await copy.release({ kind: "schedule" });
      await fireAll(store);
      await workAll(copy);
      const before = (await copy.schedules.decisions("hourly")).items.map(({ kind }) => kind);
      clock.step(hour);
      await fireAll(store);

      const after = (await copy.schedules.decisions("hourly")).items.map(({ kind }) => kind);
      assert.deepEqual(before, ["skipped_missed", "manual"]);
      assert.deepEqual(after, ["fired", ...before]);
      assert.deepEqual(await copy.doctor(), []);
    });

    test("what is dropped never runs, and schedules are left to be released", async (t) => {
      const { copy, ran, server } = await openCopy(t, backend);

      assert.deepEqual(await copy.release({ drop: true, dryRun: true }), {
        dryRun: true,
        dropped: true,
        jobs: 9,
        behind: 1,
        schedules: 0,
      });
      await copy.release({ drop: true, kind: "call" });
      assert.equal((await copy.calls.list()).items[0]?.status, "cancelled");
      await copy.release({ drop: true });

      assert.deepEqual(await counts(copy), { "default schedules": 1 });
      await workAll(copy);
      assert.deepEqual([ran, server.received], [[], []]);
      assert.deepEqual(await copy.doctor(), []);
    });

    test("a drop in a copy tells nobody: no webhook of a notice, no sink and no listener", async (t) => {
      const server = await target(t);
      const told: string[] = [];
      const webhook = { url: server.url };
      const noted = job("noted", { notify: { on: ["cancelled"], webhook }, run: () => undefined });
      const on = ["job.cancelled", "call.cancelled"];
      const use = [
        noted,
        sink("outside", { on, to: { webhook } }),
        listener("inside", { on, run: (_said, { event: { topic } }) => void told.push(topic) }),
      ];
      const calls = { key: testKey, allow: ["127.0.0.0/8"] };
      const { book, url } = await openTest(t, backend, { calls, use });
      for (const _each of [1, 2]) await book.jobs.enqueue(noted, {});
      const { id: asked } = await book.jobs.enqueue(noted, {});
      await book.groups.create({ mode: "parallel", notify: { on: ["cancelled"], webhook } }, (group) => {
        group.add(noted, {});
      });
      await book.calls.submit({ url: server.url });
      await book.close();
      const marked = await open(url, { attach: false, worker: false });
      await marked.markAsCopy();
      await marked.close();
      const copy = await open(url, { calls, use });
      cleanup(t, () => copy.close());

      await copy.release({ drop: true });
      await workAll(copy);

      assert.deepEqual([server.received, told, (await copy.events.list()).items], [[], [], []]);
      assert.equal((await copy.jobs.get(asked)).status, "cancelled");
      assert.deepEqual(
        (await copy.calls.list()).items.map(({ status }) => status),
        ["cancelled"],
      );
      const { id: own } = await copy.jobs.enqueue(noted, {}, { in: "1h" });
      await copy.jobs.cancel(own);
      await workAll(copy);
      assert.deepEqual([server.received.length, told], [2, ["job.cancelled"]], "what is the copy's own is told");
      assert.deepEqual(await copy.doctor(), []);
    });

    test("who stands behind a held job is held when that is cancelled", async (t) => {
      const { copy, ran } = await openCopy(t, backend);
      const jobs = (await copy.jobs.list({ name: "grouped" })).items;
      const first = jobs.find(({ waitsFor }) => waitsFor === "release");

      await copy.jobs.cancel(first?.id ?? "");
      await workAll(copy);

      assert.deepEqual(ran, []);
      assert.equal((await copy.held({ kind: "job" })).jobs.find(({ tenant }) => tenant === "default")?.count, 3);
      assert.deepEqual(await copy.doctor(), []);
      await copy.release({ kind: "job" });
      await workAll(copy);
      assert.deepEqual(sorted(ran), ["grouped 2", "work", "work"]);
    });

    for (const drop of [false, true]) {
      test(`what a dry run says is what is ${drop ? "dropped" : "released"}, with those who stand behind another`, async (t) => {
        const { copy, clock } = await openCopy(t, backend, async (book) => {
          const queued = { cron: "30 * * * *", job: "work", params: {}, overlap: "queue" } as const;
          await book.schedules.create("queued", queued);
          for (let fires = 0; fires < 3; fires++) await fireNext(book);
          for (const onFailure of ["stop", "skip"] as const) {
            await book.groups.create({ mode: "sequential", onFailure }, (group) => {
              for (let n = 10; n < 13; n++) group.add("grouped", { n });
            });
          }
        });
        clock.step(10);
        const filters = [{ newerThan: "90m" }, { kind: "schedule", olderThan: "1h" }, { kind: "job" }, {}] as const;
        for (const filter of filters) {
          const before = await copy.held();
          const dry = await copy.release({ ...filter, drop, dryRun: true });
          const done = await copy.release({ ...filter, drop });

          assert.deepEqual(done, { ...dry, dryRun: false }, JSON.stringify(filter));
          const left = (await copy.held()).jobs;
          assert.equal(done.jobs, all(before.jobs) - all(left), JSON.stringify(filter));
        }
        assert.deepEqual((await copy.held()).jobs, []);
        assert.deepEqual(await copy.doctor(), []);

        async function fireNext(book: Book): Promise<void> {
          const { store } = roomsOf(book);
          (store.clock as ManualClock).step(hour);
          await fireAll(store);
        }
      });
    }

    test("a book that a process works on is not marked, whoever asks", async (t) => {
      const { book, url } = await openTest(t, backend);
      await book.schedules.create("hourly", { cron: "0 * * * *", event: "said" });
      const asking = await open(url, { attach: false, worker: false });
      cleanup(t, () => asking.close());

      await assert.rejects(asking.markAsCopy(), {
        code: "conflict",
        message: new RegExp(
          `session ${book.sessionId} \\(process ${process.pid} on .*stop it first, or, if this is the original`,
        ),
      });
      assert.deepEqual(await book.held(), { jobs: [], schedules: [] });
      assert.equal((await book.sessions.list()).items[0]?.status, "running");
    });

    test("a held job that is replaced by its key stays held", async (t) => {
      const { copy, ran } = await openCopy(t, backend);

      const again = await copy.jobs.enqueue("work", { n: 7 }, { key: "later", onConflict: "replace" });

      await workAll(copy);
      assert.deepEqual([again.created, again.status, ran], [false, "waiting", []]);
      await copy.release({ kind: "job", tenant: "default" });
      await workAll(copy);
      assert.deepEqual(sorted(ran), ["grouped 1", "grouped 2", "work", "work"]);
    });

    test("what is no object of options, or no true or false, releases, drops and mends nothing", async (t) => {
      const { copy, ran } = await openCopy(t, backend);
      const before = await copy.held();
      const shapeless = [null, "call", 1, true, [], new Map([["kind", "call"]]), Promise.resolve({ kind: "call" })];

      for (const given of shapeless) {
        for (const verb of ["held", "release", "mend"] as const) {
          await assert.rejects(copy[verb](given as never), {
            code: "invalid",
            message: /give a plain object|await it first/,
          });
        }
      }
      for (const given of [{ drop: "no" }, { dryRun: "no" }, { dryRun: null }]) {
        await assert.rejects(copy.release(given as never), { code: "invalid", message: /: true or false$/ });
      }
      await assert.rejects(copy.mend({ dryRun: 1 } as never), {
        code: "invalid",
        message: "dryRun is 1: true or false",
      });

      await workAll(copy);
      assert.deepEqual([await copy.held(), ran], [before, []]);
    });

    test("a book that somebody works on is not marked, and what is no kind is refused", async (t) => {
      const { book } = await openTest(t, backend);

      await assert.rejects(book.markAsCopy(), { code: "invalid", message: /open it with attach: false/ });
      await assert.rejects(book.release({ kind: "mail" as never }), {
        code: "invalid",
        message: /kind "mail" is not known/,
      });
      await assert.rejects(book.held({ knd: "job" } as never), { code: "invalid", message: /did you mean "kind"\?/ });
      assert.deepEqual(await book.held(), { jobs: [], schedules: [] });
    });
  });
}
