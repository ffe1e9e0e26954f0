// What is kept of registrations from one start of a program to the next.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { app, manualClock } from "../../src/index.ts";
import type { AnyApp, App, AppInstance, Book, Job, ManualClock } from "../../src/index.ts";
import { backends, bookUrl, openTest, type Backend } from "../support/open-test.ts";
import { until, whileTimePasses } from "../support/session-row.ts";
import { tamper } from "../support/tamper.ts";

const noon = Date.UTC(2026, 0, 15, 12);

type Desk = { readonly clock: ManualClock; start(use: readonly AnyApp[], tenant?: string): Promise<Book> };

async function desk(t: TestContext, backend: Backend): Promise<Desk> {
  const url = await bookUrl(t, backend);
  const clock = manualClock({ at: noon });
  return {
    clock,
    start: async (use, tenant = "default") => (await openTest(t, backend, { use, clock, url, tenant })).book,
  };
}

/** Lets the bell be heard and the schedules be fired, and waits until all that is in the book. */
async function act(book: Book, clock: ManualClock, schedules: readonly string[], runs: number): Promise<void> {
  const worker = await book.startWorker();
  book.events.emit("bell");
  for (const name of schedules) await book.schedules.trigger(name);
  await worker.idle();
  while ((await book.runs.list()).items.length < runs) await clock.advance(50);
}

async function registered(book: Book, key: string): Promise<[name: string, isRetired: boolean][]> {
  return (await book.apps.get(key)).registered.map(({ name, retiredAt }) => [name, retiredAt !== null]);
}

const home = (setup: (it: App) => void, instances?: readonly Record<string, never>[]): AnyApp =>
  app("home", { setup, ...(instances === undefined ? {} : { instances }) });

for (const backend of backends) {
  describe(`registrations on ${backend}`, () => {
    test("keep their id, history and first day; a renamed one is retired, and one that never ran is removed", async (t) => {
      const { clock, start } = await desk(t, backend);
      const first = await start([
        home((it) => {
          it.on("bell", { name: "bell", debounce: "1s" }, () => undefined);
          it.every("1h", { name: "hourly" }, () => undefined);
          it.on("bell", { name: "renamed" }, () => undefined);
          it.every("2h", { name: "renamed too" }, () => undefined);
          it.on("bell", { name: "never ran", once: true, where: () => false }, () => undefined);
          it.every("3h", { name: "never fired" }, () => undefined);
        }),
      ]);
      const before = await first.apps.get("home");
      await act(first, clock, ["default/home/0/hourly", "default/home/0/renamed too"], 4);
      await first.close();
      clock.step(60_000);

      const second = await start([
        home((it) => {
          it.on(["bell", "gong"], { name: "bell", throttle: "5s" }, function ring() {});
          it.daily("07:00", { name: "hourly" }, () => undefined);
          it.on("bell", { name: "by another name" }, () => undefined);
        }),
      ]);

      const after = await second.apps.get("home");
      assert.deepEqual(await registered(second, "home"), [
        ["bell", false],
        ["by another name", false],
        ["hourly", false],
        ["renamed", true],
        ["renamed too", true],
      ]);
      const [oldBell, bell] = [before, after].map((one) => one.registered.find(({ name }) => name === "bell"));
      assert.ok(oldBell !== undefined && bell !== undefined);
      assert.deepEqual([bell.id, bell.firstRegisteredAt], [oldBell.id, oldBell.firstRegisteredAt]);
      assert.ok(bell.lastRegisteredAt >= oldBell.lastRegisteredAt + 60_000);
      assert.deepEqual(
        [bell.handler, bell.settings["topic"], bell.settings["debounceMs"], bell.settings["throttleMs"]],
        [...["ring", "bell, gong", null, 5000]],
      );
      const schedules = (await second.schedules.list()).items.map(({ name, words }) => [name, words]);
      assert.deepEqual(schedules, [["default/home/0/hourly", "every day at 07:00 (UTC)"]]);
      const runs = (await second.runs.list()).items.map(({ registration }) => registration);
      assert.deepEqual(new Set(runs), new Set(["bell", "hourly", "renamed", "renamed too"]));
      assert.deepEqual(await second.doctor(), []);
    });

    test("are not touched by a setup that fails, and come back when they are registered again", async (t) => {
      const { clock, start } = await desk(t, backend);
      const good = home((it) => {
        it.on("bell", { name: "bell" }, () => undefined);
        it.every("1h", { name: "hourly" }, () => undefined);
      });
      const first = await start([good]);
      const ids = (await first.apps.get("home")).registered.map(({ id }) => id);
      await act(first, clock, ["default/home/0/hourly"], 2);

      await first.apps.reload(
        home((it) => {
          it.on("bell", { name: "another" }, () => undefined);
          throw new Error("no");
        }),
      );
      assert.deepEqual(await registered(first, "home"), [
        ["bell", false],
        ["hourly", false],
      ]);
      await first.apps.reload(home(() => undefined));
      assert.deepEqual(await registered(first, "home"), [
        ["bell", true],
        ["hourly", true],
      ]);
      assert.deepEqual((await first.schedules.list()).items, []);
      await first.apps.reload(good);

      const { registered: again } = await first.apps.get("home");
      assert.deepEqual(
        again.map(({ id, retiredAt }) => [id, retiredAt]),
        ids.map((id) => [id, null]),
      );
      assert.equal((await first.schedules.list()).items.length, 1);
    });

    test("that are schedules cancel their unstarted jobs when they retire; enqueued jobs wait", async (t) => {
      const { start } = await desk(t, backend);
      const made: Job<object>[] = [];
      const two = home(
        (it) => {
          it.every("1h", { name: "hourly" }, () => undefined);
          it.every("1h", { name: "kept" }, () => undefined);
          made.push(it.job({ name: "asked for" }, () => undefined));
        },
        [{}, {}],
      );
      const book = await start([two]);
      for (const name of ["0/hourly", "0/kept", "1/hourly"]) await book.schedules.trigger(`default/home/${name}`);
      for (const each of made) await book.jobs.enqueue(each, {});

      await book.apps.reload(home((it) => void it.every("1h", { name: "kept" }, () => undefined)));

      const { items } = await book.jobs.list();
      assert.deepEqual(items.map(({ name, status }) => `${name} ${status}`).toSorted(), [
        "default/home/0/asked for queued",
        "default/home/0/hourly cancelled",
        "default/home/0/kept queued",
        "default/home/1/asked for queued",
        "default/home/1/hourly cancelled",
      ]);
      assert.deepEqual(await registered(book, "home"), [["kept", false]]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("have a history as soon as they have acted, before their runs are written", async (t) => {
      const { start } = await desk(t, backend);
      const book = await start([
        home((it) => {
          it.on("bell", { name: "heard" }, () => undefined);
          it.on("bell", { name: "asked in vain", where: () => assert.fail("no") }, () => undefined);
          it.on("gong", { name: "silent" }, () => undefined);
        }),
      ]);
      book.events.emit("bell");

      await book.apps.reload(home(() => undefined));

      assert.deepEqual(await registered(book, "home"), [
        ["asked in vain", true],
        ["heard", true],
      ]);
    });

    test("show an app as running when its session was taken for dead and goes on under a new one", async (t) => {
      const { clock, start } = await desk(t, backend);
      const book = await start([home((it) => void it.on("bell", { name: "bell" }, () => undefined))]);
      const before = book.sessionId;
      await tamper(
        book,
        (tx) =>
          tx.sql`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where id = ${before}`,
      );

      const replaced = until("it has another session", async () => book.sessionId !== before || undefined);
      await whileTimePasses(clock, replaced, 1000);
      const one = async (): Promise<AppInstance | undefined> => (await book.apps.get("home")).instances[0];
      while ((await one())?.sessionId === before) await clock.advance(100);

      assert.equal((await one())?.status, "running");
      await book.apps.stop("home");
      assert.equal((await one())?.status, "stopped");
    });

    test("of a removed instance are retired; another tenant's stay; a name may become another kind", async (t) => {
      const { clock, start } = await desk(t, backend);
      const two = home(
        (it) => {
          it.on("bell", { name: "bell" }, () => undefined);
          it.every("1h", { name: "thing" }, () => undefined);
        },
        [{}, {}],
      );
      const theirs = await start([two], "acme");
      await theirs.close();
      const book = await start([two]);
      await act(book, clock, ["default/home/1/thing"], 3);

      await book.apps.reload(home((it) => void it.on("bell", { name: "thing" }, () => undefined)));

      const { instances, registered: all } = await book.apps.get("home");
      assert.deepEqual(
        instances.map(({ index }) => index),
        [0],
      );
      assert.deepEqual(
        all.map(({ instance, name, kind, retiredAt }) => [instance, name, kind, retiredAt !== null]),
        [
          [0, "bell", "listener", true],
          [0, "thing", "listener", false],
          [1, "bell", "listener", true],
          [1, "thing", "schedule", true],
        ],
      );
      assert.deepEqual((await book.schedules.list()).items, []);
      const acme = book.tenant("acme");
      assert.equal((await acme.apps.get("home")).registered.length, 4);
      assert.equal((await acme.schedules.list()).items.length, 2);
      assert.equal((await acme.apps.get("home")).instances[0]?.status, "stopped");
    });
  });
}

test("postgres: two processes that set up the same app at the same moment end with one set of registrations", async (t) => {
  const url = await bookUrl(t, "postgres");
  const lamp = (): AnyApp =>
    app("lamp", {
      instances: [{}, {}, {}],
      setup(it) {
        for (const name of ["a", "b", "c", "d"]) {
          it.every("1h", { name: `every ${name}` }, () => undefined).on(
            "bell",
            { name: `on ${name}` },
            () => undefined,
          );
        }
      },
    });

  const books = await Promise.all([1, 2, 3].map(() => openTest(t, "postgres", { url, use: [lamp()] })));

  for (const { book } of books) {
    const { instances, registered: all } = await book.apps.get("lamp");
    assert.deepEqual(
      instances.map(({ status, error }) => [status, error]),
      Array(3).fill(["running", null]),
    );
    assert.equal(all.length, 24);
    assert.equal((await book.schedules.list()).items.length, 12);
    assert.deepEqual(await book.doctor(), []);
  }
});
