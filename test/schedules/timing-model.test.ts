import assert from "node:assert/strict";
import { test } from "node:test";
import { spanOf } from "../../src/schedules/timing/slot.ts";
import { type Slot, type Timing, createTiming, restoreTiming } from "../../src/schedules/timing/timing.ts";
import { fc } from "../support/property.ts";
import { anyCron } from "./any-cron.ts";

const moment = fc.integer({ min: Date.UTC(2017, 0), max: Date.UTC(2031, 0) });
const zone = fc.constantFrom("UTC", "Europe/Madrid", "America/Sao_Paulo", "Australia/Lord_Howe", "America/Nuuk");
const changes = fc.record({
  zone,
  gap: fc.constantFrom("shift", "skip"),
  ambiguous: fc.constantFrom("first", "last", "both"),
});
const daily = fc
  .record({ hour: fc.integer({ min: 0, max: 23 }), minute: fc.constantFrom(0, 15, 30, 59) })
  .map(({ hour, minute }) => `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`);

const timing: fc.Arbitrary<Timing> = fc.oneof(
  fc.tuple(anyCron, changes).map(([{ cron }, options]) => createTiming({ cron }, options)),
  fc.tuple(daily, changes).map(([time, options]) => createTiming({ daily: time }, options)),
  fc
    .tuple(fc.integer({ min: 1000, max: 1e8 }), moment, changes)
    .map(([every, anchor, options]) => createTiming({ every, anchor }, options)),
  fc
    .tuple(fc.integer({ min: 3_600_000, max: 1e8 }), moment, zone)
    .map(([every, start, name]) => createTiming({ every }, { zone: name, start, end: start + 1e9 })),
  fc.tuple(moment, zone).map(([at, name]) => createTiming({ at }, { zone: name })),
);

function slotsOf(each: Timing, after: number, count: number): Slot[] {
  const slots: Slot[] = [];
  for (let slot = each.next(after); slot !== null && slots.length < count; slot = each.next(slot.at)) slots.push(slot);
  return slots;
}

test("slots strictly increase, and asking from any moment between two gives the second", () => {
  fc.assert(
    fc.property(timing, moment, fc.double({ min: 0, max: 1, noNaN: true }), (each, after, share) => {
      const slots = slotsOf(each, after, 30);
      for (const [index, slot] of slots.entries()) {
        const before = slots[index - 1]?.at ?? after;
        assert.ok(slot.at > before);
        assert.deepEqual(each.next(Math.floor(before + (slot.at - 1 - before) * share)), slot);
      }
    }),
    { numRuns: 300 },
  );
});

test("a span has the slots that repeated next() finds", () => {
  fc.assert(
    fc.property(timing, moment, fc.nat(60), fc.integer({ min: 1, max: 70 }), (each, after, count, most) => {
      const slots = slotsOf(each, after, count);
      const until = (slots.at(-1)?.at ?? after) + (count % 3 === 0 ? 1 : 0);
      const inside = slots.filter(({ at }) => at <= until);
      const found = each.span(after, until, most);

      if (inside.length === 0) assert.equal(found, null);
      else {
        const counted = Math.min(inside.length, most);
        const more = inside.length > most;
        assert.deepEqual(found, { count: counted, first: inside[0], last: inside.at(-1), more });
      }
    }),
    { numRuns: 300 },
  );
});

test("a span of many years takes few steps, however fine the schedule", () => {
  const every = createTiming({ cron: "* * * * * *" }, { zone: "Europe/Madrid" });
  let asked = 0;
  const counting = (after: number) => (asked++, every.next(after));

  const found = spanOf(counting, Date.UTC(1996, 0), Date.UTC(2026, 0, 1, 0, 0, 0, 999), 1000);

  assert.deepEqual([found?.count, found?.more, found?.last.at], [1000, true, Date.UTC(2026, 0, 1)]);
  assert.ok(asked <= 1100, `asked ${asked} times`);
});

test("the last slot of a span is found wherever it lies between the first and the end", () => {
  // Ten slots in a row, then none for most of the hour: the search has to halve its way into the row.
  const timing = createTiming({ cron: "0-9 0 * * * *" });
  const day = Date.UTC(2026, 0, 1);
  for (let ms = 0; ms < 7_200_000; ms += 500) {
    const secondOfHour = Math.min(9, Math.floor((ms % 3_600_000) / 1000));
    const last = day + Math.floor(ms / 3_600_000) * 3_600_000 + secondOfHour * 1000;

    assert.equal(timing.span(day - 7_200_000, day + ms, 1)?.last.at, last);
  }
});

test("a restored timing is the same timing", () => {
  fc.assert(
    fc.property(timing, moment, (each, after) => {
      const restored = restoreTiming(structuredClone(each.stored));

      assert.deepEqual(restored.stored, each.stored);
      assert.deepEqual([restored.kind, restored.expression, restored.zone], [each.kind, each.expression, each.zone]);
      assert.equal(restored.words, each.words);
      assert.deepEqual(slotsOf(restored, after, 5), slotsOf(each, after, 5));
    }),
    { numRuns: 300 },
  );
});

test("the days of an expression are those of a naive reading: OR of both day fields, L, LW, W, #, names", () => {
  fc.assert(
    fc.property(
      anyCron,
      fc.date({ min: new Date("2020-01-01"), max: new Date("2030-01-01"), noInvalidDate: true }),
      ({ cron, isDay, isTime }, from) => {
        const timing = createTiming({ cron });
        let day = Temporal.PlainDate.from(from.toISOString().slice(0, 10));
        let after = Date.parse(`${String(day)}T00:00Z`) - 1;
        for (let walked = 0; walked < 500; walked++, day = day.add({ days: 1 })) {
          if (!isDay(day)) continue;
          const slot = timing.next(after);
          assert.equal(slot?.local.slice(0, 10), String(day), cron);
          const [hour = 0, minute = 0] = slot?.local.slice(11).split(":").map(Number) ?? [];
          const first = Array.from({ length: 1440 }, (_, index) => index).find((index) =>
            isTime(Math.floor(index / 60), index % 60),
          );
          assert.equal(hour * 60 + minute, first, cron);
          after = Date.parse(`${String(day)}T23:59:59Z`);
        }
      },
    ),
    { numRuns: 150 },
  );
});
