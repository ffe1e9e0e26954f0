import assert from "node:assert/strict";
import { test } from "node:test";
import { plainCell, showBytes, showTime } from "../../src/cli/show.ts";
import { systemClock } from "../../src/core/clock.ts";

test("sizes are shown in the unit that keeps them short", () => {
  assert.deepEqual([0, 1, 1023, 1024, 1536, 1024 ** 2, 3.2 * 1024 ** 3, 5000 * 1024 ** 4].map(showBytes), [
    "0 B",
    "1 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "1.0 MiB",
    "3.2 GiB",
    "5000.0 TiB",
  ]);
});

test("a moment is shown by its distance and exactly", (t) => {
  const now = systemClock.now();
  t.mock.timers.enable({ apis: ["Date"], now });

  assert.equal(showTime(now).ago, "now");
  assert.equal(showTime(now - 3_661_000).ago, "1h 1m ago");
  assert.equal(showTime(now + 61_000).ago, "in 1m 1s");
  assert.equal(showTime(0).exact, "1970-01-01T00:00:00Z");
  assert.deepEqual(showTime(null), { ago: "", exact: "" });
});

test("text from the book stays on its line and within its length", () => {
  assert.equal(plainCell("a\u001B[31mb\r\n\tc\u0000d"), "ab c d");
  assert.equal(plainCell("abcdef", 4), "abc…");
});
