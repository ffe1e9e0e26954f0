// Another process holds the file.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import { startChild, type Child } from "../support/child-process.ts";
import { openTestStore } from "../support/open-test.ts";
import { createPairs, numbered, readPairs, writePair } from "./pair.ts";

async function hold(t: TestContext, url: string): Promise<Child> {
  const child = startChild(t, "hold", [url]);
  await child.said("held");
  return child;
}

/** Moves the clock step by step, because a waiter sets its next timer only after the last one has fired. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) await clock.advance(10);
}

for (const by of ["user", "engine"] as const) {
  test(`${by} units wait for a held file without stopping the loop, and are written when it is free`, async (t) => {
    let tried = (): void => undefined;
    const { store, url } = await openTestStore(t, "sqlite", {
      fault: (moment, text) => void (moment === "before" && text === "begin immediate" && tried()),
    });
    await createPairs(store);
    const patience = await store.write((tx) => tx.get<object>(rawSql("pragma busy_timeout")));
    const holder = await hold(t, url);
    let written = 0;

    const writes = numbered(20).map((id) => store.write((tx) => writePair(tx, id), { by }).then(() => written++));
    for (let turn = 0; turn < 50; turn++) await new Promise<void>((resolve) => (tried = resolve));
    const writtenWhileHeld = written;
    holder.tell("let go");
    await Promise.all(writes);

    // SQLite itself never waits: that would stop the loop. Each of the tries above left it to everybody else.
    assert.deepEqual({ ...patience }, { timeout: 0 });
    assert.equal(writtenWhileHeld, 0);
    assert.deepEqual(await readPairs(store), numbered(20));
  });
}

test("a file that stays held is reported as busy after the longest wait, and serves again when it is free", async (t) => {
  const clock = manualClock();
  const { store, url } = await openTestStore(t, "sqlite", { waitClock: clock });
  await createPairs(store);
  const holder = await hold(t, url);
  const refused = assert.rejects(
    store.write((tx) => writePair(tx, "refused")),
    { code: "busy", message: /another process holds the file/ },
  );

  await pass(clock, limits.busyMsMax + 100);
  await refused;
  holder.tell("let go");
  await holder.ended;
  const writing = store.write((tx) => writePair(tx, "later"));
  await pass(clock, 100);
  await writing;

  assert.deepEqual(await readPairs(store), ["later"]);
});

test("only who has waited the longest time is refused; who came later is written when the file is free", async (t) => {
  const clock = manualClock();
  const { store, url } = await openTestStore(t, "sqlite", { waitClock: clock });
  await createPairs(store);
  const holder = await hold(t, url);
  const refused = assert.rejects(
    store.write((tx) => writePair(tx, "early")),
    { code: "busy" },
  );
  await pass(clock, limits.busyMsMax / 2);

  const late = store.write((tx) => writePair(tx, "late"));
  await pass(clock, limits.busyMsMax / 2 + 100);
  await refused;
  holder.tell("let go");
  await holder.ended;
  await pass(clock, 100);
  await late;

  assert.deepEqual(await readPairs(store), ["late"]);
});

test("a held file can be opened and read", async (t) => {
  const { store, url } = await openTestStore(t, "sqlite");
  await createPairs(store);
  await store.write((tx) => writePair(tx, "a"));
  await hold(t, url);

  const { store: second } = await openTestStore(t, "sqlite", { url });

  assert.deepEqual(await readPairs(second), ["a"]);
  assert.deepEqual(await second.read(sql`select count(*) as halves from pair`), [{ halves: 2 }]);
});
