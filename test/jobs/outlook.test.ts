import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import type { Claim, ClaimedJob } from "../../src/jobs/claim.ts";
import type { Ending } from "../../src/jobs/outcome.ts";
import { createOutlook } from "../../src/jobs/outlook.ts";
import type { Turn, TurnWork } from "../../src/jobs/turn.ts";

const nothing: Claim = {
  ...{ jobs: [], leftAlone: false, more: false, parked: 0, wentRound: true, contended: false },
  ...{ opensAt: null, parkedForTime: false, passedBy: false },
};
const contended: Claim = { ...nothing, more: true, contended: true };
const empty = { read: async () => [{ queued: null, hosted: null, due_at: null, opens_at: null }] as never };
const job = {} as ClaimedJob;
const ending = {} as Ending;

const looks: TurnWork = {
  ...{ endings: [], unclaims: [], logs: [], progress: [], begun: [], attempted: [] },
  ...{ want: 2, idle: false, lookForDue: false, lookForHosted: false },
};

function found(claim: Claim): Turn {
  return { claim, superseded: [], alive: true, dueAt: undefined, moreHosted: false };
}

function restAfterContention(outlook: ReturnType<typeof createOutlook>): void {
  for (let n = 0; n < 200 && outlook.mayHaveWork; n++) outlook.learn(outlook.ask(), looks, found(contended));
  assert.deepEqual([outlook.mayHaveWork, outlook.expectsWork], [false, true], "it rests");
}

test("a turn that found nothing does not outdo one beside it that left something in line", () => {
  const others = {
    contended,
    "took all it wanted": { ...nothing, jobs: [job, job] },
    more: { ...contended, parked: 1 },
  };
  for (const [name, claim] of Object.entries(others)) {
    const outlook = createOutlook(manualClock(), empty, () => undefined);
    const settles = outlook.ask();
    outlook.learn(outlook.ask(), looks, found(claim));
    outlook.learn(settles, looks, found(nothing));
    assert.equal(outlook.mayHaveWork, true, name);

    outlook.learn(outlook.ask(), looks, found(nothing));
    assert.equal(outlook.mayHaveWork, false, "one that began later is believed");
  }
});

test("beside turns that find nothing a contended one rests too, and does not ask for ever", () => {
  const outlook = createOutlook(manualClock(), empty, () => undefined);
  let turns = 0;
  for (let before = outlook.ask(); outlook.mayHaveWork && turns < 1000; turns++) {
    const asked = outlook.ask();
    outlook.learn(before, looks, found(turns % 2 === 0 ? contended : nothing));
    before = asked;
  }
  assert.ok(turns < 1000);
  assert.equal(outlook.expectsWork, true);
});

test("who rests because its limit was counted looks again when a turn of its own brought something about", () => {
  for (const [work, claim] of [
    [{ ...looks, endings: [ending] }, nothing],
    [{ ...looks, endings: [ending], want: 0 }, nothing],
    [looks, { ...nothing, jobs: [job] }],
  ] as const) {
    const outlook = createOutlook(manualClock(), empty, () => undefined);
    const counts = outlook.ask();
    restAfterContention(outlook);
    outlook.learn(counts, work, found(claim));
    assert.equal(outlook.mayHaveWork, true);
  }
});

test("who rests looks again after a moment", async () => {
  const clock = manualClock();
  const outlook = createOutlook(clock, empty, () => undefined);
  restAfterContention(outlook);
  outlook.learn(outlook.ask(), looks, found(nothing));
  assert.equal(outlook.mayHaveWork, false);
  await clock.advance(200);
  assert.equal(outlook.mayHaveWork, true);
});

test("what a failed turn held is looked for again, also when the one beside it passed it by", () => {
  const hosts = { ...looks, lookForHosted: true };
  for (const order of ["before", "after"] as const) {
    const outlook = createOutlook(manualClock(), empty, () => undefined);
    const fails = outlook.ask();
    const beside = outlook.ask();
    if (order === "after") outlook.failed(fails);
    outlook.learn(beside, hosts, found(nothing));
    if (order === "before") outlook.failed(fails);
    assert.equal(outlook.mayHaveWork, true);
    assert.equal(outlook.ask().hosted, true, "what waits for a host too");
  }
});

test("two turns that overlap go round once", () => {
  const closed: Claim = { ...nothing, more: true, wentRound: true };
  const outlook = createOutlook(manualClock(), empty, () => undefined);
  const [one, other] = [outlook.ask(), outlook.ask()];
  outlook.learn(one, looks, found(closed));
  outlook.learn(other, looks, found(closed));
  assert.equal(outlook.mayHaveWork, true, "what lies between has not been seen");

  outlook.learn(outlook.ask(), looks, found(closed));
  assert.equal(outlook.mayHaveWork, false);
});
