// One row for whatever ended, with the right words; and no failure of telemetry is a failure of the work.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { manualClock } from "../../src/core/manual-clock.ts";
import { job, listener, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

async function untilRuns(book: Book, clock: ReturnType<typeof manualClock>, count: number): Promise<void> {
  while ((await book.runs.list({ limit: 500 })).items.length < count) await clock.advance(100);
}

for (const backend of backends) {
  describe(`rows of telemetry on ${backend}`, () => {
    test("each way to end leaves exactly one row, and one count", async (t) => {
      const clock = manualClock();
      const params = z.object({ n: z.number() });
      const good = job("good", { run: () => 1 });
      const bad = job("bad", { attempts: 1, run: () => Promise.reject(new RangeError("out of reach")) });
      const late = job("late", { attempts: 1, timeout: "1s", run: (_none, { signal }) => ended(signal) });
      const begun = Promise.withResolvers<void>();
      const hold = job("hold", { attempts: 1, run: (_none, { signal }) => (begun.resolve(), ended(signal)) });
      const strict = job("strict", { attempts: 1, params, run: () => 1 });
      const unsure = listener("unsure", {
        ...{ on: "x", live: true as const, run: () => undefined },
        where: () => {
          throw new Error("cannot tell");
        },
      });
      const calm = listener("calm", { on: "y", live: true, run: () => undefined });
      const { book } = await openTest(t, backend, { clock, use: [good, bad, late, hold, strict, unsure, calm] });
      await book.jobs.enqueueMany(good, [{}, {}]);
      await book.jobs.enqueue(bad, {});
      await book.jobs.enqueue(late, {});
      const held = await book.jobs.enqueue(hold, {});
      const unfit = await book.jobs.enqueue(strict, { n: 1 });
      await book.write((tx) => tx.sql`update job set params = ${'{"n":"one"}'} where id = ${unfit.id}`);
      await book.groups.create({ mode: "sequential", onFailure: "skip" }, (jobs) => {
        jobs.add(bad, {});
        jobs.add(good, {});
      });

      const worker = await book.startWorker();
      book.events.emit("x", {});
      book.events.emit("y", {});
      await begun.promise;
      await book.jobs.cancel(held.id);
      await untilRuns(book, clock, 10);
      await worker.idle();
      await worker.stop();

      const { items } = await book.runs.list({ limit: 500 });
      const ends = items.map(({ name, status, error }) => `${name} ${status} ${error?.type ?? ""}`.trim()).sort();
      assert.deepEqual(ends, [
        ...[
          "bad error RangeError",
          "bad error RangeError",
          "calm success",
          "good skipped",
          "good success",
          "good success",
        ],
        ...[
          "hold cancelled CancelledError",
          "late timed_out TimeoutError",
          "strict error DependencyError",
          "unsure error PredicateError",
        ],
      ]);
      assert.ok(items.every(({ durationMs }) => durationMs >= 0));
      while ((await book.telemetry.overview()).runs < 10) await clock.advance(1000);
      const { runs, errors, byStatus } = await book.telemetry.overview();
      assert.deepEqual([runs, errors, byStatus.skipped, byStatus.timed_out], [10, 5, 1, 1]);
    });

    test("a clock that steps back gives no negative duration", async (t) => {
      const clock = manualClock();
      const back = job("back", { run: () => clock.step(-7_200_000) });
      const heard = listener("heard", { on: "x", live: true, run: () => clock.step(-7_200_000) });
      const { book } = await openTest(t, backend, { clock, use: [back, heard] });

      await book.jobs.runNow(back);
      book.events.emit("x", {});
      await untilRuns(book, clock, 2);

      const { items } = await book.runs.list();
      assert.deepEqual(
        items.map(({ durationMs, startedAt, endedAt }) => durationMs >= 0 && endedAt >= startedAt - 1),
        [true, true],
      );
    });

    test("rollups that cannot be written delay nothing and are made up for", async (t) => {
      const clock = manualClock();
      let broken = true;
      const fault = (_moment: string, text: string): void => {
        if (broken && /insert into run_(?:rollup|series)/.test(text)) throw new Error("the disk is tired of counts");
      };
      const good = job("good", { run: () => 1 });
      const { book } = await openTest(t, backend, { clock, fault, use: [good] });
      const worker = await book.startWorker();

      await book.jobs.enqueueMany(good, [{}, {}, {}]);
      await worker.idle();
      await clock.advance(5000);
      await book.jobs.enqueue(good, {});
      await worker.idle();
      const counted = (await book.telemetry.overview()).runs;
      broken = false;
      while ((await book.telemetry.overview()).runs < 4) await clock.advance(1000);

      assert.equal(counted, 0);
      assert.equal((await book.runs.list()).items.length, 4);
      assert.equal((await book.telemetry.overview()).runs, 4);
    });
  });
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
}
