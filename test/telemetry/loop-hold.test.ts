import assert from "node:assert/strict";
import { test } from "node:test";
import { measureHolds, openBookOfSize } from "../support/session-loop.ts";

test("reading, copying and examining a book of 20 MB holds the event loop for less than 50 ms", async (t) => {
  const book = await openBookOfSize(t, 20);

  const holds = await measureHolds(t, book);

  for (const [verb, ms] of Object.entries(holds)) assert.ok(ms < 50, `${verb} held the loop for ${ms} ms`);
});
