// What doctor asks of runs, their counts and the registrations of apps: each rule is broken on purpose, and found.
import assert from "node:assert/strict";
import { test } from "node:test";
import { app, job, manualClock, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const noon = Date.UTC(2026, 0, 15, 12);

const findings = async (book: Book): Promise<string[]> =>
  (await book.doctor()).map(({ promise, name, found }) => `${promise} ${name}: ${found.join(", ")}`);

for (const backend of backends) {
  test(`${backend}: doctor finds runs that are not counted, and counts that do not add up`, async (t) => {
    const work = job("work", { run: () => undefined });
    const { book } = await openTest(t, backend, { use: [work], clock: manualClock({ at: noon }) });
    await book.jobs.runNow(work);
    await book.jobs.runNow(work);
    await book.retain({ apply: true });
    const [mark] = await book.read((tx) => tx.sql<{ folded_seq: number }>`select folded_seq from daybook_run_fold`);
    assert.deepEqual([mark?.folded_seq, await findings(book)], [2, []]);

    await tamper(book, (tx) => tx.sql`update daybook_run_fold set folded_seq = 99`);
    assert.deepEqual(await findings(book), ["T1 the mark of counted runs is not beyond the last run: 99"]);
    await tamper(book, async (tx) => {
      await tx.sql`update daybook_run_fold set folded_seq = 2`;
      await tx.sql`update daybook_run_rollup set runs = runs - 1, success = success - 1 where span in ('minute', 'ever')`;
    });
    assert.deepEqual(await findings(book), [
      "T1 rollups count every run up to the mark: direct work",
      `T3 an hour counts what its minutes count, and a day what its hours do: direct  hour ${noon}, direct work hour ${noon}`,
    ]);
  });

  test(`${backend}: doctor finds a registration without an owner, and a schedule that outlives its registration`, async (t) => {
    const home = app("home", {
      setup: (it) => {
        it.on("bell", { name: "bell" }, () => undefined);
        it.every("1h", { name: "hourly" }, () => undefined);
      },
    });
    const { book } = await openTest(t, backend, { use: [home], clock: manualClock({ at: noon }) });
    assert.deepEqual(await findings(book), []);

    await tamper(book, (tx) => tx.sql`update daybook_registration set retired_at = ${noon} where name = 'hourly'`);
    const outlives = "T1 a schedule of an app is in the book as long as it is registered, and no longer";
    assert.deepEqual(await findings(book), [`${outlives}: default/home/0/hourly`]);
    await tamper(book, async (tx) => {
      await tx.sql`update daybook_registration set retired_at = null`;
      await tx.sql`delete from daybook_schedule`;
    });
    assert.deepEqual(await findings(book), [`${outlives}: default/home/0/hourly`]);
    await tamper(book, (tx) => tx.sql`delete from daybook_app_instance`);
    assert.deepEqual(
      (await findings(book))[0],
      ["T1 what is registered belongs to an instance of its app: default/home/0/bell, default/home/0/hourly"][0],
    );
  });
}
