import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import type { RunState } from "../../src/jobs/run/run.ts";
import { runNotesDropped } from "../../src/jobs/kind.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { backoffMs } from "../../src/core/retry.ts";
import { createPendingWrites } from "../../src/jobs/worker/runs.ts";
import { startWorker } from "../../src/jobs/worker/start-worker.ts";
import { heldJob } from "../jobs/handlers.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, cleanup, openTest, type Backend } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("finishes that get in each other's way are no failures of their jobs", async (t) => {
      const single = job("single", { attempts: 1, run: (_params: unknown, { finish }) => finish(() => "done") });
      const { book } = await openTest(t, backend, { use: [single] });
      await book.jobs.enqueueMany(
        single,
        Array.from({ length: 300 }, () => ({})),
      );

      const worker = await book.startWorker({ concurrency: 50 });
      await worker.idle();

      assert.deepEqual((await book.jobs.list({ status: "failed" })).items, []);
      assert.equal((await book.jobs.list({ status: "completed", limit: 500 })).items.length, 300);
    });

    test("a log level that does not exist is the handler's error, and stops nobody else", async (t) => {
      const bad = job("bad", {
        attempts: 1,
        run: (_params: unknown, { log }) => log("hello", undefined, "fatal" as never),
      });
      const good = job("good", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [bad, good] });
      const { id } = await book.jobs.enqueue(bad, {});
      await book.jobs.enqueue(good, {});

      const worker = await book.startWorker();
      await worker.idle();

      const { run } = await book.jobs.get(id);
      assert.match(run?.error?.message ?? "", /log level "fatal" is not known: debug, info, warn, error/);
      assert.equal((await book.jobs.list({ status: "completed" })).items.length, 1);
    });

    test("a line that cannot be written is given up, and work goes on", async (t) => {
      const talks = heldJob("talks");
      const clock = manualClock();
      const quick = job("quick", { run: () => undefined });
      const at = await openEngine(t, backend, { use: [talks.job, quick], clock });
      await refuse(at, backend, "run_log", "message", "bad");
      const givenUp = Promise.withResolvers<void>();
      cleanup(
        t,
        runNotesDropped.subscribe(() => givenUp.resolve()),
      );
      const worker = await startWorker(at.engine);
      await at.jobs.enqueue(talks.job, {});
      const { context, succeed } = await talks.whenBegun(1);
      context.log("bad");

      const { id } = await at.jobs.enqueue(quick, {});
      // Of two turns at once the quick one's may be the first; what is said before the bad line is given up goes with it.
      await whileTimePasses(clock, Promise.all([until(at, id), givenUp.promise]), 100);
      context.log("good");
      succeed();
      await whileTimePasses(clock, worker.idle(), 100);

      assert.deepEqual(await at.rows("select message from daybook_run_log"), [{ message: "good" }]);
      await worker.stop();
    });

    test("an ending that cannot be written holds up none of its neighbours", async (t) => {
      const clock = manualClock();
      const says = job<{ word: string }>("says", { run: ({ word }) => word });
      const at = await openEngine(t, backend, { use: [says], clock });
      await refuse(at, backend, "run", "result", '"bad"');
      const made = await at.jobs.enqueueMany(
        says,
        ["good", "bad", "better", "best"].map((word) => ({ word })),
      );
      const worker = await startWorker(at.engine);

      for (const [index, { id }] of made.entries()) if (index !== 1) await whileTimePasses(clock, until(at, id), 100);

      assert.equal((await at.jobs.get(made[1]?.id ?? "")).status, "running");
      await permit(at, backend, "run");
      await whileTimePasses(clock, worker.idle(), 100);
      assert.equal((await at.jobs.get(made[1]?.id ?? "")).status, "completed");
      await worker.stop();
    });

    test("a job's time begins with its claim, and is told by its owner's clock alone", async (t) => {
      const timed = job("timed", { timeout: "1s", attempts: 1, run: () => undefined });
      const at = await openEngine(t, backend, { use: [timed] });
      await at.jobs.enqueue(timed, {});
      const [claimed] = await at.claim(1);
      assert.ok(claimed !== undefined);

      // Another host's clock is an hour ahead.
      await at.clock.advance(3_600_000);
      assert.equal(await sweep(at.engine), 0);
      await beat(at);
      assert.equal(await sweep(at.engine), 1);
      assert.equal((await at.jobs.get(claimed.id)).run?.status, "timed_out");
    });

    test("a result that is not JSON is not kept, and the work is not done again for it", async (t) => {
      const big = job("big", { run: () => ({ id: 10n }) });
      const { book } = await openTest(t, backend, { use: [big] });
      const { id } = await book.jobs.enqueue(big, {});
      const worker = await book.startWorker();
      await worker.idle();

      const { status, run } = await book.jobs.get(id);
      assert.deepEqual([status, run?.result], ["completed", null]);
      const [line] = await book.read((tx) => tx.sql<{ message: string }>`select message from daybook_run_log`);
      assert.match(line?.message ?? "", /the result is not kept: result.id is a bigint/);
    });
  });
}

test("what could not be written is written again in its order, also of runs that have ended", () => {
  const pending = createPendingWrites();
  const line = (message: string): RunState["logs"][number] => ({ level: "info", message, fields: null, at: 1 });
  const state = {
    job: { seq: 1, run_id: "r", tenant_id: "t" },
    logs: [line("one"), line("two")],
    progress: { done: 0.5, note: null },
  } as unknown as RunState;
  pending.changed(state);
  const refused = pending.take();
  state.logs.push(line("three"));
  state.progress = { done: 0.7, note: null };
  pending.changed(state);
  pending.giveBack(refused);

  const { logs, progress } = pending.take();
  assert.deepEqual(
    logs.map(({ message }) => message),
    ["one", "two", "three"],
  );
  assert.deepEqual(progress, [{ seq: 1, run_id: "r", progress: 0.7, note: null }]);
  assert.equal(pending.any, false);
});

test("a backoff of nothing stays nothing, however often it was tried", () => {
  assert.equal(
    backoffMs({ base: 0 }, 5000, () => 0.5),
    0,
  );
});

async function until(at: TestEngine, id: string): Promise<void> {
  while ((await at.jobs.get(id)).status !== "completed") await new Promise((resolve) => setImmediate(resolve));
}

// As if the session's own process beat just now.
async function beat(at: TestEngine): Promise<void> {
  await at.run(
    `update daybook_session set beat = beat + 1, last_heartbeat_at = ${at.clock.now()} where seq = ${at.session.seq}`,
  );
}

/** The storage refuses one value of one column. */
async function refuse(at: TestEngine, backend: Backend, table: string, column: string, value: string): Promise<void> {
  await at.run(
    backend === "postgres"
      ? `alter table daybook_${table} add constraint refused check (${column} <> '${value}')`
      : `create trigger refused before insert on daybook_${table} when new.${column} = '${value}'
          begin select raise(abort, 'refused'); end`,
  );
}

async function permit(at: TestEngine, backend: Backend, table: string): Promise<void> {
  await at.run(
    backend === "postgres" ? `alter table daybook_${table} drop constraint refused` : "drop trigger refused",
  );
}
