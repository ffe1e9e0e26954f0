import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { cancelUnstarted } from "../../src/jobs/settle/cancel.ts";
import { heldJob, reasonOf } from "../jobs/handlers.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const plain = job("plain", { attempts: 2, backoff: ["1h"], run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("a job that is cancelled while it waits or is queued never runs and has no run", async (t) => {
      let ran = 0;
      const counted = job("counted", { run: () => void ran++ });
      const { book } = await openTest(t, backend, { use: [counted], clock: manualClock() });
      const queued = await book.jobs.enqueue(counted, {}, { key: "k" });
      const waiting = await book.jobs.enqueue(counted, {}, { in: "1h", tags: ["later"] });

      const cancelled = [await book.jobs.cancel(queued.id), await book.write((tx) => tx.jobs.cancel(waiting.id))];

      const worker = await book.startWorker();
      await worker.idle();
      assert.deepEqual(
        cancelled.map(({ status }) => status),
        ["cancelled", "cancelled"],
      );
      for (const { id } of [queued, waiting]) {
        const { status, run, runId, finishedAt, waitsFor } = await book.jobs.get(id);
        assert.deepEqual([status, run, runId, finishedAt === null, waitsFor], ["cancelled", null, null, false, null]);
      }
      assert.equal(ran, 0);
      assert.equal((await book.jobs.enqueue(counted, {}, { key: "k", onConflict: "error" })).created, true);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a cancel of what has not begun leaves alone what has, and what has ended", async (t) => {
      const { engine, store, jobs, claim, end, rows } = await openEngine(t, backend, { use: [plain] });
      const made = await jobs.enqueueMany(plain, [{}, {}, {}]);
      const [ended] = await claim(1);
      await claim(1);
      if (ended !== undefined) await end(ended, { status: "success" });

      const done = [];
      for (const { id } of made) done.push(await store.write((tx) => cancelUnstarted(tx, engine, id)));

      assert.deepEqual(done, [false, false, true]);
      assert.deepEqual(
        (
          await rows<{ status: string; asked: number | null }>(
            "select status, cancel_requested_at as asked from daybook_job_now order by seq",
          )
        ).map(({ status, asked }) => [status, asked]),
        [
          ["completed", null],
          ["running", null],
          ["cancelled", null],
        ],
      );
    });

    test("a cancelled transaction of a cancel cancels nothing", async (t) => {
      const { book } = await openTest(t, backend, { use: [plain] });
      const { id } = await book.jobs.enqueue(plain, {});

      const undone = book.write(async (tx) => {
        await tx.jobs.cancel(id);
        throw new RangeError("no");
      });

      await assert.rejects(undone, /no/);
      assert.equal((await book.jobs.get(id)).status, "queued");
    });

    test("a running job is asked to end by its signal, recorded as cancelled, and not tried again", async (t) => {
      const reasons: unknown[] = [];
      const polite = heldJob("polite");
      const { book } = await openTest(t, backend, { use: [polite.job] });
      const { id } = await book.jobs.enqueue(polite.job, {});
      const worker = await book.startWorker();
      const { context, fail } = await polite.whenBegun(1);
      const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      context.signal.addEventListener("abort", () => void reasons.push(reasonOf(context.signal)));

      const asked = await book.jobs.cancel(id);
      const again = await book.jobs.cancel(id);
      await aborted;
      fail(new Error("stopped in the middle"));
      await worker.idle();

      assert.deepEqual([asked.status, again.status], ["cancelling", "cancelling"]);
      assert.deepEqual(reasons, [{ code: "closed", cause: "cancel" }]);
      const found = await book.jobs.get(id);
      assert.deepEqual([found.status, found.run?.status, found.retriedBy], ["cancelled", "cancelled", null]);
      assert.deepEqual(found.run?.error, { type: "CancelledError", message: "stopped in the middle", trace: null });
    });

    test("a handler that ignores a cancel is recorded as cancelled after its grace", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf");
      const { book } = await openTest(t, backend, { use: [deaf.job], clock });
      const { id } = await book.jobs.enqueue(deaf.job, {});
      const worker = await book.startWorker();
      const { context, succeed } = await deaf.whenBegun(1);
      const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));

      await book.jobs.cancel(id);
      await aborted;
      await clock.advance(5000);
      await worker.idle();
      succeed();

      const found = await book.jobs.get(id);
      assert.deepEqual([found.status, found.run?.error?.message], ["cancelled", "the job was cancelled"]);
    });

    test("work that is done before it hears of the cancel counts as done", async (t) => {
      const quick = heldJob("quick");
      const { book } = await openTest(t, backend, { use: [quick.job] });
      const { id } = await book.jobs.enqueue(quick.job, {});
      const worker = await book.startWorker();
      const { succeed, context } = await quick.whenBegun(1);

      const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      await book.jobs.cancel(id);
      await aborted;
      succeed("all of it");
      await worker.idle();

      const found = await book.jobs.get(id);
      assert.deepEqual([found.status, found.run?.result], ["completed", "all of it"]);
    });

    test("a job that somebody asked to cancel is not tried again when its run fails or is lost first", async (t) => {
      const at = await openEngine(t, backend, { use: [plain] });
      const ids: string[] = [];
      for (const status of ["error", "lost", "timed_out"] as const) {
        const { id } = await at.jobs.enqueue(plain, {});
        ids.push(id);
        const [claimed] = await at.claim(1);
        await at.jobs.cancel(id);
        await at.end(claimed as never, { status });
      }

      const found = await Promise.all(ids.map((id) => at.jobs.get(id)));

      assert.deepEqual(
        found.map(({ status, retriedBy }) => [status, retriedBy]),
        [
          ["failed", null],
          ["failed", null],
          ["failed", null],
        ],
      );
    });

    test("a job that somebody asked to cancel is not made again when its process shuts down", async (t) => {
      const at = await openEngine(t, backend, { use: [plain] });
      const [one, two] = await at.jobs.enqueueMany(plain, [{}, {}]);
      const claimed = await at.claim(2);
      await at.jobs.cancel(one?.id ?? "");

      for (const each of claimed) await at.end(each, { status: "cancelled", shutdown: true });

      const found = [await at.jobs.get(one?.id ?? ""), await at.jobs.get(two?.id ?? "")];
      assert.deepEqual(
        found.map(({ status, retriedBy }) => [status, retriedBy !== null]),
        [
          ["cancelled", false],
          ["cancelled", true],
        ],
      );
      await assertInvariants(at);
    });

    test("a job that has ended cannot be cancelled, and one that does not exist is not found", async (t) => {
      const at = await openEngine(t, backend, { use: [plain] });
      const done = await at.jobs.enqueue(plain, {});
      await at.end((await at.claim(1))[0] as never, { status: "success" });
      const failed = await at.jobs.enqueue(plain, {});
      await at.end((await at.claim(1))[0] as never, { status: "error" });
      const gone = await at.jobs.enqueue(plain, {});
      await at.jobs.cancel(gone.id);

      for (const [{ id }, status] of [
        [done, "completed"],
        [failed, "failed"],
        [gone, "cancelled"],
      ] as const) {
        const message = `job ${id} is ${status} and cannot be cancelled`;
        await assert.rejects(at.jobs.cancel(id), { code: "conflict", message });
      }
      await assert.rejects(at.jobs.cancel("nope"), { code: "not_found", message: "there is no job nope" });
    });
  });
}
