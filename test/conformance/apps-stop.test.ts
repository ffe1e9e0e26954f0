// What becomes of what runs and waits when an app is stopped or set up anew, and when its book is closed.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { limits } from "../../src/core/limits.ts";
import { app, job, listener, manualClock, where, type Book, type RunRecord } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const runsOf = async (book: Book): Promise<readonly RunRecord[]> => (await book.runs.list({ limit: 100 })).items;

/** Ends when its signal is aborted. */
function obeys(_given: unknown, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
}

for (const backend of backends) {
  describe(`a stop on ${backend}`, () => {
    test("aborts what runs of the app, also of a schedule; its job is made again and waits for a process that runs the app", async (t) => {
      const clock = manualClock();
      const begun = Promise.withResolvers<void>();
      const others = Promise.withResolvers<void>();
      const lamp = app("lamp", {
        setup(home) {
          home.on("bell", { name: "ear" }, obeys).every("1h", { name: "hourly" }, (given, context) => {
            begun.resolve();
            return obeys(given, context);
          });
        },
      });
      const calm = job("calm", { run: () => others.promise });
      const { book } = await openTest(t, backend, { use: [lamp, calm], clock });
      const worker = await book.startWorker();
      const { jobId } = await book.schedules.trigger("default/lamp/0/hourly");
      const other = await book.jobs.enqueue(calm);
      book.events.emit("bell");
      await begun.promise;

      assert.deepEqual(await book.apps.stop("lamp"), { pending: [] });
      others.resolve();
      await worker.idle();

      const { items } = await book.jobs.list();
      const again = items.find(({ retryOf }) => retryOf === jobId);
      assert.deepEqual([again?.status, again?.attempt], ["waiting", 1]);
      assert.match((await book.jobs.explain(again?.id ?? "")).because.join(" "), /No running session hosts/);
      assert.equal((await book.jobs.get(other.id)).status, "completed");
      while ((await runsOf(book)).length < 3) await clock.advance(100);
      assert.deepEqual((await runsOf(book)).map(({ registration, status }) => `${registration} ${status}`).toSorted(), [
        "ear cancelled",
        "hourly cancelled",
        "null success",
      ]);
    });

    test("waits once for handlers that ignore their signal, whatever they are of", async (t) => {
      const clock = manualClock();
      const deaf = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const lamp = app("lamp", {
        setup(home) {
          home
            .on("bell", { name: "ear" }, () => deaf.promise)
            .every("1h", { name: "hourly" }, () => {
              begun.resolve();
              return deaf.promise;
            });
        },
      });
      const { book } = await openTest(t, backend, { use: [lamp], clock });
      await book.startWorker();
      await book.schedules.trigger("default/lamp/0/hourly");
      book.events.emit("bell");
      await begun.promise;

      const timers = t.mock.method(clock, "after").mock;
      const waits = (): number =>
        timers.calls.filter(({ arguments: [ms, , options] }) => ms === limits.appStopMs && options?.keepAlive === true)
          .length;
      const stopping = book.apps.stop("lamp");
      // One for the listener and one for the app as a whole, which begin together.
      while (waits() < 2) await systemClock.nextTurn();
      await clock.advance(limits.appStopMs);
      await stopping;
      deaf.resolve();

      assert.equal(waits(), 2);
    });

    test("says which events waited for their time; each of them is a run that was skipped", async (t) => {
      const clock = manualClock();
      const still = where.equals("moving", false);
      const lamp = app("lamp", {
        instances: [{}, {}],
        setup(home) {
          if (home.instance === 1) return;
          home
            .on("motion.*", { name: "off", debounce: "5m" }, () => undefined)
            .on("door.*", { name: "left open", where: still, for: "10m" }, () => undefined)
            .on("bell", { name: "one by one", mode: "queued" }, obeys)
            .on("motion.hall", { name: "on" }, () => undefined);
        },
      });
      const { book } = await openTest(t, backend, { use: [lamp], clock });
      const say = (): void => {
        for (const topic of ["motion.attic", "motion.hall", "door.front", "door.back", "bell", "bell", "bell"]) {
          book.events.emit(topic, { moving: false });
        }
      };

      say();
      const { pending, instances } = await book.apps.reload("lamp");

      assert.equal(instances.length, 2);
      assert.deepEqual(
        pending.map(({ instance, name, topic, waits, events }) => [instance, name, topic, waits, events].join(" ")),
        [
          "0 off motion.hall debounce 1",
          "0 left open door.front for 1",
          "0 left open door.back for 1",
          "0 one by one bell mode 2",
        ],
      );
      const skipped = async (): Promise<RunRecord[]> =>
        (await runsOf(book)).filter(({ status }) => status === "skipped");
      while ((await skipped()).length < 3) await clock.advance(100);
      assert.deepEqual(
        (await skipped()).map(({ registration, event }) => `${registration} ${event?.topic}`).toSorted(),
        ["left open door.back", "left open door.front", "off motion.hall"],
      );
      const [one] = await skipped();
      assert.match(one?.error?.message ?? "", /stopped while the event waited \((for|debounce)\)/);
      assert.deepEqual((await book.apps.stop("lamp")).pending, []);
    });

    test("closing the book aborts live handlers while a job still drains, and keeps what waited as skipped", async (t) => {
      const clock = manualClock();
      const begun = Promise.withResolvers<void>();
      const aborted = Promise.withResolvers<void>();
      const ear = listener("ear", {
        live: true,
        on: "bell",
        run: (_bell: unknown, { signal }) => {
          signal.addEventListener("abort", () => aborted.resolve());
          return obeys(undefined, { signal });
        },
      });
      const later = listener("later", { live: true, on: "bell", debounce: "5m", run: () => undefined });
      const drains = job("drains", {
        async run(_none: unknown, { book }) {
          begun.resolve();
          await aborted.promise;
          return book.events.emit("bell");
        },
      });
      const { book, url } = await openTest(t, backend, { use: [ear, later, drains], clock });
      await book.startWorker();
      const { id } = await book.jobs.enqueue(drains);
      book.events.emit("bell");
      await begun.promise;

      await book.close();

      const { book: after } = await openTest(t, backend, { url, clock, worker: false });
      assert.deepEqual([(await after.jobs.get(id)).status, await after.jobs.result(id)], ["completed", 0]);
      assert.deepEqual((await runsOf(after)).map(({ name, status }) => `${name} ${status}`).toSorted(), [
        "drains success",
        "ear cancelled",
        "later skipped",
      ]);
    });
  });
}
