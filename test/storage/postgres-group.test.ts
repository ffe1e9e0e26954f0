// Group commit on PostgreSQL: units that may share run in one transaction on one pipelined connection.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { invalid } from "../../src/core/error.ts";
import { limits } from "../../src/core/limits.ts";
import { sql } from "../../src/storage/sql.ts";
import { openTestStore, testUrl } from "../support/open-test.ts";
import { createPairs, numbered, readPairs, writePair } from "./pair.ts";
import { startProxy } from "./postgres-proxy.ts";

describe("a shared group on PostgreSQL", () => {
  test("100 shared units in flight are one transaction", async (t) => {
    const proxy = await startProxy(t, await testUrl(t, "postgres"));
    const { store } = await openTestStore(t, "postgres", { url: proxy.url });
    await createPairs(store);
    const [begun, committed] = [proxy.count("begin read write"), proxy.count("commit")];

    await Promise.all(numbered(100).map((id) => store.write((tx) => writePair(tx, id), { by: "shared" })));

    assert.equal(proxy.count("begin read write") - begun, 1);
    assert.equal(proxy.count("commit") - committed, 1);
    assert.deepEqual(await readPairs(store), numbered(100));
  });

  test(`a shared group has at most ${limits.groupUnitsMax} units`, async (t) => {
    const proxy = await startProxy(t, await testUrl(t, "postgres"));
    const { store } = await openTestStore(t, "postgres", { url: proxy.url });
    await createPairs(store);
    const committed = proxy.count("commit");
    const ids = numbered(limits.groupUnitsMax + 1);

    await Promise.all(ids.map((id) => store.write((tx) => writePair(tx, id), { by: "shared" })));

    assert.equal(proxy.count("commit") - committed, 2);
    assert.deepEqual(await readPairs(store), ids);
  });

  test("units of a user and of the engine have a transaction each", async (t) => {
    const proxy = await startProxy(t, await testUrl(t, "postgres"));
    const { store } = await openTestStore(t, "postgres", { url: proxy.url });
    await createPairs(store);
    const committed = proxy.count("commit");
    const levels: unknown[] = [];

    for (const by of ["user", "engine"] as const) {
      await Promise.all(
        numbered(5).map((id) =>
          store.write(
            async (tx) => {
              levels.push(await tx.get(sql`select current_setting('transaction_isolation') as level`));
              await writePair(tx, by + id);
            },
            { by },
          ),
        ),
      );
    }

    assert.equal(proxy.count("commit") - committed, 10);
    assert.deepEqual(levels, [
      ...Array.from({ length: 5 }, () => ({ level: "serializable" })),
      ...Array.from({ length: 5 }, () => ({ level: "read committed" })),
    ]);
  });

  test("a statement that was first sent in a failed group is understood by the next", async (t) => {
    const { store } = await openTestStore(t, "postgres");
    await createPairs(store);
    const bad = store.write((tx) => tx.run(sql`insert into nowhere values (1)`), { by: "shared" });
    const innocent = store.write((tx) => tx.get(sql`select 41 + ${1} as sum`), { by: "shared" });
    await assert.rejects(bad, { code: "invalid" });
    await innocent;

    const again = await Promise.all(
      numbered(3).map(() =>
        store.write((tx) => tx.get<{ sum: number }>(sql`select 41 + ${1} as sum`), { by: "shared" }),
      ),
    );

    assert.deepEqual(
      again.map((row) => Number(row?.sum)),
      [42, 42, 42],
    );
  });

  test("a unit that was answered is not run again when the connection of its group is lost", async (t) => {
    let runs = 0;
    const { store } = await openTestStore(t, "postgres", {
      fault(moment, text) {
        // The group's second attempt, after the innocent has been run alone and answered.
        if (moment === "before" && text.includes("'first'") && ++runs === 2) throw new Error("lost");
      },
    });
    await store.write((tx) => tx.run(sql`create table tally (id text)`));
    const count = (id: string) => store.read(sql`select count(*) as times from tally where id = ${id}`);

    const outcomes = await Promise.allSettled([
      store.write((tx) => tx.run(sql`insert into tally values ('first')`), { by: "shared" }),
      store.write((tx) => tx.run(sql`insert into nowhere values (1)`), { by: "shared" }),
      store.write((tx) => tx.run(sql`insert into tally values ('innocent')`), { by: "shared" }),
    ]);

    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    assert.equal(runs, 3);
    assert.deepEqual(await count("first"), [{ times: 1 }]);
    assert.deepEqual(await count("innocent"), [{ times: 1 }]);
  });

  test("a group whose begin failed keeps nothing and acknowledges nothing", async (t) => {
    let armed = false;
    const { store } = await openTestStore(t, "postgres", {
      fault(moment, text) {
        if (armed && moment === "before" && text.startsWith("begin")) throw invalid("begin failed");
      },
    });
    await createPairs(store);

    armed = true;
    for (const by of ["shared", "engine", "user"] as const) {
      await assert.rejects(
        store.write((tx) => writePair(tx, by), { by }),
        { message: "begin failed" },
      );
      await assert.rejects(
        store.write(() => "nothing", { by }),
        { message: "begin failed" },
      );
    }

    assert.deepEqual(await readPairs(store), []);
  });

  test("the beat is stamped in the transaction of a shared or an engine unit, and its failure costs no unit", async (t) => {
    const { store } = await openTestStore(t, "postgres");
    await createPairs(store);
    let due = 0;
    let stamped = 0;
    store.beforeCommit({
      due: () => due-- > 0,
      async run(tx) {
        stamped++;
        if (stamped % 2 === 0) await tx.run(sql`insert into nowhere values (1)`);
        await tx.run(sql`insert into pair (id, half) values ('beat', ${stamped})`);
      },
    });

    for (const [index, by] of (["shared", "shared", "engine", "engine"] as const).entries()) {
      due = 1;
      await store.write((tx) => writePair(tx, `unit${index}`), { by });
    }

    assert.equal(stamped, 4);
    assert.deepEqual(await store.read(sql`select half from pair where id = 'beat' order by half`), [
      { half: 1 },
      { half: 3 },
    ]);
    assert.deepEqual(await store.read(sql`select count(*) as halves from pair where id <> 'beat'`), [{ halves: 8 }]);
  });

  test("engine statements are prepared once per connection, a user's are not kept", async (t) => {
    const { store } = await openTestStore(t, "postgres");
    const asked = { engine: sql`select 1 as by_engine`, user: sql`select 1 as by_user` };
    const keptAfter = async (by: "user" | "engine"): Promise<number | undefined> =>
      store.write(
        async (tx) => {
          for (let turn = 0; turn < 3; turn++) await tx.all(asked[by]);
          const text = `select 1 as by_${by}`;
          const row = await tx.get<{ kept: number }>(
            sql`select count(*) as kept from pg_prepared_statements where statement = ${text}`,
          );
          return row?.kept;
        },
        { by },
      );

    assert.equal(await keptAfter("engine"), 1);
    assert.equal(await keptAfter("user"), 0);
  });
});
