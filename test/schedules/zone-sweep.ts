// Daily schedules around every change of the clock, the product against the slow reference.
import assert from "node:assert/strict";
import { type Timing, createTiming } from "../../src/schedules/timing/timing.ts";
import { type Changes, type SlowSlot, changeDays, daysAround, slowDaily } from "./slow-reference.ts";

export const sweptYears = [2018, 2024, 2025, 2026, 2027] as const;

/** Every quarter of an hour, or every nth of them. */
export function quarters(step = 1): string[] {
  const minutes = Array.from({ length: 96 / step }, (_, index) => index * step * 15);
  return minutes.map((minute) => `${pad(Math.floor(minute / 60))}:${pad(minute % 60)}`);
}

/** Compares the days around each change of a zone's clock. Returns how many slots were compared. */
export function sweepZone(zone: string, year: number, times: readonly string[], changes: Changes = {}): number {
  let compared = 0;
  for (const day of changeDays(zone, year)) {
    const days = daysAround(day, 2, 2);
    for (const [index, time] of times.entries()) {
      const expected = slowDaily(zone, time, days, changes);
      assertSlots(timingAt(time, index, { ...changes, zone }), expected, `${zone} ${time} around ${String(day)}`);
      // The default policy in one sentence: each local day has exactly one slot.
      if (changes.gap === undefined && changes.ambiguous === undefined) assert.equal(expected.length, days.length);
      compared += expected.length;
    }
  }
  return compared;
}

export function assertSlots(timing: Timing, expected: readonly SlowSlot[], what: string): void {
  let after = (expected[0]?.at ?? 0) - 1;
  for (const slot of expected) {
    const found = timing.next(after);
    assert.deepEqual(found, slot, what);
    after = slot.at;
  }
}

/** Both ways to write it, in turn. */
function timingAt(time: string, index: number, options: Changes & { zone: string }): Timing {
  const [hour, minute] = time.split(":").map(Number);
  return createTiming(index % 2 === 0 ? { daily: time } : { cron: `${minute} ${hour} * * *` }, options);
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
