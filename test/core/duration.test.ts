import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../support/property.ts";
import { durationMs, formatDuration } from "../../src/core/duration.ts";

test("a duration is whole milliseconds or text with units", () => {
  const cases: [number | string, number][] = [
    [0, 0],
    [1500, 1500],
    ["0s", 0],
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["1h 30m", 5_400_000],
    ["90m", 5_400_000],
    ["7d", 604_800_000],
    ["2w", 1_209_600_000],
    ["1w2d3h4m5s6ms", 788_645_006],
  ];
  for (const [value, ms] of cases) assert.equal(durationMs(value), ms, String(value));
});

test("anything else is refused with the value and examples", () => {
  const texts = [
    "",
    " ",
    "5 m",
    "-5s",
    "1.5h",
    "5 minutes",
    "30m1h",
    "1h1h",
    "h",
    "5S",
    "5m ",
    " 5m",
    "1h  5m",
    "1e3ms",
  ];
  const others = [-1, 1.5, Number.NaN, Infinity, null, undefined, true, 5n, {}, [], () => 5, Symbol("s")];
  for (const value of [...texts, ...others]) {
    assert.throws(() => durationMs(value as number, "timeout"), {
      code: "invalid",
      message: /^timeout is .*, which is not a duration; use milliseconds .*"30s"/,
    });
  }
  assert.throws(() => durationMs("5 minutes", "delay"), /delay is "5 minutes"/);
  assert.throws(() => durationMs("5", "delay"), {
    code: "invalid",
    message: /^delay is "5", which has no unit; .*"5s"/,
  });
});

test("a duration outside its bounds is refused with the bound", () => {
  assert.equal(durationMs("1s", "ttl", { min: 1000, max: 1000 }), 1000);
  assert.throws(() => durationMs("1s", "ttl", { min: 2000 }), /ttl is "1s"; it must be at least 2s/);
  assert.throws(() => durationMs(61_000, "ttl", { max: 60_000 }), /ttl is 61000; it must be at most 1m/);
  assert.throws(() => durationMs("99999999w"), /it must be at most 36525d/);
});

test("a duration is shown short, in at most two units", () => {
  const cases: [number, string][] = [
    [0, "0ms"],
    [0.4, "0ms"],
    [250, "250ms"],
    [1500, "1s 500ms"],
    [59_999.6, "1m"],
    [5_400_000, "1h 30m"],
    [5_399_999, "1h 29m"],
    [86_400_005, "1d"],
    [864_000_000, "10d"],
    [-90_000, "-1m 30s"],
    [Infinity, "Infinity"],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test("what is shown can be read again and is never longer than the truth", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 11 }), (ms) => {
      const read = durationMs(formatDuration(ms));
      assert.ok(read <= ms && read > ms * 0.95 - 1);
    }),
  );
});
