import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../support/property.ts";
import { createIds, seededRandom, systemRandom } from "../../src/core/id.ts";
import { manualClock } from "../../src/core/manual-clock.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("an id is UUIDv7 text that carries the time it was made", () => {
  const clock = manualClock({ at: 1_800_000_000_000 });

  const id = createIds(clock, systemRandom)();

  assert.match(id, uuidV7);
  assert.equal(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16), 1_800_000_000_000);
});

test("ids strictly increase whatever the clock does", () => {
  const steps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: -(10 ** 13), max: 10 ** 13 })), { maxLength: 200 });
  fc.assert(
    fc.property(steps, fc.integer(), (moves, seed) => {
      const clock = manualClock();
      const next = createIds(clock, seededRandom(seed));
      let last = next();
      for (const ms of moves) {
        clock.step(ms);
        const id = next();
        assert.ok(id > last && uuidV7.test(id), `${id} after ${last}`);
        last = id;
      }
    }),
  );
});

test("ids strictly increase when the counter of a millisecond runs out", () => {
  const next = createIds(manualClock(), () => 1 - 2 ** -53);
  let last = next();
  for (let i = 0; i < 1000; i++) {
    const id = next();
    assert.ok(id > last, `${id} after ${last}`);
    last = id;
  }
});

test("ten thousand ids of one millisecond are all different", () => {
  const next = createIds(manualClock(), systemRandom);

  assert.equal(new Set(Array.from({ length: 10_000 }, next)).size, 10_000);
});
