import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../support/property.ts";
import { isoTime, timeMs } from "../../src/core/time.ts";

const noon = Date.UTC(2026, 0, 31, 12);

test("a time is epoch milliseconds, a Date, an instant or ISO text with a zone", () => {
  const inputs = [
    noon,
    new Date(noon),
    { epochMilliseconds: noon },
    "2026-01-31T12:00:00Z",
    "2026-01-31T12:00Z",
    "2026-01-31T12:00:00.000000000Z",
    "2026-01-31T13:00:00+01:00",
    "2026-01-31T06:30:00-0530",
    "2026-01-31t12:00:00z",
    "+002026-01-31T12:00:00Z",
  ];
  for (const input of inputs) assert.equal(timeMs(input, "at"), noon, JSON.stringify(input));
});

test("a Temporal instant and a zoned time are taken as they are", { skip: !("Temporal" in globalThis) }, () => {
  assert.equal(timeMs(Temporal.Instant.from("2026-01-31T12:00:00.123456Z"), "at"), noon + 123);
  assert.equal(timeMs(Temporal.ZonedDateTime.from("2026-01-31T13:00+01:00[Europe/Prague]"), "at"), noon);
});

test("text without a zone is refused with advice", () => {
  for (const text of ["2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00"]) {
    assert.throws(() => timeMs(text, "runAt"), {
      code: "invalid",
      message: `runAt is "${text}", which has no time of day with a zone; append "Z" for UTC or an offset such as "+01:00"`,
    });
  }
});

test("a day that does not exist is refused instead of rolled over", () => {
  assert.equal(timeMs("2028-02-29T00:00:00Z", "at"), Date.UTC(2028, 1, 29));
  for (const day of [
    "2026-02-29",
    "2026-02-30",
    "2026-04-31",
    "2026-13-01",
    "2026-00-10",
    "2026-01-00",
    "2026-01-32",
  ]) {
    assert.throws(() => timeMs(`${day}T00:00:00Z`, "at"), { code: "invalid", message: /is not a time/ }, day);
  }
});

test("what is not a time is refused", () => {
  const texts = [
    "",
    "now",
    "tomorrow",
    "1767225600",
    "2026-01-31T24:00:00Z",
    "2026-01-31T12:60:00Z",
    "Jan 31 2026 12:00Z",
  ];
  for (const value of [...texts, null, undefined, true, {}, { epochMilliseconds: "1" }, 5n]) {
    assert.throws(() => timeMs(value as string, "at"), { code: "invalid", message: /^at is / });
  }
  assert.throws(() => timeMs(new Date("nonsense"), "at"), { code: "invalid", message: /^at is an invalid Date/ });
});

test("a number must be whole and within what a Date can hold", () => {
  assert.equal(timeMs(8.64e15, "at"), 8.64e15);
  for (const value of [1.5, Number.NaN, Infinity, 8.64e15 + 1]) {
    assert.throws(() => timeMs(value, "at"), { code: "invalid", message: /whole number of milliseconds/ });
  }
});

test("every time is shown as ISO text that reads back as the same time", () => {
  assert.equal(isoTime(noon), "2026-01-31T12:00:00.000Z");
  fc.assert(fc.property(fc.integer({ min: -8.64e15, max: 8.64e15 }), (ms) => timeMs(isoTime(ms), "at") === ms));
  for (const ms of [Number.NaN, 8.64e15 + 1]) assert.throws(() => isoTime(ms), { code: "invalid" });
});
