import assert from "node:assert/strict";
import { test } from "node:test";
import { createTiming } from "../../src/schedules/timing/timing.ts";
import { daysAround, slowDaily } from "../schedules/slow-reference.ts";
import { assertSlots, quarters, sweepZone, sweptYears } from "../schedules/zone-sweep.ts";

const zones = Intl.supportedValuesOf("timeZone");

for (const year of sweptYears) {
  test(`in all ${zones.length} zones each quarter hour runs once per local day around the changes of ${year}`, (t) => {
    let compared = 0;
    for (const zone of zones) compared += sweepZone(zone, year, quarters());

    t.diagnostic(`${compared} slots compared`);
    assert.ok(compared > 10_000);
  });
}

test("in all zones skip, last and both do what they say around the changes of 2018 and 2026", () => {
  let compared = 0;
  for (const zone of zones) {
    for (const year of [2018, 2026]) {
      for (const changes of [{ gap: "skip" }, { ambiguous: "last" }, { gap: "skip", ambiguous: "both" }] as const) {
        compared += sweepZone(zone, year, quarters(3), changes);
      }
    }
  }

  assert.ok(compared > 10_000);
});

test("in all zones a daily schedule runs once on each of 1,461 days", () => {
  const days = daysAround(Temporal.PlainDate.from("2024-01-01"), 0, 1460);

  for (const [index, zone] of zones.entries()) {
    const time = quarters()[index % 96] ?? "00:00";
    const expected = slowDaily(zone, time, days, {});
    assertSlots(createTiming({ daily: time }, { zone }), expected, `${zone} ${time}`);
    assert.equal(expected.length, days.length);
  }
});
