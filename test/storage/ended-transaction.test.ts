// SQLite ends a whole transaction by itself on `or rollback`, on raise(rollback) and when the file is full. The units that
// shared the transaction must not notice.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import type { Store, Tx } from "../../src/storage/store.ts";
import { openTestStore } from "../support/open-test.ts";
import { createPairs, numbered, readPairs, writePair } from "./pair.ts";

const endings: Record<string, (tx: Tx) => unknown> = {
  "or rollback": (tx) => tx.run(sql`insert or rollback into pair (id, half) values ('taken', 1)`),
  "raise(rollback)": (tx) => tx.run(sql`insert into pair (id, half) values ('forbidden', 1)`),
};

async function prepare(store: Store): Promise<void> {
  await createPairs(store);
  await store.write(async (tx) => {
    await writePair(tx, "taken");
    await tx.run(sql`create trigger forbid before insert on pair when new.id = 'forbidden'
      begin select raise(rollback, 'forbidden'); end`);
  });
}

/** What became of each: its result, or the code of its error. */
async function outcomesOf(writes: Promise<string>[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(writes);
  return outcomes.map((outcome) =>
    outcome.status === "fulfilled" ? outcome.value : String((outcome.reason as { code?: string }).code),
  );
}

for (const by of ["user", "engine"] as const) {
  describe(`${by} units`, () => {
    for (const [ending, end] of Object.entries(endings)) {
      test(`${ending} in one unit costs it alone its commit`, async (t) => {
        const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
        await prepare(store);
        const ids = numbered(21);

        const outcomes = await outcomesOf(
          ids.map((id) =>
            store.write(
              async (tx) => {
                await writePair(tx, id);
                if (id === "010") await end(tx);
                return id;
              },
              { by },
            ),
          ),
        );

        const code = ending === "or rollback" ? "conflict" : "invalid";
        assert.deepEqual(outcomes, ids.toSpliced(10, 1, code));
        assert.deepEqual(await readPairs(store), [...ids.toSpliced(10, 1), "taken"]);
      });

      test(`${ending} that a unit hides still costs it its commit, and nobody's rows are written twice or alone`, async (t) => {
        const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
        await prepare(store);
        await store.write((tx) => tx.run(sql`create table tally (id text)`));
        const ids = numbered(20);

        const outcomes = await outcomesOf(
          ids.map((id) =>
            store.write(
              async (tx) => {
                await tx.run(sql`insert into tally values (${id})`);
                if (id === "010") {
                  try {
                    await end(tx);
                  } catch {
                    return id;
                  }
                }
                return writePair(tx, id);
              },
              { by },
            ),
          ),
        );

        const code = ending === "or rollback" ? "conflict" : "invalid";
        assert.deepEqual(outcomes, ids.toSpliced(10, 1, code));
        assert.deepEqual(await readPairs(store), [...ids.toSpliced(10, 1), "taken"]);
        const tally = await store.read<{ id: string }>(sql`select id from tally order by id`);
        assert.deepEqual(
          tally.map((row) => row.id),
          ids.toSpliced(10, 1),
        );
      });
    }

    test("a tx whose transaction was ended refuses everything that follows", async (t) => {
      const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
      await prepare(store);
      const refusals: unknown[] = [];

      const writing = store.write(
        async (tx) => {
          try {
            await endings["or rollback"]?.(tx);
          } catch {
            try {
              await writePair(tx, "late");
            } catch (error) {
              refusals.push((error as { code: string }).code);
            }
          }
        },
        { by },
      );

      await assert.rejects(writing, { code: "conflict" });
      assert.ok(refusals.length > 0 && refusals.every((code) => code === "invalid"));
      assert.deepEqual(await readPairs(store), ["taken"]);
    });

    test("a unit that was told its error does not come back when its group is ended later", async (t) => {
      const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
      await prepare(store);
      let runs = 0;

      const outcomes = await outcomesOf([
        store.write((tx) => writePair(tx, "before"), { by: "user" }),
        store.write(
          async (tx) => {
            await writePair(tx, "fickle");
            if (++runs === 1) throw Object.assign(new Error("not the first time"), { code: "fickle" });
            return "fickle came back";
          },
          { by: "user" },
        ),
        store.write(
          async (tx) => {
            await endings["or rollback"]?.(tx);
            return "";
          },
          { by },
        ),
        store.write((tx) => writePair(tx, "behind"), { by }),
      ]);

      assert.deepEqual(outcomes, ["before", "fickle", "conflict", "behind"]);
      assert.equal(runs, 1);
      assert.deepEqual(await readPairs(store), ["before", "behind", "taken"]);
    });

    test("a file that may not grow rejects those that do not fit with full, and keeps the others", async (t) => {
      const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
      await prepare(store);
      await growBy(store, 100);
      const ids = numbered(30);
      const isBig = (id: string): boolean => Number(id) % 10 === 4;
      const big = "x".repeat(4096 * 300);

      const outcomes = await outcomesOf(
        ids.map((id) => store.write((tx) => writePair(tx, id, isBig(id) ? big : "small"), { by })),
      );

      assert.deepEqual(
        outcomes,
        ids.map((id) => (isBig(id) ? "full" : id)),
      );
      assert.deepEqual(await readPairs(store), [...ids.filter((id) => !isBig(id)), "taken"]);
    });

    test("a full file is written again once there is room", async (t) => {
      const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
      await prepare(store);
      await growBy(store, 20);
      const filler = "x".repeat(4096 * 30);
      await assert.rejects(
        store.write((tx) => writePair(tx, "a", filler), { by }),
        { code: "full", message: /free some space/ },
      );

      await growBy(store, 1000);
      await store.write((tx) => writePair(tx, "a", filler), { by });

      assert.deepEqual(await readPairs(store), ["a", "taken"]);
    });
  });
}

async function growBy(store: Store, pages: number): Promise<void> {
  const row = await store.write((tx) => tx.get<{ page_count: number }>(rawSql("pragma page_count")));
  await store.write((tx) => tx.get(rawSql(`pragma max_page_count = ${(row?.page_count ?? 0) + pages}`)));
}
