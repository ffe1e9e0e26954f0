import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import type { Store, Tx } from "../../src/storage/store.ts";
import { integer } from "../../src/storage/word.ts";
import { openTestStore, testUrl } from "../support/open-test.ts";
import { unitOf } from "./pair.ts";

async function createCounter(store: Store): Promise<void> {
  await store.write(async (tx) => {
    await tx.run(sql`create table counter (id text primary key, value ${integer} not null)`);
    await tx.run(sql`insert into counter values ('a', 0), ('b', 0)`);
  });
}

const valueOf = (tx: Tx, id: string): Promise<number> =>
  Promise.resolve(tx.get<{ value: number }>(sql`select value from counter where id = ${id}`)).then(
    (row) => row?.value ?? Number.NaN,
  );

const values = (store: Store): Promise<object[]> => store.read(sql`select id, value from counter order by id`);

describe("concurrent units on PostgreSQL", () => {
  test("20 users who read, add one and write at the same time lose no update", async (t) => {
    const { store } = await openTestStore(t, "postgres");
    await createCounter(store);

    await Promise.all(
      Array.from({ length: 20 }, () =>
        store.write(
          async (tx) => {
            const value = await valueOf(tx, "a");
            await tx.run(sql`update counter set value = ${value + 1} where id = 'a'`);
          },
          // The slower the machine, the more often some of them lose.
          { by: "user", tryOn: () => true },
        ),
      ),
    );

    assert.deepEqual(await values(store), [
      { id: "a", value: 20 },
      { id: "b", value: 0 },
    ]);
  });

  test("users who lost for a row go one after the other, and none of them loses again", async (t) => {
    const { store } = await openTestStore(t, "postgres");
    await createCounter(store);
    const users = 5;
    const meeting = Promise.withResolvers<void>();
    let [arrived, runs, again, most] = [0, 0, 0, 0];
    const addOne = (): Promise<void> => {
      let run = 0;
      return store.write(
        async (tx) => {
          runs++;
          run++;
          const value = await valueOf(tx, "a");
          if (run === 1) {
            if (++arrived === users) meeting.resolve();
            await meeting.promise;
          } else most = Math.max(most, ++again);
          // Time in which another could read the same.
          for (let n = 0; n < 5; n++) await valueOf(tx, "b");
          if (run > 1) again--;
          await tx.run(sql`update counter set value = ${value + 1} where id = 'a'`);
        },
        { by: "user" },
      );
    };

    await Promise.all(Array.from({ length: users }, addOne));

    assert.deepEqual([runs, most], [2 * users - 1, 1]);
    assert.deepEqual((await values(store))[0], { id: "a", value: users });
  });

  test("two users who each read what the other writes do not both see the past", async (t) => {
    const { store } = await openTestStore(t, "postgres");
    await createCounter(store);
    const meeting = Promise.withResolvers<void>();
    let arrived = 0;
    // Each takes the last turn only while the other still has its own: at REPEATABLE READ both would.
    const takeTurn = (mine: string, other: string): Promise<void> =>
      store.write(
        async (tx) => {
          const theirs = await valueOf(tx, other);
          if (++arrived === 2) meeting.resolve();
          await meeting.promise;
          if (theirs === 0) await tx.run(sql`update counter set value = 1 where id = ${mine}`);
        },
        { by: "user" },
      );

    await Promise.all([takeTurn("a", "b"), takeTurn("b", "a")]);

    const taken = (await values(store)).filter((row) => (row as { value: number }).value === 1);
    assert.equal(taken.length, 1);
    assert.equal(arrived, 3);
  });

  test("two engine units that block each other are both done in the end", async (t) => {
    const url = new URL(await testUrl(t, "postgres"));
    url.searchParams.set("options", "-c deadlock_timeout=20ms");
    const { store } = await openTestStore(t, "postgres", { url: url.href });
    await createCounter(store);
    const meeting = Promise.withResolvers<void>();
    let arrived = 0;
    const oneIsDone = Promise.withResolvers<void>();
    const addTo = async (first: string, second: string): Promise<void> => {
      let runs = 0;
      await store.write(async (tx) => {
        // Run again while the other is being woken, it could take the row back and block it a second time.
        if (++runs > 1) await oneIsDone.promise;
        await tx.run(sql`update counter set value = value + 1 where id = ${first}`);
        if (++arrived === 2) meeting.resolve();
        await meeting.promise;
        await tx.run(sql`update counter set value = value + 1 where id = ${second}`);
      });
      oneIsDone.resolve();
    };

    await Promise.all([addTo("a", "b"), addTo("b", "a")]);

    assert.equal(arrived, 3);
    assert.deepEqual(await values(store), [
      { id: "a", value: 2 },
      { id: "b", value: 2 },
    ]);
  });

  for (const by of ["user", "engine"] as const) {
    test(`${unitOf(by)} that always loses is run ${limits.conflictRetriesMax} times and then refused as busy`, async (t) => {
      const clock = manualClock();
      const { store } = await openTestStore(t, "postgres", { clock });
      let runs = 0;
      let settled = false;

      const writing = store
        .write(
          async (tx) => {
            runs++;
            // Hiding the error does not help: the transaction is lost.
            await Promise.resolve(
              tx.run(rawSql("do $$ begin raise exception 'lost' using errcode = 'serialization_failure'; end $$")),
            ).catch(() => undefined);
          },
          { by },
        )
        .finally(() => (settled = true));
      const refused = assert.rejects(writing, { code: "busy", message: /try again/ });
      while (!settled) await clock.advance(100);
      await refused;

      assert.equal(runs, limits.conflictRetriesMax);
    });
  }
});

describe("several books in one database", () => {
  test("two schemas hold two books that do not see each other", async (t) => {
    const url = await testUrl(t, "postgres");
    const { store: one } = await openTestStore(t, "postgres", { url, schema: "one" });
    const { store: other } = await openTestStore(t, "postgres", { url, schema: 'the "Other"; drop' });
    await createCounter(one);
    await createCounter(other);
    const heard: (string | null)[] = [];
    const listening = Promise.withResolvers<void>();
    other.onWake((channel) => (channel === null ? listening.resolve() : heard.push(channel)));
    await listening.promise;

    await one.write(async (tx) => {
      await tx.run(sql`update counter set value = 7 where id = 'a'`);
      tx.wake("one");
    });
    await other.write(async (tx) => tx.wake("other"));

    assert.deepEqual(await values(other), [
      { id: "a", value: 0 },
      { id: "b", value: 0 },
    ]);
    assert.deepEqual(new Set(heard), new Set(["other"]));
    assert.equal(one.schema, "one");
  });

  test("a schema whose name PostgreSQL would cut is refused", async (t) => {
    const url = await testUrl(t, "postgres");

    await assert.rejects(openTestStore(t, "postgres", { url, schema: "s".repeat(56) }), {
      code: "invalid",
      message: /56 bytes long: at most 55/,
    });
    const { store } = await openTestStore(t, "postgres", { url, schema: "s".repeat(55) });
    await store.write(async (tx) => tx.wake("a"));
  });
});
