// PostgreSQL only: the connection breaks while a transaction of direct work commits, and nobody can say what became of it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, type Book } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";

/** A book whose connection breaks right after the commit of the first transaction with such a statement. Other transactions commit
 *  at the same time, each by a connection of its own. The job does not end before that. */
async function openBreaking(
  t: TestContext,
  statement: RegExp,
): Promise<{ book: Book; runNow(): Promise<unknown>; ran(): number }> {
  const broken = Promise.withResolvers<void>();
  let ran = 0;
  let committing: object | "none yet" | "broken" = "none yet";
  const direct = job("direct", {
    async run() {
      ran++;
      await broken.promise;
      return "done";
    },
  });
  const { book } = await openTest(t, "postgres", {
    use: [direct],
    fault(moment, text, connection) {
      if (moment !== "after") return;
      if (committing === "none yet" && statement.test(text)) committing = connection;
      if (committing !== connection || text !== "commit") return;
      committing = "broken";
      broken.resolve();
      throw new Error("the connection broke");
    },
  });
  return { book, runNow: () => book.jobs.runNow(direct, {}), ran: () => ran };
}

const lost = {
  "whose claim was lost on the way is claimed again": /^update daybook_line as line set status = 'running'/,
  "whose caller lost its mark on the way is waited for all the same": /^update daybook_line set awaited = 1/,
} as const;

for (const [what, statement] of Object.entries(lost)) {
  test(`direct work ${what}, and runs once`, async (t) => {
    const { book, runNow, ran } = await openBreaking(t, statement);

    assert.equal(await runNow(), "done");

    assert.equal(ran(), 1);
    const { items } = await book.jobs.list();
    assert.deepEqual(
      items.map(({ status, origin }) => [status, origin]),
      [["completed", "direct"]],
    );
    assert.deepEqual(await book.reservations.list(), []);
    assert.deepEqual(await book.doctor(), []);
  });
}

test("a turn whose answer was lost on the way is given up: the caller is told, and the queue is not held", async (t) => {
  const { book, runNow } = await openBreaking(t, /^insert into daybook_reservation/);

  await assert.rejects(runNow(), { code: "unknown_outcome" });

  assert.deepEqual(await book.reservations.list(), []);
  assert.deepEqual(
    (await book.jobs.list()).items.map(({ status }) => status),
    ["cancelled"],
  );
  assert.equal(await runNow(), "done");
});
