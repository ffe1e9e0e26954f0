import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import type { Fault } from "../../src/storage/sqlite/connection.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { openTestStore } from "../support/open-test.ts";
import { createPairs, numbered, readPairs, writePair } from "./pair.ts";

/** Counts the statements that begin or end something, from the call of `count` on. */
function statementCounter(): { fault: Fault; count(): Record<string, number> } {
  let counts: Record<string, number> = {};
  return {
    fault(moment, text) {
      if (moment === "after" && !text.includes(" into ")) counts[text] = (counts[text] ?? 0) + 1;
    },
    count() {
      const { "pragma data_version": _, ...counted } = counts;
      counts = {};
      return counted;
    },
  };
}

async function pragma(store: Store, name: string): Promise<unknown> {
  const row = await store.write((tx) => tx.get<Record<string, unknown>>(rawSql(`pragma ${name}`)));
  return Object.values(row ?? {})[0];
}

describe("a group on SQLite", () => {
  test("100 engine units in flight are one transaction without savepoints", async (t) => {
    const { fault, count } = statementCounter();
    const { store } = await openTestStore(t, "sqlite", { fault, clock: manualClock() });
    await createPairs(store);
    count();

    await Promise.all(numbered(100).map((id) => store.write((tx) => writePair(tx, id))));

    assert.deepEqual(count(), { "begin immediate": 1, commit: 1 });
  });

  test("100 user units in flight are one transaction with a savepoint for each", async (t) => {
    const { fault, count } = statementCounter();
    const { store } = await openTestStore(t, "sqlite", { fault, clock: manualClock() });
    await createPairs(store);
    count();

    await Promise.all(numbered(100).map((id) => store.write((tx) => writePair(tx, id), { by: "user" })));

    assert.deepEqual(count(), { "begin immediate": 1, "savepoint unit": 100, "release unit": 100, commit: 1 });
  });

  test("an engine unit that throws makes its group come back with savepoints, once", async (t) => {
    const { fault, count } = statementCounter();
    const { store } = await openTestStore(t, "sqlite", { fault, clock: manualClock() });
    await createPairs(store);
    count();

    await Promise.allSettled(
      numbered(10).map((id) =>
        store.write(async (tx) => {
          await writePair(tx, id);
          if (id === "005") throw new Error("no");
        }),
      ),
    );

    assert.deepEqual(count(), {
      "begin immediate": 2,
      rollback: 1,
      "savepoint unit": 10,
      "rollback to unit": 1,
      "release unit": 10,
      commit: 1,
    });
  });

  for (const by of ["user", "engine"] as const) {
    test(`a group has at most ${limits.groupUnitsMax} ${by} units`, async (t) => {
      const { fault, count } = statementCounter();
      const { store } = await openTestStore(t, "sqlite", { fault, clock: manualClock() });
      await createPairs(store);
      count();
      const ids = numbered(2 * limits.groupUnitsMax + 1);

      await Promise.all(ids.map((id) => store.write((tx) => writePair(tx, id), { by })));

      const { commit } = count();
      assert.equal(commit, 3);
      assert.deepEqual(await readPairs(store), ids);
    });

    test(`a group of ${by} units that takes ${limits.groupMsMax} ms is cut, and the rest follows in order`, async (t) => {
      const { fault, count } = statementCounter();
      const clock = manualClock();
      const { store } = await openTestStore(t, "sqlite", { fault, clock });
      await createPairs(store);
      count();
      const order: string[] = [];

      await Promise.all(
        numbered(24).map((id) =>
          store.write(
            async (tx) => {
              await writePair(tx, id);
              await clock.advance(limits.groupMsMax);
              order.push(id);
            },
            { by },
          ),
        ),
      );

      // The clock is read after every unit of a user, and after every eighth of the engine's until they are known to take long.
      assert.equal(count()["commit"], by === "user" ? 24 : 1 + 16);
      assert.deepEqual(order, numbered(24));
    });
  }

  test("units that ask again as soon as they are answered share the next group", async (t) => {
    const { fault, count } = statementCounter();
    const { store } = await openTestStore(t, "sqlite", { fault, clock: manualClock() });
    await createPairs(store);
    count();

    await Promise.all(
      numbered(50).map(async (caller) => {
        for (const turn of numbered(4)) await store.write((tx) => writePair(tx, caller + turn));
      }),
    );

    assert.equal(count()["commit"], 4);
  });

  test("an acknowledged unit is on disk: the writer syncs at each commit", async (t) => {
    const { store } = await openTestStore(t, "sqlite");

    assert.equal(await pragma(store, "synchronous"), 2);
    assert.equal(await pragma(store, "journal_mode"), "wal");
    assert.equal(await pragma(store, "wal_autocheckpoint"), 10_000);
  });

  test("durability normal leaves the sync to the checkpoint", async (t) => {
    const { store } = await openTestStore(t, "sqlite", { durability: "normal" });

    assert.equal(await pragma(store, "synchronous"), 1);
  });

  test("the beat is stamped in the group's own transaction, once, and its failure costs no unit", async (t) => {
    const { fault, count } = statementCounter();
    const { store } = await openTestStore(t, "sqlite", { fault, clock: manualClock() });
    await createPairs(store);
    let due = 0;
    let stamped = 0;
    store.beforeCommit({
      due: () => due-- > 0,
      async run(tx) {
        stamped++;
        await tx.run(sql`insert into pair (id, half) values ('beat', ${stamped})`);
        if (stamped === 2) await tx.run(sql`insert into nowhere values (1)`);
      },
    });
    count();

    due = 1;
    await Promise.all(numbered(5).map((id) => store.write((tx) => writePair(tx, `a${id}`))));
    due = 1;
    await Promise.all(numbered(5).map((id) => store.write((tx) => writePair(tx, `b${id}`))));

    assert.equal(stamped, 2);
    const { "begin immediate": begun, commit } = count();
    assert.deepEqual({ begun, commit }, { begun: 2, commit: 2 });
    assert.deepEqual(await store.read(sql`select half from pair where id = 'beat'`), [{ half: 1 }]);
    assert.deepEqual(await store.read(sql`select count(*) as halves from pair where id <> 'beat'`), [{ halves: 20 }]);
  });

  test("a book in memory is written and read by many at once", async (t) => {
    const { store } = await openTestStore(t, "sqlite", { url: ":memory:" });
    await createPairs(store);

    await Promise.all(
      numbered(100).map(async (id) => {
        await store.write((tx) => writePair(tx, id), { by: Number(id) % 2 === 0 ? "user" : "engine" });
        await store.read(sql`select count(*) from pair`);
        await store.readHeavy(sql`select count(*) from pair`);
        await store.snapshot((reader) => reader.all(sql`select count(*) from pair`));
      }),
    );

    assert.deepEqual(await readPairs(store), numbered(100));
  });
});
