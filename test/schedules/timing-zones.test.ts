import assert from "node:assert/strict";
import { test } from "node:test";
import { quarters, sweepZone, sweptYears } from "./zone-sweep.ts";

// Gaps and overlaps at midnight, of half an hour, in both halves of the world; test/proof sweeps every zone.
const zones = [
  "Europe/Madrid",
  "America/Sao_Paulo",
  "America/Havana",
  "America/Asuncion",
  "America/Santiago",
  "America/New_York",
  "America/Scoresbysund",
  "Asia/Beirut",
  "Asia/Gaza",
  "Atlantic/Azores",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Australia/Lord_Howe",
  "Antarctica/Troll",
  "Pacific/Chatham",
];

for (const zone of zones) {
  test(`a daily schedule runs once on each local day around the clock changes of ${zone}`, () => {
    let compared = 0;
    for (const year of sweptYears) compared += sweepZone(zone, year, quarters(year === 2026 || year === 2018 ? 1 : 8));

    assert.ok(compared > 0);
  });
}

test("skip, last and both do what they say in zones of every kind of change", () => {
  for (const zone of zones.slice(0, 8)) {
    for (const gap of ["shift", "skip"] as const) {
      for (const ambiguous of ["first", "last", "both"] as const) {
        for (const year of [2018, 2026]) sweepZone(zone, year, quarters(2), { gap, ambiguous });
      }
    }
  }
});
