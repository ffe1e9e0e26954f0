import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { createAlarm } from "../../src/jobs/alarm.ts";

const nothing = { claim: { opensAt: null } };

test("a turn that was asked before due times changed does not keep a later one from telling them", async () => {
  const clock = manualClock();
  const rings: number[] = [];
  const alarm = createAlarm(clock, () => rings.push(clock.now()));
  const due = clock.now() + 500;

  const before = alarm.ask();
  alarm.forget();
  const since = alarm.ask();
  alarm.learn(before, { dueAt: null, ...nothing });
  alarm.learn(since, { dueAt: due, ...nothing });
  await clock.advance(1000);

  assert.deepEqual(rings, [due]);
});
