// How late a handler of an app's schedule still runs once its run was interrupted.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { app, manualClock, type App, type Book, type ManualClock } from "../../src/index.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, openTest, openTestStore, type Backend } from "../support/open-test.ts";

const noon = Date.UTC(2026, 0, 15, 12);
const minuteMs = 60_000;

type Desk = {
  readonly book: Book;
  readonly clock: ManualClock;
  /** What the handlers did. The first run of each never ends by itself. */
  readonly done: string[];
  readonly told: unknown[];
  /** Ends the run as the death of its process would. */
  lose(): Promise<void>;
  /** The status of each job, the oldest first, with why it was skipped. */
  ends(): Promise<string[]>;
};

/** A book whose schedule fired a minute after noon, and its handler began. */
async function interrupted(
  t: TestContext,
  backend: Backend,
  setup: (home: App, handler: (name: string) => () => Promise<void>) => void,
): Promise<Desk> {
  const clock = manualClock({ at: noon });
  const done: string[] = [];
  const told: unknown[] = [];
  const begun = new Set<string>();
  const first = Promise.withResolvers<void>();
  const handler = (name: string) => async (): Promise<void> => {
    if (begun.has(name)) return void done.push(name);
    begun.add(name);
    first.resolve();
    await new Promise(() => undefined);
  };
  const lamp = app("lamp", { onError: (error) => told.push(error), setup: (home) => setup(home, handler) });
  const { book, url } = await openTest(t, backend, { use: [lamp], clock });
  const { store } = await openTestStore(t, backend, { url, clock });
  await book.startWorker({ grace: "1ms" });
  await clock.advance(minuteMs);
  await first.promise;
  // What is made again waits in line, as it would while no process runs.
  await book.queues.pause("default");
  return {
    book,
    clock,
    done,
    told,
    async lose() {
      const [owner] = await store.read<{ seq: number }>(
        sql`select session_seq as seq from daybook_job_now where status = 'running'`,
      );
      await store.write((tx) => recoverSession(tx, { kinds: {} }, owner?.seq ?? 0));
    },
    async ends() {
      const { items } = await book.jobs.list();
      return items.toReversed().map(({ name, status }) => `${name.split("/").at(-1)} ${status}`);
    },
  };
}

for (const backend of backends) {
  describe(`an interrupted handler of a schedule on ${backend}`, () => {
    test("runs again as long as its slot is at most one period ago", async (t) => {
      const { book, clock, done, lose, ends } = await interrupted(t, backend, (home, handler) => {
        home.every("1m", { name: "minutely" }, handler("minutely"));
      });

      await lose();
      await clock.advance(minuteMs - 10_000);
      await book.queues.resume("default");
      while (done.length === 0) await clock.nextTurn();
      while ((await ends()).at(-1) !== "minutely completed") await clock.nextTurn();

      assert.deepEqual(await ends(), ["minutely failed", "minutely completed"]);
    });

    test("does not run again later than that: its run is skipped and says why, and nobody is told of an error", async (t) => {
      const { book, clock, done, told, lose, ends } = await interrupted(t, backend, (home, handler) => {
        home.every("1m", { name: "minutely" }, handler("minutely"));
      });

      await lose();
      await clock.advance(minuteMs + 10_000);
      await book.queues.resume("default");
      while ((await ends()).at(-1) !== "minutely skipped") await clock.nextTurn();

      assert.deepEqual([done, told], [[], []]);
      const [run] = (await book.runs.list({ status: "skipped" })).items;
      assert.deepEqual([run?.error?.type, run?.registration], ["TooLate", "minutely"]);
      assert.match(run?.error?.message ?? "", /its slot was 1m 10s ago, which is more than maxLateness/);
      assert.deepEqual(await book.doctor(), []);
    });

    test("runs again up to maxLateness where that is given; a failed try is made again however late", async (t) => {
      const { book, clock, done, lose, ends } = await interrupted(t, backend, (home, handler) => {
        home
          .every("1m", { name: "patient", maxLateness: "3m", maxFires: 1 }, handler("patient"))
          .every("1m", { name: "hasty", maxLateness: "10s", maxFires: 1 }, handler("hasty"))
          .every(
            "1m",
            { name: "fails", maxLateness: "10s", maxFires: 1, attempts: 2, backoff: ["2m"] },
            (_, context) => {
              if (context.attempt === 1) throw new Error("not yet");
              done.push("fails");
            },
          );
      });
      while (!(await ends()).includes("fails failed")) await clock.nextTurn();

      await lose();
      await clock.advance(2 * minuteMs);
      await book.queues.resume("default");
      while (done.length < 2) await clock.nextTurn();
      while (!(await ends()).includes("hasty skipped")) await clock.nextTurn();

      assert.deepEqual(done.toSorted(), ["fails", "patient"]);
    });

    test("that a person asked for runs again however late", async (t) => {
      const { book, clock, done, lose, ends } = await interrupted(t, backend, (home, handler) => {
        home.every("1m", { name: "fired", maxFires: 1 }, handler("fired"));
        home.every("1m", { name: "asked for", start: noon + 24 * minuteMs }, handler("asked for"));
      });
      await book.queues.resume("default");
      await book.schedules.trigger("default/lamp/0/asked for");
      while ((await ends()).join() !== "fired running,asked for running") await clock.nextTurn();
      await book.queues.pause("default");

      await lose();
      await clock.advance(2 * minuteMs);
      await book.queues.resume("default");
      while (!(await ends()).includes("fired skipped")) await clock.nextTurn();
      while (done.length === 0) await clock.nextTurn();

      assert.deepEqual(done, ["asked for"]);
    });

    test("that a person retried runs again however late", async (t) => {
      let tries = 0;
      const { book, clock, done, lose, ends } = await interrupted(t, backend, (home, handler) => {
        home.every("1m", { name: "fired", maxFires: 1 }, handler("fired"));
        home.every("1m", { name: "retried", maxFires: 1 }, async () => {
          tries += 1;
          if (tries === 1) throw new Error("not yet");
          await handler("retried")();
        });
      });
      await book.queues.resume("default");
      while (!(await ends()).includes("retried failed")) await clock.nextTurn();
      const [failed] = (await book.jobs.list({ status: "failed" })).items;
      await book.jobs.retry(failed?.id ?? "");
      while (!(await ends()).includes("retried running")) await clock.nextTurn();
      await book.queues.pause("default");

      await lose();
      await clock.advance(2 * minuteMs);
      await book.queues.resume("default");
      while ((await ends()).filter((end) => / (skipped|completed)$/.test(end)).length < 2) await clock.nextTurn();

      assert.deepEqual(done, ["retried"]);
    });
  });
}
