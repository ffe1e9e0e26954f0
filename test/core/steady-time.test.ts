import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import { createSteadyTime, removalTime } from "../../src/core/steady-time.ts";

const [hour, day] = [3_600_000, 86_400_000];

test("a step forward is followed at once, and so is the way back to the time that was kept before", async () => {
  const clock = manualClock({ at: 10 * day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);

  clock.step(day);
  assert.equal(time.now(), 11 * day + hour);
  await clock.advance(300);
  clock.step(-day);

  assert.equal(time.now(), 10 * day + hour + 300);
});

test("after a small step back, time stands still until the wall clock has caught up", async () => {
  const clock = manualClock({ at: day });
  const time = createSteadyTime(clock);
  const before = time.now();

  clock.step(-limits.clockSmoothMs);
  assert.equal(time.now(), before);
  await clock.advance(limits.clockSmoothMs - 1);
  assert.equal(time.now(), before);
  await clock.advance(2);

  assert.equal(time.now(), before + 1);
});

test("many small steps back add up to one that is followed", async () => {
  const clock = manualClock({ at: day });
  const time = createSteadyTime(clock);
  time.now();

  for (let step = 0; step < 10; step++) {
    clock.step(-900);
    time.now();
  }

  assert.ok(time.now() - clock.now() <= limits.clockSmoothMs);
});

test("a time that the clock never had is not believed for some seconds, while time continues", async () => {
  const clock = manualClock({ at: 400 * day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);
  time.now();

  clock.step(-365 * day);
  const seen = [time.now()];
  await clock.advance(300);
  seen.push(time.now());
  await clock.advance(limits.clockHoldMs);
  seen.push(time.now());

  assert.deepEqual(seen, [400 * day + hour, 400 * day + hour + 300, 35 * day + hour + 300 + limits.clockHoldMs]);
});

test("a program that starts with a wrong clock follows the right one at once", async () => {
  const clock = manualClock({ at: 2 * day });
  const time = createSteadyTime(clock);
  await clock.advance(300);
  time.now();

  clock.step(-day);
  await clock.advance(300);

  assert.equal(time.now(), day + 600);
});

test("a wall clock that stands still is not taken for one that was set back", async () => {
  const moved = manualClock({ at: day });
  const time = createSteadyTime({ ...moved, now: () => day });

  await moved.advance(hour);

  assert.equal(time.now(), day);
});

test("listeners learn once by how much the clock was set, and drift does not count", async () => {
  const clock = manualClock({ at: day });
  const time = createSteadyTime(clock);
  const heard: number[] = [];
  const stop = time.onSet((byMs) => heard.push(byMs));

  await clock.advance(hour);
  clock.step(1500); // what a clock that is kept in step may differ after an hour
  time.now();
  clock.step(day);
  time.now();
  time.now();
  clock.step(-day);
  time.now();
  await clock.nextTurn();
  await clock.nextTurn();
  stop();
  clock.step(day);
  time.now();
  await clock.nextTurn();

  assert.deepEqual(heard, [day, -day]);
});

test("nothing is removed by age until a clock that was set is set back or has kept its new time", async () => {
  const clock = manualClock({ at: day });
  const time = createSteadyTime(clock);
  const mayRemove = (): boolean => {
    try {
      return removalTime(time) === clock.now();
    } catch (error) {
      assert.match((error as Error).message, /nothing was removed: .* kept its time for 1h$/);
      return false;
    }
  };
  const seen = [mayRemove()];

  clock.step(day);
  seen.push(mayRemove());
  clock.step(-day);
  seen.push(mayRemove());
  clock.step(day);
  seen.push(mayRemove());
  await clock.advance(limits.clockSettleMs - 1);
  seen.push(mayRemove());
  await clock.advance(1);
  seen.push(mayRemove());

  assert.deepEqual(seen, [true, false, true, false, false, true]);
  assert.equal(removalTime(time, { dryRun: true }), clock.now());
});
