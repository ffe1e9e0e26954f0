import assert from "node:assert/strict";
import { test } from "node:test";
import { isDaybookError } from "../../src/core/error.ts";
import { parseCron } from "../../src/schedules/timing/cron.ts";
import { nextSlot } from "../../src/schedules/timing/slot.ts";
import type { Plan } from "../../src/schedules/timing/plan.ts";
import { type TimingInput, type TimingOptions, createTiming } from "../../src/schedules/timing/timing.ts";
import { type Zone, zoneOf } from "../../src/schedules/timing/zone.ts";

function assertRefused(input: TimingInput, options: TimingOptions, message: RegExp): void {
  assert.throws(
    () => createTiming(input, options),
    (error) => isDaybookError(error) && error.code === "invalid" && message.test(error.message),
    `${JSON.stringify({ input, options }).slice(0, 200)} with ${String(message)}`,
  );
}

const badCrons: Readonly<Record<string, RegExp>> = {
  "": /cron is empty; write five fields such as/,
  "   ": /cron is empty/,
  "* * * *": /has 4 fields; write five .* or six with the seconds first/,
  "* * * * * * *": /has 7 fields; .* no field for years, use start and end/,
  "1 2 3 4 5 6 7 8": /has 8 fields/,
  "*/0 * * * *": /minute is "\*\/0"; the step in "\*\/0" must be a whole number from 1 to 60/,
  "*/61 * * * *": /the step/,
  "*/5/5 * * * *": /the step/,
  "5/15 * * * *": /write "5-59\/15" for "5\/15"/,
  "60 * * * *": /minute is "60"; "60" is not a number from 0 to 59/,
  "* 24 * * *": /hour is "24"/,
  "* * 0 * *": /day of month is "0"/,
  "* * 32 * *": /day of month is "32"/,
  "* * * 13 *": /month is "13"; .* or JAN to DEC/,
  "* * * * 8": /day of week is "8"/,
  "5X * * * *": /"5X" is not a number/,
  "-1 * * * *": /"-1" is not a number/,
  "1.5 * * * *": /"1.5" is not a number/,
  "1,,2 * * * *": /a part of its list is empty/,
  "5-1 * * * *": /"5-1" runs backwards; write "5-59,0-1"/,
  "0 22-6 * * *": /write "22-23,0-6"/,
  "0 0 * * FRI-MON": /"FRI-MON" runs backwards; write "5-6,0-1"/,
  "0 0 L-3 * *": /"L-3" is not/,
  "0 0 1,LW * *": /"LW" alone/,
  "0 0 * * MON#6": /"MON#6" is not/,
  "0 0 * * L": /"L" is not/,
  "0 0 * * +MON": /"\+MON" is not/,
  "0 0 31 2 *": /never due/,
  "0 0 30,31 2 *": /never due/,
  "0 0 31 4,6,9,11 ?": /never due/,
  "0 0 30W 2 *": /never due/,
  "0 \u{0} * * *": /holds the character U\+0000/,
  "０ 7 * * *": /holds the character U\+FF10; use plain letters and digits/,
  "0 7 * * *\n": /U\+000A/,
  "0 7 * * MON 0": /The seconds come first here: did you mean "0 0 7 \* \* MON"\?/,
  "*/5 8-18 ? * MON-FRI 30": /did you mean "30 \*\/5 8-18 \? \* MON-FRI"\?/,
  "@dialy": /unknown: did you mean "@daily"\?/,
  "@reboot": /unknown\. Known: @hourly/,
  "@constructor": /unknown/,
};

for (const [cron, message] of Object.entries(badCrons)) {
  test(`the cron ${JSON.stringify(cron)} is refused, and the message says what to write`, () => {
    assertRefused({ cron }, {}, message);
  });
}

test("a list of five thousand items is refused by its length, before it is read", () => {
  const list = Array.from({ length: 5000 }, (_, index) => index % 60).join(",");

  assertRefused({ cron: `${list} * * * *` }, {}, /of \d+ characters; at most 500 are allowed/);
});

test("an unknown zone is refused with the nearest name", () => {
  const near = { "Europe/Madird": "Europe/Madrid", madrid: "Europe/Madrid", "America/New York": "America/New_York" };
  for (const [zone, meant] of Object.entries(near)) {
    assertRefused({ daily: "07:00" }, { zone }, new RegExp(`did you mean "${meant}"`));
  }
  for (const zone of ["", "Mars/Olympus_Mons", "2020-01-01T00:00Z", "\u{0}", "x".repeat(10_000)]) {
    assertRefused({ daily: "07:00" }, { zone }, /no time zone known here; use an IANA name/);
  }
});

test("times, durations and options that make no sense are refused", () => {
  for (const daily of ["25:00", "24:00", "7:00", "07:60", "07:00:60", "", "07:00Z"]) {
    assertRefused({ daily }, {}, /daily is .* it must be a time of day from "00:00" to "23:59"/);
  }
  for (const every of [0, "0s", 999]) assertRefused({ every }, {}, /every is .* it must be at least 1s/);
  assertRefused({ every: "6000w" }, {}, /it must be at most/);
  assertRefused({ every: "soon" }, {}, /not a duration/);
  assertRefused({ at: "2026-01-01" }, {}, /no time of day with a zone/);
  assertRefused({ at: "+012026-01-01T00:00Z" }, {}, /the years 1900 to 9999/);
  const start = "2026-01-02T00:00Z";
  assertRefused({ daily: "07:00" }, { start, end: "2026-01-01T00:00Z" }, /end is .* not after start/);
  assertRefused({ daily: "07:00" }, { start, end: "2026-01-02T06:00Z" }, /never due from .* before .*; change start/);
  assertRefused({ at: "2026-01-01T00:00Z" }, { start }, /never due from/);
  assertRefused(
    { daily: "07:00", cron: "@daily" },
    {},
    /exactly one of cron, every, at, in, daily; it has cron and daily/,
  );
});

test("a time that skip leaves out every year is refused", () => {
  const lastSundayOfMarch = { cron: "30 2 * 3 SUNL" };
  assertRefused(lastSundayOfMarch, { zone: "Europe/Madrid", gap: "skip" }, /never due in Europe\/Madrid.* "skip"; use/);

  assert.equal(createTiming(lastSundayOfMarch, { zone: "Europe/Madrid" }).next(Date.UTC(2026, 0))?.dst, "gap");
});

/** How many months and periods of the zone a search looks at. */
function countSteps(cron: string, gap: "shift" | "skip"): number {
  let steps = 0;
  const { plan } = parseCron(cron);
  const counted: Plan = { ...plan, days: (length, weekday) => (steps++, plan.days(length, weekday)) };
  const madrid = zoneOf("Europe/Madrid");
  const zone: Zone = { name: madrid.name, periodAt: (ms) => (steps++, madrid.periodAt(ms)) };
  nextSlot(counted, zone, { gap, ambiguous: "first" }, Date.UTC(2096, 2, 1));
  return steps;
}

test("a search takes few steps, and one that finds nothing ends", () => {
  assert.ok(countSteps("30 7 * * *", "shift") <= 3);
  // The next 29th of February is eight years away, on a Friday forty.
  assert.ok(countSteps("0 0 29 2 *", "shift") <= 20);
  assert.ok(countSteps("0 0 * 2 5#5", "shift") <= 60);
  assert.ok(countSteps("30 2 * 3 SUNL", "skip") <= 3000);
});
