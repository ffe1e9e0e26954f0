// A slice of test/proof/loop-verbs.test.ts, over a book of few rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heldTooLong, holdsOf, verbs } from "../support/loop-table.ts";
import { longestPieceMs, workedMs } from "../support/loop-work.ts";
import { backends } from "../support/open-test.ts";
import { worst } from "../support/worst-inputs.ts";

test("every verb of the table has a row of its worst inputs, and every row has its verb", () => {
  const rows = Object.keys(worst);

  assert.deepEqual(
    [...verbs.keys()].filter((key) => !rows.includes(key)),
    [],
    "give it a row in test/support/worst-inputs.ts",
  );
  assert.deepEqual(
    rows.filter((key) => !verbs.has(key)),
    [],
  );
});

test("work in one piece is seen as one, and work in pieces as the longest of them", async () => {
  // In processor time, as it is measured: a busy machine gives a thread little of the time that passes.
  const spin = (ms: number): void => {
    const until = workedMs() + ms;
    while (workedMs() < until) continue;
  };
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));
  const whole = await longestPieceMs(async () => spin(400));
  const pieces = await longestPieceMs(async () => {
    for (let n = 0; n < 8; n++) {
      spin(10);
      await turn();
    }
  });

  assert.ok(whole > 20, `400 ms in one piece were seen as ${whole}`);
  assert.ok(pieces < whole, `pieces of 10 ms were seen as ${pieces}, one of 400 as ${whole}`);
});

for (const backend of backends) {
  test(`${backend}: no verb holds the loop for 50 ms over a book of few rows`, async (t) => {
    assert.deepEqual(heldTooLong(await holdsOf(t, backend, 30, { isSlice: true })), []);
  });
}
