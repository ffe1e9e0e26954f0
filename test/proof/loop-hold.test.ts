// Must show 5, its last sentence, in full.
import assert from "node:assert/strict";
import { test } from "node:test";
import { measureHolds, openBookOfSize } from "../support/session-loop.ts";

test("reading, copying and examining a book of 400 MB holds the event loop for less than 50 ms", async (t) => {
  const book = await openBookOfSize(t, 400);
  const { bytes } = await book.info();
  assert.ok(bytes >= 400e6, `the book has only ${bytes} bytes`);

  const holds = await measureHolds(t, book);

  for (const [verb, ms] of Object.entries(holds)) assert.ok(ms < 50, `${verb} held the loop for ${ms} ms`);
});
