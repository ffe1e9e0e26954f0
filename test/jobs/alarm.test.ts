import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { createAlarm } from "../../src/jobs/alarm.ts";

const claim = { opensAt: null };

test("a look that an older turn overtakes is still learned from", async () => {
  const clock = manualClock();
  let rings = 0;
  const alarm = createAlarm(clock, () => void rings++);
  const dueAt = clock.now() + 1000;

  const older = alarm.ask();
  alarm.forget();
  const newer = alarm.ask();
  alarm.learn(older, { dueAt: null, claim });
  alarm.learn(newer, { dueAt, claim });

  await clock.advance(1000);
  assert.equal(rings, 1);
});

test("of two turns that overlap the earlier time counts", async () => {
  const clock = manualClock();
  let rings = 0;
  const alarm = createAlarm(clock, () => void rings++);

  const [one, other] = [alarm.ask(), alarm.ask()];
  alarm.learn(one, { dueAt: clock.now() + 1000, claim });
  alarm.learn(other, { dueAt: null, claim });

  await clock.advance(1000);
  assert.equal(rings, 1);
});

test("what has come due while a turn looked is looked for at once", () => {
  const clock = manualClock();
  let rings = 0;
  const alarm = createAlarm(clock, () => void rings++);

  alarm.learn(alarm.ask(), { dueAt: clock.now(), claim });

  assert.equal(rings, 1);
  assert.equal(alarm.ask().lookForDue, true);
});

test("a turn that ends in the moment in which a lane opens does not make the alarm forget it", () => {
  const clock = manualClock();
  let rings = 0;
  const alarm = createAlarm(clock, () => void rings++);
  alarm.learn(alarm.ask(), { dueAt: null, claim: { opensAt: clock.now() + 1000 } });

  clock.step(1000); // the timer has not rung yet
  alarm.learn(alarm.ask(), { dueAt: undefined, claim });
  assert.equal(rings, 1);

  alarm.learn(alarm.ask(), { dueAt: undefined, claim });
  assert.equal(rings, 1, "it is told of once");
});
