import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Tx, WriteOptions } from "../../src/storage/store.ts";
import { createPairs, numbered, readPairs, unitOf, writePair } from "../storage/pair.ts";
import { backends, openTestStore } from "../support/open-test.ts";

const kinds: readonly NonNullable<WriteOptions["by"]>[] = ["user", "engine", "shared"];
const dayMs = 86_400_000;

for (const backend of backends) {
  describe(backend, () => {
    for (const by of kinds) {
      test(`${unitOf(by)} that throws is undone alone while 200 neighbours commit`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        const ids = numbered(300);
        const throws = (id: string): boolean => Number(id) % 3 === 1;

        const outcomes = await Promise.allSettled(
          ids.map((id) =>
            store.write(
              async (tx) => {
                await writePair(tx, id);
                if (throws(id)) throw new RangeError(`no ${id}`);
                return id;
              },
              { by },
            ),
          ),
        );

        for (const [index, outcome] of outcomes.entries()) {
          const id = ids[index] ?? "";
          if (outcome.status === "fulfilled") assert.equal(outcome.value, id);
          else assert.deepEqual(outcome.reason, new RangeError(`no ${id}`));
          assert.equal(outcome.status, throws(id) ? "rejected" : "fulfilled");
        }
        assert.deepEqual(
          await readPairs(store),
          ids.filter((id) => !throws(id)),
        );
      });

      test(`${unitOf(by)} whose statement fails is undone alone, with its own error`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        await store.write((tx) => writePair(tx, "taken"));
        const ids = ["a", "b", "taken", "c", "taken", "d"];

        const outcomes = await Promise.allSettled(ids.map((id) => store.write((tx) => writePair(tx, id), { by })));

        const codes = outcomes.map((outcome) =>
          outcome.status === "fulfilled" ? outcome.value : (outcome.reason as { code: string }).code,
        );
        assert.deepEqual(codes, ["a", "b", "conflict", "c", "conflict", "d"]);
        assert.deepEqual(await readPairs(store), ["a", "b", "c", "d", "taken"]);
      });

      test(`${unitOf(by)} that turns a statement's error into its own is rejected with its own`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        await store.write((tx) => writePair(tx, "taken"));

        const writing = store.write(
          async (tx) => {
            try {
              await writePair(tx, "taken");
            } catch (error) {
              throw new Error("the name is taken: choose another", { cause: error });
            }
          },
          { by },
        );

        await assert.rejects(writing, /the name is taken: choose another/);
      });

      test(`${unitOf(by)} that hides the failure of its last statement is never acknowledged without its rows`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        await store.write((tx) => writePair(tx, "taken"));
        const hide = async (tx: Tx, id: string): Promise<string> => {
          await writePair(tx, id);
          await Promise.resolve(tx.run(sql`insert into pair (id, half) values ('taken', 1)`)).catch(() => undefined);
          return id;
        };

        const outcomes = await Promise.allSettled([
          store.write((tx) => writePair(tx, "a"), { by }),
          ...["b", "c", "d"].map((id) => store.write((tx) => hide(tx, id), { by })),
          store.write((tx) => writePair(tx, "e"), { by }),
        ]);

        const acknowledged = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
        const refusals = outcomes.flatMap((outcome) =>
          outcome.status === "rejected" ? [(outcome.reason as { code: string }).code] : [],
        );
        assert.deepEqual(await readPairs(store), [...acknowledged, "taken"]);
        assert.ok(acknowledged.includes("a") && acknowledged.includes("e"), "a neighbour was lost");
        assert.ok(refusals.every((code) => code === "conflict"));
      });

      test(`the tx of ${unitOf(by)} that has ended refuses everything`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        let kept: Tx | undefined;
        let undone: Tx | undefined;
        await store.write(async (tx) => void (kept = tx), { by });
        await store
          .write(
            (tx) => {
              undone = tx;
              throw new Error("no");
            },
            { by },
          )
          .catch(() => undefined);

        for (const tx of [kept, undone]) {
          for (const verb of ["run", "get", "all"] as const) {
            await assert.rejects(async () => tx?.[verb](sql`insert into pair (id, half) values ('late', 1)`), {
              code: "invalid",
              message: /used after its transaction ended/,
            });
          }
        }
        assert.deepEqual(await readPairs(store), []);
      });

      test(`what ${unitOf(by)} left for after the commit happens once, and only if it was kept`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        const heard: string[] = [];

        await Promise.allSettled(
          numbered(20).map((id) =>
            store.write(
              async (tx) => {
                await writePair(tx, id);
                tx.afterCommit(() => heard.push(id));
                if (id === "007") throw new Error("no");
              },
              { by },
            ),
          ),
        );

        assert.deepEqual(
          heard.toSorted(),
          numbered(20).filter((id) => id !== "007"),
        );
      });

      test(`a failure after the commit of ${unitOf(by)} changes nothing for it and its neighbours`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await createPairs(store);
        const warnings: unknown[] = [];
        t.mock.method(process, "emitWarning", (warning: unknown) => warnings.push(warning));
        const fail = (): never => {
          throw new Error("after the commit");
        };
        const stop = store.onWake(fail);

        const written = await Promise.all(
          numbered(10).map((id) =>
            store.write(
              (tx) => {
                if (id === "003") tx.afterCommit(fail);
                tx.wake("pair");
                return writePair(tx, id);
              },
              { by },
            ),
          ),
        );
        stop();

        assert.deepEqual(written, numbered(10));
        assert.deepEqual(await readPairs(store), numbered(10));
        assert.ok(warnings.length > 0);
        for (const warning of warnings) assert.match(String(warning), /after a commit .*: after the commit$/);
      });

      test(`the time of ${unitOf(by)} stands still while it runs, does not see a small step back, and follows a large one at once`, async (t) => {
        const clock = manualClock();
        const { store } = await openTestStore(t, backend, { clock });
        const times: number[] = [];
        const note = (): Promise<void> =>
          store.write(
            async (tx) => {
              const before = tx.now;
              clock.step(1);
              await tx.get(sql`select 1`);
              assert.equal(tx.now, before);
              times.push(tx.now);
            },
            { by },
          );

        const start = clock.now();
        await note();
        clock.step(-500);
        await note();
        clock.step(dayMs);
        await note();
        clock.step(-dayMs + 500);
        await note();
        clock.step(-dayMs);
        await note();

        // Each unit moves the clock by a millisecond while it runs.
        assert.deepEqual(
          times.map((time) => time - start),
          [0, 0, dayMs - 498, 3, 4 - dayMs],
        );
      });
    }

    test("what was acknowledged is seen by every read that begins afterwards", async (t) => {
      const { store } = await openTestStore(t, backend);
      await createPairs(store);

      for (const id of numbered(20)) {
        await store.write((tx) => writePair(tx, id), { by: "shared" });

        const statement = sql`select count(*) as halves from pair where id = ${id}`;
        assert.deepEqual(await store.read(statement), [{ halves: 2 }]);
        assert.deepEqual(await store.readHeavy(statement), [{ halves: 2 }]);
        assert.deepEqual(await store.snapshot((reader) => reader.all(statement)), [{ halves: 2 }]);
      }
    });

    test("closing waits for the writes that were begun, ends the reads, and refuses new ones", async (t) => {
      const { store, url } = await openTestStore(t, backend);
      await createPairs(store);
      const writes = kinds.flatMap((by) =>
        numbered(30).map((id) => store.write((tx) => writePair(tx, `${by}${id}`), { by })),
      );
      const reads = numbered(12).map(() =>
        store.snapshot((reader) => reader.all(sql`select 1 as one`)).catch((error: unknown) => error),
      );

      await store.close();

      await Promise.all(writes);
      for (const read of await Promise.all(reads)) assert.equal((read as { code?: string }).code, "closed");
      await assert.rejects(async () => store.write(() => 1), { code: "closed" });
      await assert.rejects(async () => store.write(() => 1, { by: "shared" }), { code: "closed" });
      await assert.rejects(async () => store.read(sql`select 1`), { code: "closed" });
      await assert.rejects(async () => store.readHeavy(sql`select 1`), { code: "closed" });
      await assert.rejects(async () => store.readLong(sql`select 1`), { code: "closed" });
      await assert.rejects(async () => store.snapshot(async () => 1), { code: "closed" });
      const { store: again } = await openTestStore(t, backend, { url });
      assert.equal((await readPairs(again)).length, writes.length);
    });

    test("a store that is closed twice, or before it did anything, is closed", async (t) => {
      const { store } = await openTestStore(t, backend);
      store.onWake(() => undefined);

      await Promise.all([store.close(), store.close()]);

      await store.close();
    });
  });
}
