import assert from "node:assert/strict";
import { test } from "node:test";
import { jitter, seededRandom, systemRandom } from "../../src/core/id.ts";

for (const [name, random] of Object.entries({ system: systemRandom, seeded: seededRandom(42) })) {
  test(`${name} random numbers lie in [0, 1) and spread evenly`, () => {
    const tenths = Array.from({ length: 10 }, () => 0);
    for (let i = 0; i < 20_000; i++) {
      const number = random();
      assert.ok(number >= 0 && number < 1);
      const tenth = Math.floor(number * 10);
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    for (const count of tenths) assert.ok(count > 1700 && count < 2300, `${count} of about 2000`);
  });
}

test("a seed gives the same numbers again, and another seed others", () => {
  const take = (seed: number) => Array.from({ length: 5 }, seededRandom(seed));

  assert.deepEqual(take(1), take(1));
  assert.notDeepEqual(take(1), take(2));
});

test("jitter spreads a delay evenly around itself", () => {
  assert.equal(
    jitter(() => 0, 1000),
    500,
  );
  assert.equal(
    jitter(() => 0.5, 1000),
    1000,
  );
  assert.equal(
    jitter(() => 0.75, 1000, 0.2),
    1100,
  );
  assert.equal(
    jitter(() => 0.9, 1000, 0),
    1000,
  );
});
