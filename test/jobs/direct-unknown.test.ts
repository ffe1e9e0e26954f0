// PostgreSQL only: the connection breaks while a transaction of direct work commits, and nobody can say what became of it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, manualClock, type Book, type ManualClock } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

const direct = job("direct", { run: () => "ran" });

/** A book whose connection breaks right after the commit of the first transaction with such a statement. */
async function openBreaking(t: TestContext, statement: RegExp): Promise<{ book: Book; clock: ManualClock }> {
  const clock = manualClock();
  let state: "before" | "committing" | "broken" = "before";
  const { book } = await openTest(t, "postgres", {
    ...{ use: [direct], clock },
    fault(moment, text) {
      if (state === "before" && moment === "after" && statement.test(text)) state = "committing";
      if (state !== "committing" || moment !== "after" || text !== "commit") return;
      state = "broken";
      throw new Error("the connection broke");
    },
  });
  return { book, clock };
}

test("direct work whose claim was lost on the way is claimed again, and runs once", async (t) => {
  const { book, clock } = await openBreaking(t, /^update job set status = 'running'/);

  assert.equal(await whileTimePasses(clock, book.jobs.runNow(direct, {}), 50), "ran");

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
  const { book, clock } = await openBreaking(t, /^insert into reservation/);

  await assert.rejects(whileTimePasses(clock, book.jobs.runNow(direct, {}), 50), { code: "unknown_outcome" });

  assert.deepEqual(await book.reservations.list(), []);
  assert.deepEqual(
    (await book.jobs.list()).items.map(({ status }) => status),
    ["cancelled"],
  );
  assert.equal(await whileTimePasses(clock, book.jobs.runNow(direct, {}), 50), "ran");
  await whileTimePasses(clock, book.close(), 50);
});
