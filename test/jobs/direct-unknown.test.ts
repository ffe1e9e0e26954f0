// PostgreSQL only: the connection breaks while a transaction of direct work commits, and nobody can say what became of it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, manualClock, type Book, type ManualClock } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

const direct = job("direct", { run: () => "ran" });

/** A book whose connection breaks right after the commit of the first transaction with such a statement. Until then time
 *  stands still, so that no beat commits in between. */
async function openBreaking(
  t: TestContext,
  statement: RegExp,
): Promise<{ book: Book; clock: ManualClock; runNow(): Promise<unknown> }> {
  const clock = manualClock();
  const broken = Promise.withResolvers<void>();
  let state: "before" | "committing" | "broken" = "before";
  const { book } = await openTest(t, "postgres", {
    use: [direct],
    clock,
    fault(moment, text) {
      if (state === "before" && moment === "after" && statement.test(text)) state = "committing";
      if (state !== "committing" || moment !== "after" || text !== "commit") return;
      state = "broken";
      broken.resolve();
      throw new Error("the connection broke");
    },
  });
  const runNow = async (): Promise<unknown> => {
    const ran = book.jobs.runNow(direct, {});
    await broken.promise;
    return whileTimePasses(clock, ran, 50);
  };
  return { book, clock, runNow };
}

test("direct work whose claim was lost on the way is claimed again, and runs once", async (t) => {
  const { book, clock, runNow } = await openBreaking(t, /^update daybook_line as line set status = 'running'/);

  assert.equal(await runNow(), "ran");

  const { items } = await book.jobs.list();
  assert.deepEqual(
    items.map(({ status, origin }) => [status, origin]),
    [["completed", "direct"]],
  );
  assert.deepEqual(await book.reservations.list(), []);
  assert.deepEqual(await book.doctor(), []);
  await whileTimePasses(clock, book.close(), 50);
});

test("a turn whose answer was lost on the way is given up: the caller is told, and the queue is not held", async (t) => {
  const { book, clock, runNow } = await openBreaking(t, /^insert into daybook_reservation/);

  await assert.rejects(runNow(), { code: "unknown_outcome" });

  assert.deepEqual(await book.reservations.list(), []);
  assert.deepEqual(
    (await book.jobs.list()).items.map(({ status }) => status),
    ["cancelled"],
  );
  assert.equal(await runNow(), "ran");
  await whileTimePasses(clock, book.close(), 50);
});
