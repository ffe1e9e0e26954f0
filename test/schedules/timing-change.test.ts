import assert from "node:assert/strict";
import { test } from "node:test";
import { type TimingInput, type TimingOptions, createTiming } from "../../src/schedules/timing/timing.ts";
import { daysAround, slowCalendar, slowClock } from "./slow-reference.ts";
import { assertSlots } from "./zone-sweep.ts";

/** "…Z local dst" of the first slots after a moment. */
function firstSlots(input: TimingInput, options: TimingOptions, after: string, count: number): string[] {
  const timing = createTiming(input, options);
  const found: string[] = [];
  let at = Date.parse(after);
  while (found.length < count) {
    const slot = timing.next(at);
    if (slot === null) return [...found, "none"];
    found.push(`${new Date(slot.at).toISOString().slice(0, 16)}Z ${slot.local.slice(0, 16)} ${slot.dst ?? "-"}`);
    at = slot.at;
  }
  return found;
}

const changes = [
  ["Europe/Madrid", "2026-03-29"],
  ["Europe/Madrid", "2026-10-25"],
  ["America/New_York", "2026-03-08"],
  ["America/New_York", "2026-11-01"],
  ["Australia/Lord_Howe", "2026-04-05"],
  ["Australia/Lord_Howe", "2026-10-04"],
  ["America/Sao_Paulo", "2018-02-18"],
  ["America/Sao_Paulo", "2018-11-04"],
  ["Asia/Beirut", "2026-03-29"],
  ["Asia/Beirut", "2026-10-25"],
  ["Pacific/Apia", "2011-12-30"],
] as const;

for (const [zone, date] of changes) {
  const noon = Temporal.PlainDate.from(date).toZonedDateTime({ timeZone: "UTC", plainTime: "12:00" });
  const span = { from: noon.epochMilliseconds - 129_600_000, to: noon.epochMilliseconds + 129_600_000 };

  test(`every half hour is every real half hour, through the change of ${zone} on ${date}`, () => {
    const timing = createTiming({ cron: "*/30 * * * *" }, { zone });

    const found: number[] = [];
    for (let slot = timing.next(span.from - 1); slot !== null && slot.at < span.to; slot = timing.next(slot.at)) {
      found.push(slot.at);
    }

    const steps = found.slice(1).map((at, index) => at - (found[index] ?? 0));
    assert.deepEqual([...new Set(steps)], [1_800_000]);
    assert.deepEqual(
      found,
      slowClock(zone, span, ({ minute }) => minute % 30 === 0),
    );
  });

  test(`an hourly schedule runs whenever the clock reads its minute, through the change of ${zone} on ${date}`, () => {
    for (const minute of [0, 17]) {
      const timing = createTiming({ cron: `${minute} * * * *` }, { zone });
      const found: number[] = [];
      for (let slot = timing.next(span.from - 1); slot !== null && slot.at < span.to; slot = timing.next(slot.at)) {
        found.push(slot.at);
      }

      const steps = new Set(found.slice(1).map((at, index) => at - (found[index] ?? 0)));
      assert.deepEqual(
        found,
        slowClock(zone, span, (local) => local.minute === minute),
      );
      // Where the clock moves by half an hour, the minute comes once 90 minutes after the one before (docs/schedules.md says so).
      const apart = zone === "Australia/Lord_Howe" ? [3_600_000, 5_400_000] : [3_600_000];
      assert.deepEqual([...steps], apart);
    }
  });

  test(`times of the day are each due once, through the change of ${zone} on ${date}`, () => {
    const days = daysAround(Temporal.PlainDate.from(date), 2, 2);
    const named = {
      "0 */2 * * *": (local: Temporal.PlainDateTime) => local.hour % 2 === 0 && local.minute === 0,
      "*/20 0-3,23 * * *": (local: Temporal.PlainDateTime) =>
        (local.hour < 4 || local.hour === 23) && local.minute % 20 === 0,
    };
    for (const [cron, due] of Object.entries(named)) {
      for (const ambiguous of ["first", "last", "both"] as const) {
        for (const gap of ["shift", "skip"] as const) {
          const expected = slowCalendar(zone, days, due, { gap, ambiguous });
          assertSlots(createTiming({ cron }, { zone, gap, ambiguous }), expected, `${cron} ${gap} ${ambiguous}`);
        }
      }
    }
  });
}

test("a time in a gap moves to its end, and the slot shows the intended local time", () => {
  assert.deepEqual(firstSlots({ daily: "02:30" }, { zone: "Europe/Madrid" }, "2026-03-28T12:00Z", 2), [
    "2026-03-29T01:00Z 2026-03-29T02:30 gap",
    "2026-03-30T00:30Z 2026-03-30T02:30 -",
  ]);
});

test("midnight that does not exist is the end of the gap on the same day", () => {
  assert.deepEqual(firstSlots({ cron: "@daily" }, { zone: "America/Sao_Paulo" }, "2018-11-03T12:00Z", 2), [
    "2018-11-04T03:00Z 2018-11-04T00:00 gap",
    "2018-11-05T02:00Z 2018-11-05T00:00 -",
  ]);
});

test("a gap that ends at midnight moves its times to the next day", () => {
  // Nuuk puts its clock forward when it reads 23:00 on Saturday; then it reads midnight.
  assert.deepEqual(firstSlots({ daily: "23:30" }, { zone: "America/Nuuk" }, "2026-03-28T12:00Z", 2), [
    "2026-03-29T01:00Z 2026-03-28T23:30 gap",
    "2026-03-30T00:30Z 2026-03-29T23:30 -",
  ]);
});

test("times that move to the same moment are one slot, called by the first of them", () => {
  assert.deepEqual(firstSlots({ cron: "*/15 2 * * *" }, { zone: "Europe/Madrid" }, "2026-03-28T12:00Z", 2), [
    "2026-03-29T01:00Z 2026-03-29T02:00 gap",
    "2026-03-30T00:00Z 2026-03-30T02:00 -",
  ]);
});

test("a time that a gap moves onto another slot of the schedule makes no second slot", () => {
  assert.deepEqual(firstSlots({ cron: "0 2,3 * * *" }, { zone: "Europe/Madrid" }, "2026-03-28T12:00Z", 2), [
    "2026-03-29T01:00Z 2026-03-29T03:00 -",
    "2026-03-30T00:00Z 2026-03-30T02:00 -",
  ]);
});

test("a yearly time in the repeated hour comes again the same night when both are asked for", () => {
  const zone = "Europe/Madrid";
  assert.deepEqual(firstSlots({ cron: "30 2 25 10 *" }, { zone, ambiguous: "both" }, "2026-01-01T00:00Z", 3), [
    "2026-10-25T00:30Z 2026-10-25T02:30 ambiguous",
    "2026-10-25T01:30Z 2026-10-25T02:30 ambiguous",
    "2027-10-25T00:30Z 2027-10-25T02:30 -",
  ]);
});

test("Samoa's missing day is due at its end", () => {
  assert.deepEqual(firstSlots({ daily: "09:00" }, { zone: "Pacific/Apia" }, "2011-12-29T12:00Z", 3), [
    "2011-12-29T19:00Z 2011-12-29T09:00 -",
    "2011-12-30T10:00Z 2011-12-30T09:00 gap",
    "2011-12-30T19:00Z 2011-12-31T09:00 -",
  ]);
});

test("an interval keeps its pace through clock changes, counted from its anchor", () => {
  const anchored = { every: "90m", anchor: "2026-03-29T00:10:00Z" };
  assert.deepEqual(firstSlots(anchored, { zone: "Europe/Madrid" }, "2026-03-28T23:00Z", 3), [
    "2026-03-29T00:10Z 2026-03-29T01:10 -",
    "2026-03-29T01:40Z 2026-03-29T03:40 -",
    "2026-03-29T03:10Z 2026-03-29T05:10 -",
  ]);
});

test("start counts and end does not", () => {
  const bounds = { start: "2026-01-02T07:00Z", end: "2026-01-04T07:00Z" };
  assert.deepEqual(firstSlots({ daily: "07:00" }, bounds, "2020-01-01T00:00Z", 9), [
    "2026-01-02T07:00Z 2026-01-02T07:00 -",
    "2026-01-03T07:00Z 2026-01-03T07:00 -",
    "none",
  ]);
  assert.deepEqual(firstSlots({ at: "2026-01-02T07:00Z" }, bounds, "2020-01-01T00:00Z", 9), [
    "2026-01-02T07:00Z 2026-01-02T07:00 -",
    "none",
  ]);
});
