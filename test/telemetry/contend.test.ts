// How a writer makes room for the writers of other processes; contention.test.ts shows that it works.
import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock, type ManualClock } from "../../src/index.ts";
import type { Connection } from "../../src/storage/sqlite/connection.ts";
import { createContention, type Contention } from "../../src/storage/sqlite/share.ts";

test("a writer that is alone never waits", async () => {
  const { contention, clock } = createWriter();

  assert.equal(await writeFor(contention, clock, 1000), 0);
});

test("a writer that saw another one gives way after each turn, and not within it", async () => {
  const { contention, clock, another } = createWriter();
  await writeFor(contention, clock, 100);

  let waits = 0;
  for (let count = 0; count < 50; count++) {
    another();
    waits += await writeFor(contention, clock, 10);
  }

  // 5 ms of writing, 4 ms of waiting: about 55 turns in half a second.
  assert.ok(waits >= 40 && waits <= 70, `it gave way ${waits} times in 500 ms`);
});

test("a writer that found the file taken gives way after its turn", async () => {
  const { contention, clock } = createWriter();

  contention.lost();
  contention.committed();

  assert.equal(await writeFor(contention, clock, 5), 0);
  assert.equal(await writeFor(contention, clock, 2), 1);
});

test("a writer that gave way in vain does so ever more rarely, and soon no more", async () => {
  const { contention, clock, another } = createWriter();
  await writeFor(contention, clock, 100);

  another();
  const soon = await writeFor(contention, clock, 3000);
  const later = await writeFor(contention, clock, 3000);

  assert.ok(soon >= 5 && soon <= 12, `it gave way ${soon} times`);
  assert.equal(later, 0);
});

function createWriter(): { contention: Contention; clock: ManualClock; another(): void } {
  let version = 1;
  const clock = manualClock();
  const connection: Partial<Connection> = { get: () => ({ data_version: version }) };
  const contention = createContention({ connection: connection as Connection, waitClock: clock, random: () => 0.5 });
  return { contention, clock, another: () => void version++ };
}

/** Commits a group every millisecond, as often as it is let; returns how often it waited first. */
async function writeFor(contention: Contention, clock: ManualClock, ms: number): Promise<number> {
  const until = clock.monotonic() + ms;
  let waits = 0;
  while (clock.monotonic() < until) {
    const from = clock.monotonic();
    let free = false;
    const given = contention.giveWay().then(() => (free = true));
    await clock.nextTurn();
    while (!free) await clock.advance(1);
    await given;
    if (clock.monotonic() > from) waits++;
    contention.committed();
    await clock.advance(1);
  }
  return waits;
}
