// Retention: what is old or too much leaves in slices, is counted, and leaves its counts behind.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { app, job } from "../../src/index.ts";
import { openLog } from "../../src/open/log.ts";
import { everyMinute } from "../../src/open/retain.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { eachRow } from "../../src/storage/word.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { hasHistory } from "../../src/telemetry/run.ts";
import { retainTelemetry, type RetainedTelemetry } from "../../src/telemetry/retention/retain.ts";
import { policyAt, type Asked } from "../telemetry/policy.ts";
import { type RunFilter, type Runs, openRuns } from "../../src/telemetry/runs.ts";
import { telemetryReads } from "../../src/telemetry/telemetry.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, openTestStore, type Backend } from "../support/open-test.ts";
import { insertRuns } from "../telemetry/raw-run.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 5, 10, 9, 30);

type Desk = { readonly store: Store; readonly runs: Runs; retain(options?: Asked): Promise<RetainedTelemetry> };

async function openDesk(t: TestContext, backend: Backend): Promise<Desk> {
  const { store } = await openTestStore(t, backend, { clock: manualClock({ at: now }) });
  return {
    store,
    runs: openRuns(store, "default"),
    retain: (options) => retainTelemetry(store, policyAt(store.clock.now(), "default", options)),
  };
}

async function aged(desk: Desk, days: readonly number[], tenant = "default"): Promise<string[]> {
  return insertRuns(
    desk.store,
    days.map((ago) => ({ name: "lamp", startedAt: now - ago * day, durationMs: 1, tenant })),
  );
}

async function writeLines(desk: Desk, runId: string, count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => ({ run_id: runId, logged_at: now, message: `line ${n}` }));
  await desk.store.write((tx) =>
    tx.run(sql`insert into daybook_run_log (run_id, logged_at, message, tenant_id, level)
      ${eachRow(
        { run_id: "text", logged_at: "integer", message: "text", tenant_id: "text", level: "text" },
        rows.map((row) => ({ ...row, tenant_id: "default", level: "info" })),
      )}`),
  );
}

async function count(desk: Desk, what: string): Promise<number> {
  const [row] = await desk.store.read<{ n: number }>(rawSql(`select count(*) as n from daybook_${what}`));
  return row?.n ?? 0;
}

/** Both of its clocks go on with each step: time in which nobody was there. */
function passing(at: number): ManualClock {
  const clock = manualClock({ at });
  return { ...clock, monotonic: clock.now };
}

for (const backend of backends) {
  describe(`retention of telemetry on ${backend}`, () => {
    test("retention removes one tenant's runs after seven days and lines after three, and a dry run counts the same", async (t) => {
      const desk = await openDesk(t, backend);
      const [old = "", middle = "", young = ""] = await aged(desk, [8, 4, 1]);
      for (const id of [young, middle, old]) await writeLines(desk, id, 2);
      await aged(desk, [8], "acme");

      const before = await desk.retain({ dryRun: true });
      await foldRuns(desk.store);
      const folded = await desk.retain({ dryRun: true });
      const left = await count(desk, "run");
      const done = await desk.retain();

      assert.deepEqual([before.runs, before.logs, folded.runs, folded.logs, left], [1, 4, 1, 4, 4]);
      assert.deepEqual([done.runs, done.logs], [1, 4]);
      assert.deepEqual(
        (await desk.runs.list()).items.map(({ id }) => id),
        [young, middle],
      );
      assert.deepEqual([(await desk.runs.logs(young)).length, (await desk.runs.logs(middle)).length], [2, 0]);
      assert.equal(await count(desk, "run where tenant_id = 'acme'"), 1);
      const { items } = await telemetryReads(desk.store, "default").summaries({ since: "30d" });
      assert.equal(items[0]?.runs, 3, "the counts know of all");
    });

    test("a dry run says what leaves for its age and what for its size, each once", async (t) => {
      const desk = await openDesk(t, backend);
      const ids = await aged(desk, [9, 8, 5, 4, 2, 1, 0]);
      for (const id of ids) await writeLines(desk, id, 3);
      await foldRuns(desk.store);
      await desk.runs.pin(ids[1] ?? "");

      const dry = await desk.retain({ bytes: 4000, dryRun: true });
      const done = await desk.retain({ bytes: 4000 });

      assert.ok(done.runs > 1 && done.runs < ids.length - 1, `${done.runs} runs`);
      assert.deepEqual([dry.runs, dry.logs], [done.runs, done.logs]);
    });

    test("what was removed is counted by day and reason", async (t) => {
      const desk = await openDesk(t, backend);
      await aged(desk, [8, 9]);
      await desk.retain();
      await aged(desk, [10]);
      await desk.retain();

      const gone = await telemetryReads(desk.store, "default").evictions();

      const today = now - (now % day);
      assert.deepEqual(gone, [
        { at: today, what: "run", reason: "age", removed: 3, from: now - 10 * day, until: now - 8 * day },
      ]);
      assert.deepEqual(await telemetryReads(desk.store, "acme").evictions(), []);
    });

    test("a pinned run stays with its lines, and leaves when it is unpinned", async (t) => {
      const desk = await openDesk(t, backend);
      const [id = ""] = await aged(desk, [30]);
      await writeLines(desk, id, 1);
      await desk.runs.pin(id, { note: "evidence" });

      const kept = await desk.retain();
      const logs = await desk.runs.logs(id);
      assert.deepEqual([await desk.runs.unpin(id), await desk.runs.unpin(id)], [true, false]);
      const gone = await desk.retain();

      assert.deepEqual([kept.runs, kept.logs, logs.length, gone.runs, gone.logs], [0, 0, 1, 1, 1]);
      await assert.rejects(desk.runs.pin(id), { code: "not_found" });
    });

    test("over the size budget the oldest runs leave, with the reason", async (t) => {
      const desk = await openDesk(t, backend);
      const ids = await aged(desk, [3, 2, 1, 0]);

      const done = await desk.retain({ bytes: 600 });

      assert.equal(done.runs, 2);
      assert.deepEqual(
        (await desk.runs.list()).items.map(({ id }) => id),
        ids.slice(2).toReversed(),
      );
      const [gone] = await telemetryReads(desk.store, "default").evictions();
      assert.deepEqual([gone?.reason, gone?.removed], ["size", 2]);
    });

    test("no transaction removes more than a slice, even when one run has more lines than that", async (t) => {
      const desk = await openDesk(t, backend);
      const ids = await aged(
        desk,
        Array.from({ length: 2500 }, () => 8),
      );
      await writeLines(desk, ids[0] ?? "", 4500);
      const sizes: number[] = [];
      const write: Store["write"] = async (unit, options) => {
        const before = (await count(desk, "run")) + (await count(desk, "run_log"));
        const answer = await desk.store.write(unit, options);
        sizes.push(before - (await count(desk, "run")) - (await count(desk, "run_log")));
        return answer;
      };

      const done = await retainTelemetry({ ...desk.store, write }, policyAt(now, "default", { logs: "30d" }));

      assert.deepEqual([done.runs, done.logs], [2500, 4500]);
      assert.ok(Math.max(...sizes) <= limits.retainRowsMax, `slices of ${sizes.join(", ")}`);
      assert.equal(await count(desk, "run"), 0);
    });

    test("counts leave after 400 days, and a series leaves with its last count", async (t) => {
      const desk = await openDesk(t, backend);
      await aged(desk, [500, 399]);
      await insertRuns(desk.store, [{ name: "forgotten", startedAt: now - 401 * day, durationMs: 1 }]);

      const done = await desk.retain();

      assert.deepEqual([done.runs, done.rollups], [3, 12], "the lamp, the forgotten, and both together");
      assert.deepEqual([await count(desk, "run_series"), await count(desk, "run_rollup")], [2, 8]);
    });

    test("runs and their lines leave by their age even when the counts of them are to leave sooner", async (t) => {
      const desk = await openDesk(t, backend);
      const old = await aged(desk, [12, 9]);
      await aged(desk, [8], "acme");
      const [pinned = ""] = old;
      for (const id of old) await writeLines(desk, id, 2);
      await desk.runs.pin(pinned);

      const kept = await desk.retain({ runs: "30d", logs: "30d", rollups: "2d" });
      const dry = await desk.retain({ rollups: "2d", dryRun: true });
      const done = await desk.retain({ rollups: "2d" });
      await desk.runs.unpin(pinned);
      const free = await desk.retain({ rollups: "2d" });

      assert.deepEqual([kept.runs, kept.logs, kept.rollups > 0], [0, 0, true]);
      assert.deepEqual([done.runs, done.logs, free.runs, free.logs], [1, 2, 1, 2]);
      assert.deepEqual([dry.runs, dry.logs, dry.rollups], [done.runs, done.logs, done.rollups]);
      assert.deepEqual(await count(desk, "run_series where tenant_id = 'default'"), 0);
    });

    test("a registration has a history as long as its counts are there", async (t) => {
      const desk = await openDesk(t, backend);
      const owner = { app: "home", instance: 0 };
      const kinds = ["listener", "schedule", "job", "direct"];
      await insertRuns(
        desk.store,
        kinds.map((kind) => ({ ...owner, kind, name: kind, registration: kind, startedAt: now, durationMs: 1 })),
      );
      await desk.retain();
      await desk.store.write((tx) => tx.run(rawSql("delete from daybook_run")));

      const found: boolean[] = [];
      for (const registration of [...kinds, "other"]) {
        found.push(await hasHistory(desk.store, "default", { ...owner, registration }));
      }

      assert.deepEqual(found, [true, true, true, true, false]);
    });

    test("a run that outlives its counts is still listed", async (t) => {
      const desk = await openDesk(t, backend);
      const [old = ""] = await insertRuns(desk.store, [
        { name: "yearly", kind: "schedule", registration: "yearly", startedAt: now - 500 * day, durationMs: 1 },
      ]);
      const [young = ""] = await aged(desk, [1]);

      const { rollups } = await desk.retain();

      assert.ok(rollups > 0);
      const ids = async (filter: RunFilter): Promise<string[]> =>
        (await desk.runs.list(filter)).items.map(({ id }) => id);
      assert.deepEqual(await ids({ kind: "schedule" }), [old]);
      assert.deepEqual(await ids({ kind: "listener" }), [young]);
      assert.deepEqual(await ids({ since: "600d" }), [young, old]);
      assert.deepEqual(await ids({ since: "600d", until: "499d" }), [old]);
      assert.deepEqual(await ids({ since: "2d" }), [young]);
    });

    test("a working process applies retention a minute after it began and every hour, for all tenants", async (t) => {
      const clock = manualClock({ at: now });
      const { engine, store } = await openEngine(t, backend, { clock });
      for (const tenant of ["default", "acme"]) {
        await insertRuns(store, [{ name: "lamp", startedAt: now - 8 * day, durationMs: 1, tenant }]);
      }
      const left = async (): Promise<number> => (await store.read(rawSql("select seq from daybook_run"))).length;
      let [folds, prepared] = [0, 0];
      const minute = everyMinute({
        store,
        jobs: engine,
        log: openLog(false),
        rollUp: { soon: () => void folds++, fold: () => Promise.resolve(0), stop: () => Promise.resolve() },
        scheduled: { writeAll: () => Promise.resolve(), writeForNewTenants: async () => void prepared++ },
      });

      await minute();
      await clock.advance(limits.retainFirstMs - 1);
      await minute();
      const before = await left();
      await clock.advance(1);
      await minute();
      while ((await left()) > 0) await clock.nextTurn();
      await insertRuns(store, [{ name: "lamp", startedAt: now - 8 * day, durationMs: 1 }]);
      await clock.advance(limits.retainMs - 1);
      await minute();
      const later = await left();
      await clock.advance(1);
      await minute();
      const beats = [folds, prepared];
      // The first pass may still be on its way to its end, and then the next minute begins the second.
      for (; (await left()) > 0; await minute()) await clock.nextTurn();

      assert.deepEqual([before, later, beats], [2, 1, [5, 5]]);
      assert.equal((await telemetryReads(store, "acme").evictions())[0]?.removed, 1);
    });

    test("a run of an app's schedule leaves with its job after seven days, and other jobs stay", async (t) => {
      const clock = passing(now);
      const noop = job("noop", { run: () => undefined });
      const home = app("home", {
        setup: (here) => void here.every("1h", { name: "report" }, () => undefined),
      });
      const { book } = await openTest(t, backend, { use: [noop, home], clock });
      const worker = await book.startWorker();
      await book.schedules.trigger((await book.schedules.list()).items[0]?.name ?? "");
      await book.jobs.enqueue(noop, {});
      await worker.idle();
      await worker.stop();
      await book.retain({ apply: true });

      clock.step(8 * day);
      const dry = await book.retain();
      const done = await book.retain({ apply: true });

      assert.deepEqual([dry.jobs, done.jobs], [1, 1]);
      assert.deepEqual(
        (await book.jobs.list()).items.map(({ name }) => name),
        ["noop"],
      );
      const { items } = await book.telemetry.summaries({ since: "30d", app: "home" });
      assert.deepEqual(
        items.map(({ kind, name, runs }) => [kind, name, runs]),
        [["schedule", "report", 1]],
      );
    });

    test("a job's run goes with its job, but not while it is pinned", async (t) => {
      const noop = job("noop", { run: () => undefined });
      const clock = passing(now);
      const { book } = await openTest(t, backend, { use: [noop], clock });
      await book.jobs.runNow(noop);
      const [run] = (await book.runs.list()).items;
      clock.step(29 * day);

      const young = await book.retain({ apply: true });
      await book.runs.pin(run?.id ?? "");
      const pinned = await book.retain({ jobs: { keep: 0 }, apply: true });
      await book.runs.unpin(run?.id ?? "");
      const free = await book.retain({ jobs: { keep: 0 }, apply: true });

      assert.deepEqual([young.runs, young.jobs, pinned.jobs, free.jobs, free.runs], [0, 0, 0, 1, 1]);
      assert.deepEqual(await book.doctor(), []);
    });
  });
}
