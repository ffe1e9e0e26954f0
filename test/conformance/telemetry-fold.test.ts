// Folding: every run is counted once, whoever folds and however late it commits.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { Client } from "pg";
import { manualClock } from "../../src/core/manual-clock.ts";
import { job } from "../../src/index.ts";
import { rawSql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { foldSlice, readMark, foldRuns, openRollUp, createHorizon } from "../../src/telemetry/rollup/roll-up.ts";
import { backends, cleanup, openTest, openTestStore, type Backend } from "../support/open-test.ts";
import { insertRuns, type RawRun } from "../telemetry/raw-run.ts";

const at = Date.UTC(2026, 0, 1, 12);

function some(count: number, more: Partial<RawRun> = {}): RawRun[] {
  return Array.from({ length: count }, (_, n) => ({ name: "lamp", startedAt: at + n, durationMs: n, ...more }));
}

async function totals(store: Store, span = "minute"): Promise<{ runs: number; took: number }> {
  const [row] = await store.read<{ runs: number | null; took: number | null }>(
    rawSql(`select cast(sum(runs) as bigint) as runs, sum(sum_ms) as took from daybook_run_rollup join daybook_run_series on seq = series_seq
      where span = '${span}' and name <> ''`),
  );
  return { runs: row?.runs ?? 0, took: row?.took ?? 0 };
}

async function open(t: TestContext, backend: Backend): Promise<{ store: Store; url: string }> {
  return openTestStore(t, backend, { clock: manualClock({ at }) });
}

for (const backend of backends) {
  describe(`folding on ${backend}`, () => {
    test("every run is counted once in its minute, hour, day and session, however many folds run", async (t) => {
      const { store } = await open(t, backend);
      await insertRuns(store, some(7));

      await foldRuns(store);
      await foldRuns(store);
      await insertRuns(store, some(3, { tenant: "acme" }));
      await foldRuns(store);

      for (const span of ["minute", "hour", "day"]) assert.deepEqual(await totals(store, span), { runs: 10, took: 24 });
      const series = await store.read<{ tenant_id: string }>(
        rawSql("select tenant_id from daybook_run_series where name <> '' order by 1"),
      );
      assert.deepEqual(
        series.map((row) => row.tenant_id),
        ["acme", "default"],
      );
    });

    test("when two processes fold the same slice, one of them counts it", async (t) => {
      const { store } = await open(t, backend);
      await insertRuns(store, some(300));
      const { seq } = await createHorizon(store)();

      const passed = await Promise.all([foldSlice(store, seq), foldSlice(store, seq), foldSlice(store, seq)]);

      assert.deepEqual(passed.toSorted(), [0, 0, 300]);
      assert.equal((await totals(store)).runs, 300);
    });

    test("a run that gets the number of a removed run is counted", async (t) => {
      const done = job("done", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [done], clock: manualClock({ at }) });
      for (const round of [1, 2, 3]) {
        for (let n = 0; n < round; n++) await book.jobs.runNow(done);
        await book.retain({ jobs: { keep: 0 }, apply: true });
      }

      const [row] = await book.read(
        (tx) => tx.sql<{ runs: number }>`select runs from daybook_run_rollup where span = 'day'`,
      );

      assert.equal(row?.runs, 6);
    });

    test("retention folds what it removes, and a dry run folds nothing", async (t) => {
      const done = job("done", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [done], clock: manualClock({ at }) });
      await book.jobs.runNow(done);
      await book.retain({ jobs: { keep: 0 } });
      const [mark] = await book.read((tx) => tx.sql<{ folded_seq: number }>`select folded_seq from daybook_run_fold`);

      assert.equal(mark?.folded_seq, 0, "a dry run changes nothing");
      assert.equal((await book.retain({ jobs: { keep: 0 }, apply: true })).runs, 1);
      const [row] = await book.read(
        (tx) => tx.sql<{ runs: number }>`select runs from daybook_run_rollup where span = 'day'`,
      );
      assert.equal(row?.runs, 1);
    });

    test("the roll-up folds a second after runs were written, and leaves it to another process that folds", async (t) => {
      const clock = manualClock({ at });
      const { store } = await openTestStore(t, backend, { clock });
      const did: string[] = [];
      const watched: Store = {
        ...store,
        read: (statement) => {
          if (statement.strings.join("").includes("from daybook_run_fold")) did.push("looks");
          return store.read(statement);
        },
        write: (unit, options) => {
          did.push("folds");
          return store.write(unit, options);
        },
      };
      const [one, two] = [openRollUp(store), openRollUp(watched)];
      await insertRuns(store, some(5));
      assert.deepEqual([await one.fold(), await two.fold()], [5, 5]);
      await insertRuns(store, some(5));
      await one.fold();
      await insertRuns(store, some(5));
      did.length = 0;

      two.soon();
      while ((await readMark(store)) < 15) await clock.advance(1000);

      // It finds that the other one has just folded; a second later nobody has, so it looks where to begin, and folds.
      assert.deepEqual(did.slice(0, 4), ["looks", "looks", "looks", "folds"]);
      assert.equal((await totals(store)).runs, 15);
      await Promise.all([one.stop(), two.stop()]);
    });

    test("a roll-up that took long rests longer, so that folding takes at most a twentieth of the time", async (t) => {
      const clock = manualClock({ at });
      const { store } = await openTestStore(t, backend, { clock });
      const looks: number[] = [];
      let elapsedMs = 0;
      const slow: Store = {
        ...store,
        clock: { ...clock, monotonic: () => (elapsedMs += 100) },
        read: (statement) => {
          looks.push(clock.now() - at);
          return store.read(statement);
        },
      };
      const rollUp = openRollUp(slow);
      await insertRuns(store, some(5));
      await rollUp.fold();
      looks.length = 0;

      rollUp.soon();
      await clock.advance(5000);

      assert.equal(looks[0], 2000);
      await rollUp.stop();
    });

    test("a slice grows as long as more runs make no more rows of counts, and shrinks when they do", async (t) => {
      const { store } = await open(t, backend);
      const each = (count: number, more: Partial<RawRun> = {}): RawRun[] =>
        Array.from({ length: count }, (_, n) => ({ name: `lamp-${n}`, startedAt: at, durationMs: 1, ...more }));
      await insertRuns(store, [...each(800), ...each(800), ...each(800)]);
      await insertRuns(store, [...each(1200), ...some(6000, { status: "error" })]);
      const { seq } = await createHorizon(store)();
      const pace = { runs: 800 };
      const fold = async (size = pace.runs): Promise<number[]> => {
        pace.runs = size;
        return [await foldSlice(store, seq, pace), pace.runs];
      };

      assert.deepEqual(await fold(), [800, 1000], "of 800 series");
      assert.deepEqual(await fold(), [1000, 1250], "of the same 800");
      assert.deepEqual(await fold(600), [600, 750], "of 600 of them");
      assert.deepEqual(await fold(1200), [750, 938], "of more than a transaction may write");
      assert.deepEqual(await fold(450), [450, 750], "the rest of them");
      assert.deepEqual(await fold(6000), [3750, 4688], "of too many that failed");
      assert.equal((await totals(store)).runs, 800 + 1000 + 600 + 750 + 450 + 3750);
    });
  });
}

test("postgres: a run that commits long after runs with higher numbers is counted", async (t) => {
  const { store, url } = await open(t, "postgres");
  const late = new Client({ connectionString: url });
  await late.connect();
  cleanup(t, () => late.end());
  const rollUp = openRollUp(store);
  cleanup(t, () => rollUp.stop());
  await late.query("begin");
  await late.query(`insert into daybook.daybook_run (tenant_id, id, kind, name, attempt, started_at, ended_at, duration_ms, status)
    values ('default', 'late', 'listener', 'lamp', 1, ${at}, ${at}, 7, 'success')`);
  await insertRuns(store, some(3));

  const early = await rollUp.fold();
  await insertRuns(store, some(2));
  const still = await rollUp.fold();
  const before = await totals(store);
  await late.query("commit");
  const after = await rollUp.fold();

  assert.deepEqual([early, still, before.runs], [0, 0, 0], "nothing beyond the one that is still being written");
  assert.deepEqual([after, await totals(store)], [6, { runs: 6, took: 7 + 3 + 1 }]);
});

test("postgres: steady writers do not hold up the fold", async (t) => {
  const { store, url } = await open(t, "postgres");
  const writers = [new Client({ connectionString: url }), new Client({ connectionString: url })];
  for (const each of writers) {
    await each.connect();
    cleanup(t, () => each.end());
  }
  const [one, two] = writers as [Client, Client];
  const insert = (
    id: string,
  ): string => `insert into daybook.daybook_run (tenant_id, id, kind, name, attempt, started_at, ended_at,
    duration_ms, status) values ('default', '${id}', 'listener', 'lamp', 1, ${at}, ${at}, 1, 'success')`;
  const rollUp = openRollUp(store);
  cleanup(t, () => rollUp.stop());
  await one.query("begin");
  await one.query(insert("a"));

  const first = await rollUp.fold();
  await two.query("begin");
  await two.query(insert("b"));
  await one.query("commit");
  const second = await rollUp.fold();
  await two.query("commit");

  assert.deepEqual([first, second], [0, 1], "there was always somebody writing");
  assert.equal(await rollUp.fold(), 2);
});
