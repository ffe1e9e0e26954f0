import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import { createSteadyTime } from "../../src/core/clock.ts";

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

test("behind a small step back time stands still until the wall clock has caught up", async () => {
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

test("a time that the clock never had before is not believed for some seconds, in which time goes on", async () => {
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

test("a time that was kept for a moment only is not held on to: who starts with a wrong clock follows the right one", async () => {
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

test("whoever asks is told by how much the clock was set, once, and drift is no step", async () => {
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

test("what has come by one clock alone has not come, until the clock that was set has kept its new time for an hour", async () => {
  const clock = manualClock({ at: day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);
  const seen = [time.atLeast()];

  clock.step(day);
  seen.push(time.atLeast());
  await clock.advance(hour / 2);
  seen.push(time.atLeast());
  clock.step(-day);
  seen.push(time.atLeast());
  clock.step(-hour);
  seen.push(time.atLeast());
  clock.step(day + hour);
  seen.push(time.atLeast());
  await clock.advance(limits.clockSettleMs - 1);
  seen.push(time.atLeast());
  await clock.advance(1);
  seen.push(time.atLeast());

  const right = day + hour;
  assert.deepEqual(seen, [
    ...[right, right, right + hour / 2, right + hour / 2, right - hour / 2, right + hour / 2],
    ...[right + 1.5 * hour - 1, right + 1.5 * hour + day],
  ]);
});

test("a machine that sleeps every half an hour knows what is old, and one whose clock was set as well does not", async () => {
  const clock = manualClock({ at: day });
  const time = createSteadyTime(clock);
  for (let slept = 0; slept < 20; slept++) {
    await clock.advance(hour / 2);
    assert.equal(time.atLeast(), clock.now());
    clock.suspend(hour);
    assert.equal(time.atLeast(), clock.now());
  }

  const right = clock.now();
  clock.step(365 * day);
  clock.suspend(hour);

  assert.equal(time.atLeast(), right + hour);
  assert.equal(time.settled(limits.clockAheadMs), null);
});

test("a clock that does not know how long the machine slept lets nothing be old too early", async () => {
  const { uptime: _unknown, ...clock } = manualClock({ at: day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);

  clock.suspend(hour);

  assert.equal(time.atLeast(), day + hour);
});

test("a clock that was behind, and was believed, is right again once what it wrote is put right", async () => {
  const clock = manualClock({ at: 10 * day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);
  time.now();
  const told: unknown[] = [];
  const mended = Promise.withResolvers<void>();
  time.onBehind((was) => {
    told.push(was);
    return mended.promise;
  });

  clock.step(-day);
  time.now();
  await clock.advance(limits.clockHoldMs);
  const from = time.now();
  await clock.advance(hour / 2);
  time.now();
  clock.step(day);
  const during = time.now();
  await clock.nextTurn();
  const [whileMending, settled] = [time.now(), time.settled(limits.clockAheadMs)];
  mended.resolve();
  for (let turns = 0; turns < 3; turns++) await clock.nextTurn();

  const right = 10 * day + 1.5 * hour + limits.clockHoldMs;
  assert.deepEqual(told, [{ fromMs: from, toMs: right - day, byMs: day }]);
  assert.deepEqual([during, whileMending, settled], [right - day, right - day, null]);
  assert.equal(time.now(), right);
});

test("a clock that was behind twice is right again once both are put right", async () => {
  const clock = manualClock({ at: 10 * day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);
  time.now();
  const mending: PromiseWithResolvers<void>[] = [];
  time.onBehind(() => {
    const mended = Promise.withResolvers<void>();
    mending.push(mended);
    return mended.promise;
  });
  const wrong: boolean[] = [];

  for (let times = 0; times < 2; times++) {
    clock.step(-day);
    time.now();
    await clock.advance(limits.clockHoldMs);
    time.now();
    clock.step(day);
    time.now();
    await clock.nextTurn();
  }
  for (const mended of mending) {
    mended.resolve();
    for (let turns = 0; turns < 3; turns++) await clock.nextTurn();
    wrong.push(time.isWrong());
  }

  assert.deepEqual(wrong, [true, false]);
});

test("a clock that was behind for too short a time to be believed has nothing to be put right", async () => {
  const clock = manualClock({ at: 10 * day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);
  time.now();
  let told = 0;
  time.onBehind(async () => void told++);

  clock.step(-day);
  time.now();
  await clock.advance(limits.clockHoldMs - 1);
  time.now();
  clock.step(day);

  assert.equal(time.now(), clock.now());
  await clock.nextTurn();
  assert.equal(told, 0);
});

test("a new time is believed once it was kept for as long as the old one, from a minute to an hour", async () => {
  for (const [keptMs, untilMs] of [
    [1000, limits.clockAheadMs],
    [hour / 4, hour / 4],
    [day, limits.clockSettleMs],
  ] as const) {
    const clock = manualClock({ at: 10 * day });
    const time = createSteadyTime(clock);
    await clock.advance(keptMs);
    clock.step(-day);
    time.now();

    await clock.advance(untilMs - 1);
    const before = time.believed();
    await clock.advance(1);

    assert.deepEqual([before, time.believed()], [null, clock.now()]);
  }
});

test("a clock that was set is right since it was set, for two minutes; after that, and when it was never set, since now", async () => {
  const clock = manualClock({ at: 10 * day });
  const time = createSteadyTime(clock);
  await clock.advance(hour);
  assert.equal(time.rightSince(), clock.now());

  clock.step(-day);
  const set = clock.now();
  time.now();
  await clock.advance(limits.clockAheadMs);
  assert.equal(time.rightSince(), set);
  await clock.advance(limits.clockAheadMs + 1);

  assert.equal(time.rightSince(), clock.now());
});
