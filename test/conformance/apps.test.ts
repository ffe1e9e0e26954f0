// Apps: what their setups register, what becomes of it, and that one that fails does so alone.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { app, event, isDaybookError, job, manualClock, where, type Book, type ErrorPlace } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

const noon = Date.UTC(2026, 0, 15, 12);

async function failureOf(book: Book, key: string, instance = 0): Promise<string> {
  const { instances } = await book.apps.get(key);
  const one = instances[instance];
  assert.equal(one?.status, "failed");
  return one?.error?.message ?? "";
}

for (const backend of backends) {
  describe(`apps on ${backend}`, () => {
    test("each instance does with its own config what the setup registered, and its runs say whose they are", async (t) => {
      const clock = manualClock({ at: noon });
      const done: string[] = [];
      const Moved = event("moved", { schema: z.object({ room: z.string(), far: z.coerce.number() }) });
      const lights = app("lights", {
        config: z.object({ room: z.string(), level: z.number().default(3) }),
        instances: [{ room: "hall" }, { room: "attic", level: 1 }],
        setup(home, { room, level }) {
          const dim = home.job({ name: "dim", params: z.object({ to: z.number() }) }, ({ to }, { job: { tenant } }) => {
            done.push(`${room} dims to ${to} for ${tenant}`);
          });
          home
            .on(
              Moved,
              { name: "follow", where: (moved) => moved.room === room },
              async ({ far }, { book, event: said }) => {
                done.push(`${room}: ${said.topic} ${far}, level ${level}`);
                await book.jobs.enqueue(dim, { to: level - 1 });
              },
            )
            .daily(
              "07:00",
              { name: "morning", params: { since: new Date(noon) } },
              function open({ since }, { job: made }) {
                done.push(`${room}: morning since ${since.getTime() - noon}, ${made.schedule?.reason}`);
              },
            );
        },
      });
      const { book } = await openTest(t, backend, { use: [lights, Moved], clock });
      await book.startWorker();

      await book.events.publish(Moved, { room: "attic", far: "4" });
      await book.schedules.trigger("default/lights/0/morning");
      // The worker may be idle for a moment before the listener has made its job.
      while (done.length < 3) await clock.nextTurn();
      assert.deepEqual(done.toSorted(), [
        "attic dims to 0 for default",
        "attic: moved 4, level 1",
        "hall: morning since 0, manual",
      ]);

      const list = async (): Promise<string[]> =>
        (await book.runs.list()).items.map(
          ({ kind, app: of, registration }) => `${kind} ${of?.key}/${of?.instance} ${registration}`,
        );
      while ((await list()).length < 3) await clock.advance(50);
      assert.deepEqual((await list()).toSorted(), [
        "job lights/1 dim",
        "listener lights/1 follow",
        "schedule lights/0 morning",
      ]);
      const { instances, registrations, registered } = await book.apps.get("lights");
      assert.deepEqual(
        instances.map(({ index, status, registrations: own }) => [index, status, own]),
        [0, 1].map((index) => [index, "running", { listeners: 1, schedules: 1, jobs: 1 }]),
      );
      assert.deepEqual(registrations, { listeners: 2, schedules: 2, jobs: 2 });
      assert.deepEqual(
        registered.map(({ instance, name, kind, handler }) => [instance, name, kind, handler]),
        [0, 1].flatMap((instance) => [
          [instance, "dim", "job", "<anonymous>"],
          [instance, "follow", "listener", "<anonymous>"],
          [instance, "morning", "schedule", "open"],
        ]),
      );
      assert.deepEqual(await book.tenant("acme").apps.list(), []);
      assert.deepEqual(await book.doctor(), []);
    });

    test("an instance that throws, does not fit its schema or takes too long fails alone and says why", async (t) => {
      const clock = manualClock({ at: noon });
      const told: [string, ErrorPlace][] = [];
      const heard: number[] = [];
      const stopped: string[] = [];
      const fragile = app("fragile", {
        config: z.object({ how: z.enum(["well", "throws", "hangs"]) }),
        instances: [{ how: "throws" }, { how: "well" }, { how: "badly" as never }, { how: "hangs" }],
        timeout: "2s",
        onError: (error, place) => void told.push([error instanceof Error ? error.message : "", place]),
        async setup(home, { how }) {
          home.onStop(() => stopped.push(how));
          home.on("bell", { name: "bell" }, () => heard.push(home.instance));
          if (how === "throws") throw new Error("no lamp found");
          if (how === "hangs") await new Promise<never>(() => undefined);
        },
      });
      const other = app("other", { setup: (home) => void home.on("bell", { name: "bell" }, () => heard.push(9)) });
      const { book } = await whileTimePasses(clock, openTest(t, backend, { use: [fragile, other], clock }), 100);

      book.events.emit("bell");
      assert.deepEqual(new Set(heard), new Set([1, 9]));
      const [app0, app1] = await book.apps.list();
      assert.deepEqual(
        app0?.instances.map(({ status }) => status),
        ["failed", "running", "failed", "failed"],
      );
      assert.deepEqual(
        app1?.instances.map(({ status }) => status),
        ["running"],
      );
      assert.equal(await failureOf(book, "fragile", 0), "no lamp found");
      assert.match(await failureOf(book, "fragile", 2), /config of instance 2 of app "fragile" does not fit .*how: /);
      assert.match(await failureOf(book, "fragile", 3), /instance 3 of app "fragile" took longer than 2000 ms/);
      assert.deepEqual(stopped.toSorted(), ["hangs", "throws"]);
      assert.deepEqual(told.map(([, { instance, registration }]) => `${instance} ${registration}`).toSorted(), [
        ...[0, 2, 3].map((instance) => `${instance} null`),
      ]);
      assert.equal((await book.apps.get("fragile")).registered.length, 1);
    });

    test("registering a name twice is refused with both places, unless ifExists says what to do", async (t) => {
      const clock = manualClock({ at: noon });
      const heard: string[] = [];
      const twice = app("twice", {
        setup(home) {
          home.on("a", { name: "same" }, () => undefined);
          home.every("5m", { name: "same" }, () => undefined);
        },
      });
      const skips = app("skips", {
        instances: [{ debounce: "1s" as const }, { debounce: "2s" as const }],
        setup(home, { debounce }) {
          home.on("a", { name: "same", debounce: "1s", where: where.exists("x") }, () => undefined);
          home.on("a", { name: "same", debounce, where: where.exists("x"), ifExists: "skip" }, () => undefined);
        },
      });
      const replaces = app("replaces", {
        setup(home) {
          home.on("a", { name: "same" }, () => heard.push("first"));
          home.on("a", { name: "same", ifExists: "replace", once: true, run: () => heard.push("second") });
        },
      });
      const { book } = await openTest(t, backend, { use: [twice, skips, replaces], clock });

      const two = await failureOf(book, "twice");
      assert.match(two, /registers "same" twice: at \S*apps\.test\.ts:(\d+) and at \S*apps\.test\.ts:(\d+)/);
      const { instances } = await book.apps.get("skips");
      assert.deepEqual(
        instances.map(({ status }) => status),
        ["running", "failed"],
      );
      assert.match(await failureOf(book, "skips", 1), /other settings than at \S+: debounceMs 1000 → 2000\./);
      book.events.emit("a", {});
      assert.deepEqual(heard, ["second"]);
      const { registered } = await book.apps.get("replaces");
      assert.deepEqual(
        registered.map(({ settings }) => settings["once"]),
        [true],
      );
    });

    test("an invalid registration is refused by name, and other apps run", async (t) => {
      const clock = manualClock({ at: noon });
      const setups = [
        (home) => home.on("a", { name: "x" }, "light" as never),
        (home) => home.on("a", { name: "x" } as never),
        (home) => home.on("a", {} as never, () => undefined),
        (home) => home.on("a", undefined as never, () => undefined),
        (home) => home.on("a..b", { name: "x" }, () => undefined),
        (home) => home.on("a", { name: "x", debonce: 1 } as never, () => undefined),
        (home) => home.every("5x", { name: "x" }, () => undefined),
        (home) => home.cron("0 0 30 2 *", { name: "x" }, () => undefined),
        (home) => home.daily("07:00", { name: "x", missd: "all" } as never, () => undefined),
        (home) => home.on("a", { name: "x", ifExists: "maybe" as never }, () => undefined),
        (home) => home.on("a", { name: "x", onError: 3 as never }, () => undefined),
        (home) => home.on("a", { name: "x", tenants: "all" } as never, () => undefined),
        (home) => home.on("a", { name: "\n" }, () => undefined),
        (home) => home.job({ name: "x", attemps: 3 } as never, () => undefined),
        (home) => home.job({ name: "x" }, undefined as never),
        (home) => home.daily("07:00", { name: "x".repeat(200) }, () => undefined),
      ] satisfies Parameters<typeof app>[1]["setup"][];
      const all = setups.map((setup, index) => app(`bad-${index}`, { setup }));
      const good = app("good", { setup: (home) => void home.on("a", { name: "x" }, () => undefined) });
      const { book } = await openTest(t, backend, { use: [...all, good], clock });

      const why = await Promise.all(all.map(({ key }) => failureOf(book, key)));
      const expected = [
        /app\.on "x" of app "bad-0", instance 0, is given "light" as its handler/,
        /app\.on "x" .* is given undefined as its handler/,
        ...[
          /has no name/,
          /has no options/,
          /a\.\.b/,
          /debonce.*debounce/,
          /every is "5x"/,
          /never due|no such day|30 2/,
        ],
        ...[/missd.*missed/, /ifExists "maybe"/, /onError of "x" is 3/, /"tenants"/, /control character/],
        ...[/attemps.*attempts/, /given undefined as its handler/, /at most 200 are allowed/],
      ];
      for (const [index, pattern] of expected.entries()) assert.match(why[index] ?? "", pattern, `setup ${index}`);
      assert.equal((await book.apps.get("good")).instances[0]?.status, "running");
      assert.equal((await book.schedules.list()).items.length, 0);
    });

    test("errors go to the registration's own handler, or to the app's; a run fails all the same", async (t) => {
      const clock = manualClock({ at: noon });
      const told: unknown[] = [];
      const home = app("home", {
        onError: (error, { registration, runId }) => {
          told.push(["app", registration, describe1(error), typeof runId]);
          throw new Error("the error handler fails itself");
        },
        setup(it) {
          const boom = (): never => {
            throw new Error("boom");
          };
          const own = (error: unknown): void => void told.push(["own", describe1(error)]);
          it.on("a", { name: "own", onError: own }, boom)
            .on("a", { name: "theirs", priority: -1 }, async () => boom())
            .on("b", { name: "predicate", where: () => boom() }, () => undefined)
            .on("c", { name: "slow", timeout: "1s" }, () => new Promise(() => undefined))
            .every("1h", { name: "scheduled" }, async () => boom());
        },
      });
      const { book } = await openTest(t, backend, { use: [home], clock });
      const worker = await book.startWorker();

      for (const topic of ["a", "b", "c"]) book.events.emit(topic);
      await book.schedules.trigger("default/home/0/scheduled");
      await worker.idle();
      const list = async (): Promise<string[]> =>
        (await book.runs.list()).items.map(
          ({ registration, status, error }) => `${registration} ${status} ${error?.type}`,
        );
      while ((await list()).length < 5) await clock.advance(500);

      assert.deepEqual(told.map(String).toSorted(), [
        "app,predicate,boom,object",
        "app,scheduled,boom,string",
        "app,slow,the run took longer than its timeout of 1000 ms,string",
        "app,theirs,boom,string",
        "own,boom",
      ]);
      assert.deepEqual((await list()).toSorted(), [
        "own error Error",
        "predicate error PredicateError",
        "scheduled error Error",
        "slow timed_out TimeoutError",
        "theirs error Error",
      ]);
      assert.deepEqual(
        (await book.jobs.list()).items.map(({ status, attempt }) => [status, attempt]),
        [["failed", 1]],
      );
    });

    test("an app is stopped and loaded anew while the others work; its handlers end first, and its jobs wait", async (t) => {
      const clock = manualClock({ at: noon });
      const heard: string[] = [];
      const version = (word: string): ReturnType<typeof app> =>
        app("lamp", {
          setup(home) {
            home.onStop(() => heard.push(`${word} stopped, ${home.signal.aborted}`));
            home.on("bell", { name: "bell" }, () => heard.push(word));
            home.every("1h", { name: "hourly" }, () => heard.push(`${word} hourly`));
          },
        });
      const other = app("other", { setup: (home) => home.onStop(() => heard.push("other stopped")) });
      const { book } = await openTest(t, backend, { use: [version("one"), other], clock });
      const worker = await book.startWorker();
      const before = await book.apps.get("lamp");

      const after = await book.apps.reload(version("two"));
      book.events.emit("bell");
      await book.schedules.trigger("default/lamp/0/hourly");
      await worker.idle();
      assert.deepEqual(heard, ["one stopped, true", "two", "two hourly"]);
      assert.deepEqual(
        after.registered.map(({ id }) => id),
        before.registered.map(({ id }) => id),
      );

      await book.apps.stop("lamp");
      assert.equal(book.events.emit("bell"), 0);
      const { jobId } = await book.schedules.trigger("default/lamp/0/hourly");
      await worker.idle();
      assert.equal((await book.apps.get("lamp")).instances[0]?.status, "stopped");
      const waiting = await book.jobs.explain(jobId ?? "");
      assert.match(waiting.because.join(" "), /No running session hosts default\/lamp\/0\/hourly/);
      await book.apps.reload("lamp");
      await worker.idle();
      assert.deepEqual(heard.slice(3), ["two stopped, true", "two hourly"]);
      await assert.rejects(book.apps.reload("lmp"), /does not run the app "lmp": did you mean "lamp"\?/);
      await assert.rejects(book.tenant("acme").apps.stop("lamp"), /no apps for tenant "acme"/);
    });

    test("two tenants run the same app without hearing or running each other's", async (t) => {
      const done: string[] = [];
      const all = Promise.withResolvers<void>();
      const say = (text: string): void => void (done.push(text) === 4 && all.resolve());
      const lamp = app("lamp", {
        setup(home) {
          home.on("bell", { name: "bell" }, (_p, { tenant }) => say(`${home.tenant} hears ${tenant}`));
          // By hand only: the clock is the machine's, and an hour may be full at any time.
          home.every("520w", { name: "seldom" }, (_p, { job: { tenant } }) => say(`${home.tenant} runs ${tenant}`));
        },
      });
      const { book, url } = await openTest(t, backend, { use: [lamp] });
      const { book: acme } = await openTest(t, backend, { use: [lamp], url, tenant: "acme" });
      await book.startWorker();
      await acme.startWorker();

      book.events.emit("bell");
      acme.events.emit("bell");
      await book.schedules.trigger("default/lamp/0/seldom");
      await acme.schedules.trigger("acme/lamp/0/seldom");
      await all.promise;

      assert.deepEqual(done.toSorted(), [
        "acme hears acme",
        "acme runs acme",
        "default hears default",
        "default runs default",
      ]);
      assert.equal((await acme.apps.get("lamp")).registered.length, 2);
    });
  });
}

test("a definition of an app that makes no sense is refused at once", () => {
  const setup = (): void => undefined;
  const bad = (key: unknown, options: unknown): string => {
    try {
      app(key as never, options as never);
    } catch (error) {
      return isDaybookError(error) && error.code === "invalid" ? error.message : String(error);
    }
    return "accepted";
  };
  assert.match(bad("two words", { setup }), /app key "two words" must be/);
  assert.match(bad("a/b", { setup }), /app key/);
  assert.match(bad("a", {}), /app "a" has no setup function/);
  assert.match(bad("a", { setup, instances: {} }), /instances of app "a" are an object/);
  assert.match(bad("a", { setup, config: {} }), /config of app "a" is no schema/);
  assert.match(bad("a", { setup, timout: 1 }), /timout.*timeout/);
  assert.match(bad("a", { setup, onError: 1 }), /onError of app "a" is 1/);
});

test("two apps of one key, and a job of the name of an app's, are refused", async (t) => {
  const lamp = (): ReturnType<typeof app> =>
    app("lamp", { setup: (home) => void home.every("1h", { name: "hourly" }, () => undefined) });
  await assert.rejects(openTest(t, "sqlite", { use: [lamp(), lamp()] }), /two apps in "use" have the key "lamp"/);
  const taken = job("default/lamp/0/hourly", { run: () => undefined });
  const { book } = await openTest(t, "sqlite", { use: [lamp(), taken] });
  assert.match(await failureOf(book, "lamp"), /two jobs of this process are named "default\/lamp\/0\/hourly"/);
});

function describe1(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
