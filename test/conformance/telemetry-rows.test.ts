// One row for whatever ended, with the right words; and no failure of telemetry is a failure of the work.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { z } from "zod";
import { limits } from "../../src/core/limits.ts";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { job, listener, type Book } from "../../src/index.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { setLimit } from "../support/limit.ts";
import { tamper } from "../support/tamper.ts";

async function untilRuns(book: Book, clock: ManualClock, count: number): Promise<void> {
  while ((await book.runs.list({ limit: 500 })).items.length < count) await clock.advance(100);
}

/** Two that have one file open get in each other's way, and then wait by the clock. */
async function moving(clock: ManualClock, work: Promise<unknown>): Promise<void> {
  let done = false;
  const end = (): void => void (done = true);
  work.then(end, end);
  while (!done) await clock.advance(100);
  await work;
}

/** PostgreSQL counts what it keeps, and it keeps text that repeats itself in little. */
function noise(length: number): string {
  const digest = (_: unknown, n: number): string => createHash("sha256").update(`${n}`).digest("base64");
  return Array.from({ length: length / 44 }, digest).join("");
}

for (const backend of backends) {
  describe(`rows of telemetry on ${backend}`, () => {
    test("a page of runs with large results ends where it is full, and its cursor continues without a gap", async (t) => {
      setLimit(t, "pageBytesMax", 200_000);
      const large = job("large", { run: ({ n }: { n: number }) => ({ n, text: noise(60_000) }) });
      const { book } = await openTest(t, backend, { use: [large] });
      await book.jobs.enqueueMany(
        large,
        Array.from({ length: 8 }, (_, n) => ({ n })),
      );
      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      const sizes: number[] = [];
      const found: unknown[] = [];
      for (let after: string | undefined; ;) {
        const page = await book.runs.list({ name: "large", limit: 7, ...(after === undefined ? {} : { after }) });
        sizes.push(page.items.length);
        found.push(...page.items.map(({ result }) => (result as { n: number }).n));
        if (page.next === null) break;
        after = page.next;
      }

      assert.deepEqual(found, [7, 6, 5, 4, 3, 2, 1, 0]);
      assert.ok(
        sizes.every((size) => size >= 1 && size <= 3),
        `${sizes.join(", ")} items`,
      );
    });

    test("every way a run can end leaves one row with its status, and one count", async (t) => {
      const clock = manualClock();
      const params = z.object({ n: z.number() });
      const good = job("good", { run: () => 1 });
      const bad = job("bad", { attempts: 1, run: () => Promise.reject(new RangeError("out of reach")) });
      const late = job("late", { attempts: 1, timeout: "1s", run: (_none, { signal }) => ended(signal) });
      const [begun, begunAgain] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const hold = job("hold", { attempts: 1, run: (_none, { signal }) => (begun.resolve(), ended(signal)) });
      const gone = job("gone", { losses: 0, run: (_none, { signal }) => (begunAgain.resolve(), ended(signal)) });
      let ran = 0;
      const strict = job("strict", { attempts: 1, params, run: () => ran++ });
      const unsure = listener("unsure", {
        on: "x",
        live: true as const,
        run: () => ran++,
        where: function isSure() {
          throw new Error("cannot tell");
        },
      });
      const calm = listener("calm", { on: "y", live: true, run: () => undefined });
      const use = [good, bad, late, hold, gone, strict, unsure, calm];
      const { book, url } = await openTest(t, backend, { clock, use });
      const sessionId = book.sessionId;
      await book.jobs.enqueue(good, {});
      await book.jobs.enqueue(bad, {});
      await book.jobs.enqueue(late, {});
      const held = await book.jobs.enqueue(hold, {});
      const unfit = await book.jobs.enqueue(strict, { n: 1 });
      await tamper(book, (tx) => tx.sql`update daybook_job set params = ${'{"n":"one"}'} where id = ${unfit.id}`);
      await book.groups.create({ mode: "sequential", onFailure: "skip" }, (jobs) => {
        jobs.add(bad, {});
        jobs.add(good, {});
      });

      const worker = await book.startWorker({ grace: "1ms" });
      book.events.emit("x", {});
      book.events.emit("y", {});
      await begun.promise;
      await book.jobs.cancel(held.id);
      await untilRuns(book, clock, 9);
      await worker.idle();
      const lost = await book.jobs.enqueue(gone, {});
      await begunAgain.promise;
      // As another process does that finds this one dead.
      const { store } = await openTestStore(t, backend, { url });
      const [owner] = await store.read<{ seq: number }>(
        sql`select session_seq as seq from daybook_job_now where id = ${lost.id}`,
      );
      await store.write((tx) => recoverSession(tx, { kinds: {} }, owner?.seq ?? 0));
      await untilRuns(book, clock, 10);

      const { items } = await book.runs.list({ limit: 500 });
      const rows = items.map((run) => {
        const of = run.jobId === null ? "no job" : "a job";
        const why = run.error === null ? "no error" : `${run.error.type}: ${run.error.message}`;
        return `${run.kind} ${run.name} of ${of}: ${run.status}, ${why}`;
      });
      assert.deepEqual(
        rows.toSorted(),
        [
          "job bad of a job: error, RangeError: out of reach",
          "job bad of a job: error, RangeError: out of reach",
          "job gone of a job: lost, SessionLost: session lost: the process that ran it ended or fell silent",
          "job good of a job: skipped, no error",
          "job good of a job: success, no error",
          "job hold of a job: cancelled, CancelledError: the job was cancelled",
          'job strict of a job: error, DependencyError: params of job "strict" do not fit its schema: n: Invalid input: expected number, received string',
          "job late of a job: timed_out, TimeoutError: the run took longer than its timeout of 1000 ms",
          "listener calm of no job: success, no error",
          "listener unsure of no job: error, PredicateError: where isSure: cannot tell",
        ].toSorted(),
      );
      assert.equal(ran, 0, "what was refused before user code never ran");
      for (const run of items) {
        assert.deepEqual([run.attempt, run.app, run.registration, run.cause], [1, null, null, null], run.name);
        assert.ok(run.durationMs >= 0 && run.endedAt >= run.startedAt, run.name);
        assert.equal(run.sessionId, run.status === "skipped" ? null : sessionId, run.name);
        if (run.status === "error") assert.match(run.error?.trace ?? "", /\n +at /, run.name);
      }
      assert.equal(items.find(({ status }) => status === "lost")?.jobId, lost.id);
      while ((await book.telemetry.overview()).runs < 10) await clock.advance(1000);
      const { runs, errors, byStatus } = await book.telemetry.overview();
      assert.deepEqual([runs, errors], [10, 6]);
      await moving(clock, worker.stop());
      assert.equal((await book.runs.list({ limit: 500 })).items.length, 10, "who was given up writes no second row");
      assert.deepEqual(byStatus, { success: 2, error: 4, cancelled: 1, timed_out: 1, skipped: 1, lost: 1 });
      await moving(clock, book.close());
    });

    test("a book that refuses runs neither fails nor delays a handler, and counts the dropped runs", async (t) => {
      const clock = manualClock();
      let broken = true;
      const fault = (_moment: string, text: string): void => {
        if (broken && /insert into daybook_run \(/.test(text)) throw new Error("the disk is tired of runs");
      };
      let heard = 0;
      const ear = listener("ear", { on: "x", live: true, run: () => void heard++ });
      const { book } = await openTest(t, backend, { clock, fault, use: [ear] });
      // The first batch is under way when the others begin to wait.
      const kept = limits.runBatchMax + limits.runQueueMax;
      const begun = clock.now();

      for (let n = 0; n < kept + 7; n++) book.events.emit("x", {});
      assert.deepEqual([heard, clock.now() - begun], [kept + 7, 0], "each in its own turn, and no time went by");
      broken = false;
      const count = async (): Promise<number> => (await book.telemetry.overview()).runs;
      while ((await count()) < kept) await clock.advance(1000);

      const { items } = await book.sessions.list();
      assert.deepEqual(items[0]?.dropped, { runs: 7, logs: 0, events: 0 });
      assert.deepEqual((await book.telemetry.overview()).dropped, { runs: 7, logs: 0, events: 0 });
      assert.match(await book.metrics(), /daybook_dropped_runs_total 7\n/);
      assert.equal(await count(), kept);
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

    test("rollups that cannot be written delay no work and are written later", async (t) => {
      const clock = manualClock();
      let broken = true;
      const fault = (_moment: string, text: string): void => {
        if (broken && /insert into daybook_run_(?:rollup|series)/.test(text))
          throw new Error("the disk is tired of counts");
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
