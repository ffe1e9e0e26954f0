import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../support/property.ts";
import { createIds, isId, seededRandom, systemRandom } from "../../src/core/id.ts";
import { manualClock } from "../../src/core/manual-clock.ts";

test("an id is UUIDv7 text that carries the time it was made", () => {
  const clock = manualClock({ at: 1_800_000_000_000 });

  const id = createIds(clock, systemRandom)();

  assert.ok(isId(id));
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
        assert.ok(id > last && isId(id), `${id} after ${last}`);
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

test("only lower-case hyphenated UUIDv7 text is an id", () => {
  const id = "0189dcd5-5311-7d40-8db0-9496a2eef37b";
  assert.ok(isId(id));
  const others = [id.toUpperCase(), id.replace("-7", "-4"), id.replaceAll("-", ""), `${id}\n`, ` ${id}`, "", "job"];
  for (const other of others) assert.equal(isId(other), false, JSON.stringify(other));
});
