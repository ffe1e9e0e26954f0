// Every verb at its worst legal input, over a book of as many rows as one command may touch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { heldTooLong, holdsOf } from "../support/loop-table.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  test(`${backend}: no verb holds the loop for 50 ms at its worst legal input`, async (t) => {
    const held = await holdsOf(t, backend, limits.bulkRowsMax);

    const longest = held.toSorted((a, b) => b.ms - a.ms).slice(0, 30);
    t.diagnostic(longest.map(({ what, ms }) => `${ms} ms: ${what}`).join("\n"));
    assert.deepEqual(heldTooLong(held), []);
  });
}
