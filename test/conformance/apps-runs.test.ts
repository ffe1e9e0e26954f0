// Every way in which a run of an app can end leaves one row, which says whose it was.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { app, manualClock, type Job, type RunRecord } from "../../src/index.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

const noon = Date.UTC(2026, 0, 15, 12);

for (const backend of backends) {
  describe(`runs of apps on ${backend}`, () => {
    test("succeed, fail, are cancelled, skipped, timed out, or never begin: one row each", async (t) => {
      const clock = manualClock({ at: noon });
      const made: Record<string, Job<{ n: number }>> = {};
      const [begun, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let ran = 0;
      const lamp = app("lamp", {
        setup(home) {
          const n = z.object({ n: z.number() });
          made["well"] = home.job({ name: "well", params: n }, () => "done");
          made["badly"] = home.job({ name: "badly", params: n, attempts: 1 }, () => {
            throw new RangeError("too far");
          });
          // Valid when it was enqueued, and not any more when it is run.
          const strict = z.object({ n: z.number().refine(() => ran++ === 0, "not today") });
          made["misfit"] = home.job({ name: "misfit", params: strict, attempts: 1 }, () =>
            assert.fail("it must not run"),
          );
          made["held"] = home.job({ name: "held", params: n }, async (_params, { signal }) => {
            begun.resolve();
            await new Promise((_resolve, reject) =>
              signal.addEventListener("abort", () => reject(signal.reason as Error)),
            );
          });
          made["slow"] = home.job(
            { name: "slow", params: n, attempts: 1, timeout: "1s" },
            async (_params, { signal }) => {
              slow.resolve();
              await new Promise((_resolve, reject) =>
                signal.addEventListener("abort", () => reject(signal.reason as Error)),
              );
            },
          );
          home.on("bell", { name: "ear" }, (_bell, { signal }) => {
            return new Promise((resolve) => signal.addEventListener("abort", resolve));
          });
        },
      });
      const { book } = await openTest(t, backend, { use: [lamp], clock });
      const of = (name: string): Job<{ n: number }> => made[name] ?? assert.fail(name);
      const worker = await book.startWorker();

      await book.jobs.enqueue(of("well"), { n: 1 });
      await book.jobs.enqueue(of("badly"), { n: 1 });
      await book.jobs.enqueue(of("misfit"), { n: 1 });
      const group = await book.groups.create({ mode: "sequential", onFailure: "skip" }, (jobs) => {
        jobs.add(of("badly"), { n: 2 });
        jobs.add(of("well"), { n: 2 });
      });
      await worker.idle();
      const held = await book.jobs.enqueue(of("held"), { n: 1 });
      await begun.promise;
      await book.jobs.cancel(held.id);
      await worker.idle();
      await book.jobs.enqueue(of("slow"), { n: 1 });
      await slow.promise;
      await clock.advance(1000);
      await worker.idle();
      book.events.emit("bell");
      await book.apps.stop("lamp");

      const list = async (): Promise<readonly RunRecord[]> => (await book.runs.list({ limit: 100 })).items;
      while ((await list()).length < 8) await clock.advance(50);
      const rows = (await list()).map(({ kind, registration, status, error }) =>
        [kind, registration, status, error?.type ?? "none"].join(" "),
      );
      assert.equal((await book.groups.get(group.id)).status, "partial");
      assert.deepEqual(rows.toSorted(), [
        "job badly error RangeError",
        "job badly error RangeError",
        "job held cancelled CancelledError",
        "job misfit error DependencyError",
        "job slow timed_out TimeoutError",
        "job well skipped none",
        "job well success none",
        "listener ear cancelled ShutdownError",
      ]);
      for (const { app: whose, durationMs, attempt } of await list()) {
        assert.deepEqual(whose, { key: "lamp", instance: 0 });
        assert.ok(durationMs >= 0 && attempt === 1);
      }
    });

    test("are recorded as lost for the app when their process is lost, and the retry belongs to the app too", async (t) => {
      const begun = Promise.withResolvers<void>();
      const lamp = app("lamp", {
        setup(home) {
          home.every("1h", { name: "hourly" }, async (_params, { signal }) => {
            begun.resolve();
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
          });
        },
      });
      const { book, url } = await openTest(t, backend, { use: [lamp] });
      const { store } = await openTestStore(t, backend, { url });
      await book.startWorker({ grace: "1ms" });
      const { jobId } = await book.schedules.trigger("default/lamp/0/hourly");
      await begun.promise;

      const [owner] = await store.read<{ seq: number }>(
        sql`select session_seq as seq from daybook_job_now where status = 'running'`,
      );
      await store.write((tx) => recoverSession(tx, { kinds: {} }, owner?.seq ?? 0));

      const whose = { app: { key: "lamp", instance: 0 }, registration: "hourly" };
      const [run] = (await book.runs.list({ status: "lost" })).items;
      assert.deepEqual({ app: run?.app, registration: run?.registration, jobId: run?.jobId }, { ...whose, jobId });
      assert.deepEqual([run?.kind, run?.error?.type], ["schedule", "SessionLost"]);
      const retried = await store.read<{ app: string; instance: number; registration: string }>(
        sql`select app, instance, registration from daybook_job_now where retry_of is not null`,
      );
      assert.deepEqual({ ...retried[0] }, { app: "lamp", instance: 0, registration: "hourly" });
    });
  });
}
