import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";

test("a manual clock stands still until it is moved", async () => {
  const clock = manualClock();
  assert.equal(clock.now(), Date.parse("2026-01-01T00:00:00Z"));

  await clock.advance(1500);

  assert.equal(clock.now(), Date.parse("2026-01-01T00:00:01.500Z"));
  assert.equal(clock.monotonic(), 1500);
});

test("timers fire in the order they are due, each seeing its own moment", async () => {
  const clock = manualClock({ at: 0 });
  const seen: [string, number][] = [];
  clock.after(20, () => seen.push(["late", clock.now()]));
  clock.after(10, () => seen.push(["first of two", clock.now()]));
  clock.after(10, () => seen.push(["second of two", clock.now()]));
  clock.after(99, () => seen.push(["never", clock.now()]));

  await clock.advance(50);

  assert.deepEqual(seen, [
    ["first of two", 10],
    ["second of two", 10],
    ["late", 20],
  ]);
  assert.equal(clock.now(), 50);
});

test("a loop of sleeps runs through within one advance", async () => {
  const clock = manualClock({ at: 0 });
  const wakes: number[] = [];
  const loop = (async () => {
    for (let i = 0; i < 5; i++) {
      await clock.sleep(100);
      await clock.nextTurn();
      wakes.push(clock.now());
    }
  })();

  await clock.advance(1000);

  await loop;
  assert.deepEqual(wakes, [100, 200, 300, 400, 500]);
});

test("a step moves the wall clock only, also backwards, and fires nothing", async () => {
  const clock = manualClock({ at: 10_000 });
  let fired = false;
  clock.after(5, () => (fired = true));

  clock.step(-4000);
  await clock.advance(0);

  assert.equal(clock.now(), 6000);
  assert.equal(clock.monotonic(), 0);
  assert.equal(fired, false);
});

test("a cancelled timer does not fire", async () => {
  const clock = manualClock();
  const timer = clock.after(1, () => assert.fail("it was cancelled"));

  timer.cancel();

  await clock.advance(10);
});

test("a sleep on a manual clock ends early when its signal aborts", async () => {
  const clock = manualClock();
  const stop = new AbortController();
  const sleeping = clock.sleep(1000, stop.signal);

  stop.abort();

  await sleeping;
  assert.equal(clock.monotonic(), 0);
});

test("what a timer throws reaches the test that moved the clock", async () => {
  const clock = manualClock();
  clock.after(1, () => {
    throw new Error("from the timer");
  });

  await assert.rejects(clock.advance(1), /from the timer/);
});

test("advancing backwards is refused", async () => {
  await assert.rejects(manualClock().advance(-1), /use step\(\) to go back/);
});

test("a manual clock begins at ISO text, a Date or milliseconds, and moves by durations", async () => {
  const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
  assert.equal(manualClock({ at: new Date(5) }).now(), 5);

  await clock.advance("10m");
  clock.step("-1h");
  clock.step("30m");

  assert.equal(clock.now(), Date.parse("2026-10-31T23:40:00Z"));
  assert.equal(clock.monotonic(), 600_000);
});

test("what a manual clock cannot read is refused with advice", async () => {
  const clock = manualClock();

  assert.throws(() => manualClock({ at: "tomorrow" }), /at is "tomorrow", which is not a time/);
  assert.throws(() => manualClock("2026-11-01T00:00:00Z" as never), /takes options, .*manualClock\(\{ at: /);
  assert.throws(() => manualClock({ time: 0 } as never), /unknown option "time" for manualClock/);
  assert.throws(() => clock.step(0.5), /step is 0.5: give whole milliseconds/);
  await assert.rejects(clock.advance("ten minutes"), /advance is "ten minutes", which is not a duration/);
});
