// When a worker looks for work, told without a worker: what it learns from its turns, and what makes it look again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import type { Claim, ClaimedJob } from "../../src/jobs/claim/claim.ts";
import type { Turn, TurnWork } from "../../src/jobs/worker/turn.ts";
import { createWake, type Wake } from "../../src/jobs/worker/wake.ts";
import type { Dialect } from "../../src/storage/sql.ts";

const job = {} as ClaimedJob;
const nothing: Claim = {
  jobs: [],
  leftAlone: false,
  more: false,
  parked: 0,
  looked: [1],
  contended: false,
  opensAt: null,
  parkedForTime: false,
};

/** A worker's look with two free places; `found` is what the book says to a read. */
function wakeOn(found: object = {}, dialect: Dialect = "sqlite") {
  const clock = manualClock();
  const heard = { turns: 0, reads: 0 };
  const nobody = { queued: null, hosted: null, due_at: null, opens_at: null };
  const read = async () => {
    heard.reads++;
    return [{ ...nobody, ...found }] as never;
  };
  const wake = createWake({ clock, waitClock: clock, dialect, read }, () => void heard.turns++);
  return { clock, wake, heard };
}

/** One turn from its beginning to its end; `meanwhile` happens while it is under way. */
function turn(
  wake: Wake,
  claim: Partial<Claim> = {},
  rest: Partial<Turn> & { want?: number } = {},
  meanwhile = () => {},
) {
  const { want = 2, ...learned } = rest;
  const asked = wake.ask();
  const work = { ...asked, want } as TurnWork;
  meanwhile();
  const done = { superseded: [], alive: true, dueAt: undefined, moreHosted: false, waitsAlone: undefined };
  wake.learn(work, { ...done, claim: { ...nothing, ...claim }, ...learned });
  return asked;
}

test("a worker looks when it begins, and no more once it has found nothing", () => {
  const { wake } = wakeOn();
  const before = [wake.mayHaveWork, wake.expectsWork];

  turn(wake);

  assert.deepEqual(
    [before, [wake.mayHaveWork, wake.expectsWork]],
    [
      [true, true],
      [false, false],
    ],
  );
});

test("who took all that it had places for looks again, and who took less has taken all there is", () => {
  const { wake } = wakeOn();
  turn(wake, { jobs: [job, job] });
  const full = wake.mayHaveWork;

  turn(wake, { jobs: [job] });

  assert.deepEqual([full, wake.mayHaveWork], [true, false]);
});

test("a turn without a free place says nothing about what is in line", () => {
  const { wake } = wakeOn();
  turn(wake, {}, { want: 0 });
  const unknown = wake.mayHaveWork;
  turn(wake);

  turn(wake, {}, { want: 0 });

  assert.deepEqual([unknown, wake.mayHaveWork], [true, false]);
});

test("what is put in line while a turn is under way is looked for after it", () => {
  const { wake } = wakeOn();

  turn(wake, {}, {}, () => wake.look());

  assert.equal(wake.mayHaveWork, true);
});

test("who finds its limit counted by another rests for a moment and is not idle meanwhile", async () => {
  const { wake, clock } = wakeOn();
  turn(wake, { more: true, contended: true });
  const resting = [wake.mayHaveWork, wake.expectsWork];

  await clock.advance(5);

  assert.deepEqual([resting, wake.mayHaveWork], [[false, true], true]);
});

test("lanes that are all closed are gone round twice, and then no more until something changes", () => {
  const { wake } = wakeOn();
  const closed = { more: true, looked: [1] };
  turn(wake, closed);
  const once = wake.mayHaveWork;
  turn(wake, closed);
  const twice = wake.mayHaveWork;

  wake.look();

  assert.deepEqual([once, twice, wake.mayHaveWork], [true, false, true]);
});

test("what is due later rings when it is, and is looked for then", async () => {
  const { wake, clock, heard } = wakeOn();
  turn(wake, {}, { dueAt: clock.now() + 1000 });
  const before = [wake.mayHaveWork, wake.ask().lookForDue];
  await clock.advance(999);
  const silent = heard.turns;

  await clock.advance(1);

  assert.deepEqual([before, silent, heard.turns], [[false, false], 0, 1]);
  assert.deepEqual([wake.mayHaveWork, wake.ask().lookForDue], [true, true]);
});

test("what has come due while a turn looked is looked for at once", () => {
  const { wake, clock } = wakeOn();

  turn(wake, {}, { dueAt: clock.now() });

  assert.deepEqual([wake.mayHaveWork, wake.ask().lookForDue], [true, true]);
});

test("a due time that was read before another one was written is not believed", () => {
  const { wake } = wakeOn();

  turn(wake, {}, { dueAt: null }, () => wake.lookAnew());

  assert.equal(wake.ask().lookForDue, true);
});

test("a turn that ends in the moment in which a lane opens does not make it forgotten, and tells of it once", () => {
  const { wake, clock, heard } = wakeOn();
  turn(wake, { opensAt: clock.now() + 1000 }, { dueAt: null });

  clock.step(1000); // the timer has not rung yet
  turn(wake);
  const told = [heard.turns, wake.mayHaveWork];
  turn(wake);

  assert.deepEqual(
    [told, [heard.turns, wake.mayHaveWork]],
    [
      [1, true],
      [1, false],
    ],
  );
});

test("what a failed turn looked for is looked for again", () => {
  const { wake } = wakeOn();
  turn(wake, {}, { dueAt: null });
  wake.hostsChanged();

  const { lookForDue, lookForHosted } = wake.ask();
  wake.failed({ lookForDue, lookForHosted, want: 2 } as TurnWork);

  assert.deepEqual([lookForDue, lookForHosted], [false, true]);
  assert.deepEqual([wake.mayHaveWork, wake.ask()], [true, { lookForDue: true, lookForHosted: true }]);
});

test("a worker whose session was ended looks again soon, under its new one", async () => {
  const { wake, clock } = wakeOn();
  turn(wake, {}, { alive: false });
  const resting = [wake.mayHaveWork, wake.expectsWork];

  await clock.advance(200);

  assert.deepEqual([resting, wake.mayHaveWork], [[false, true], true]);
});

test("what waits to run alone is looked for once nothing runs, and not before", () => {
  const { wake } = wakeOn();
  turn(wake, { leftAlone: true, parked: 1 });
  const busy = wake.mayHaveWork;
  wake.nothingRuns();
  const empty = [wake.mayHaveWork, wake.leftAlone];

  turn(wake, {}, { waitsAlone: false });
  wake.nothingRuns();

  assert.deepEqual([busy, empty, [wake.mayHaveWork, wake.leftAlone]], [false, [true, true], [false, false]]);
});

test("on PostgreSQL a read looks every second, and only what it finds makes a turn", async () => {
  const found = { queued: null as number | null };
  const { wake, clock, heard } = wakeOn(found, "postgres");
  turn(wake, {}, { dueAt: null });
  await clock.advance(3000);
  const quiet = { ...heard };

  found.queued = 1;
  await clock.advance(1000);

  assert.deepEqual(
    [quiet, heard],
    [
      { turns: 0, reads: 3 },
      { turns: 1, reads: 4 },
    ],
  );
  assert.equal(wake.mayHaveWork, true);
});

test("on SQLite the file tells, so nobody looks", async () => {
  const { wake, clock, heard } = wakeOn({ queued: 1 });
  turn(wake, {}, { dueAt: null });

  await clock.advance(60_000);

  assert.deepEqual(heard, { turns: 0, reads: 0 });
});

test("a read that finds a time for which a timer is set makes no turn, and one that finds an earlier time does", async () => {
  const found = { due_at: 0 };
  const { wake, clock, heard } = wakeOn(found);
  turn(wake, {}, { dueAt: clock.now() + 1000 });

  found.due_at = clock.now() + 1000;
  await wake.lookIfAny();
  const known = heard.turns;
  found.due_at = clock.now() + 500;
  await wake.lookIfAny();

  assert.deepEqual([known, heard.turns, wake.mayHaveWork], [0, 1, true]);
});

test("who has stopped sets no timer any more", async () => {
  const { wake, clock, heard } = wakeOn({}, "postgres");
  wake.stop();

  turn(wake, { contended: true, more: true }, { dueAt: clock.now() + 1000 });
  await clock.advance(5000);

  assert.deepEqual([heard, wake.expectsWork], [{ turns: 0, reads: 0 }, false]);
});
