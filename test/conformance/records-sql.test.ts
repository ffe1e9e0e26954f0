// A transaction's own SQL and the records that it has written: the statement sees them, and all of it is still one commit.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { entity, listener, relation, type UserTx } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const Note = entity("note", { schema: z.object({ id: z.string(), n: z.number() }), key: "id" });
const Lamp = entity("lamp", { schema: z.object({ id: z.string() }), key: "id" });
const Lights = relation("lights", { from: Lamp, to: Note });
const use = [Note, Lamp, Lights];

async function keys(tx: UserTx): Promise<string[]> {
  const rows = await tx.sql<{ key: string }>`select key from daybook_record order by key`;
  return rows.map(({ key }) => key);
}

for (const backend of backends) {
  describe(backend, () => {
    test("SQL sees the records that the transaction has written, and they are one commit with its last notes", async (t) => {
      const { book } = await openTest(t, backend, { use, worker: false });
      const { records } = book;
      await records.put(Note, { id: "old", n: 1 });

      const seen = await book.write(async (tx) => {
        await tx.records.put(Note, { id: "a", n: 1 });
        const first = await keys(tx);
        await tx.records.put(Lamp, { id: "hall" });
        await tx.records.delete(Note, "old");
        const second = await keys(tx);
        await tx.records.annotate({ actor: "ada", reason: "both" });
        return [first, second];
      });

      assert.deepEqual(seen, [
        ["a", "old"],
        ["a", "hall"],
      ]);
      const { items } = await records.commits();
      assert.deepEqual(
        items.map(({ id, actor, reason, changes }) => [id, actor, reason, changes]),
        [
          [2, "ada", "both", 3],
          [1, null, null, 1],
        ],
      );
      assert.deepEqual(
        (await records.changes(2)).items.map(({ kind, key }) => [kind, key]),
        [
          ["created", "a"],
          ["created", "hall"],
          ["deleted", "old"],
        ],
      );
      assert.deepEqual(await book.doctor(), []);
    });

    // Each record is what the name says before the transaction; the transaction writes, looks, writes again and looks again.
    const fates: Readonly<Record<string, readonly [first: number | null, second: number | null]>> = {
      "made, then changed": [1, 2],
      "made, then gone": [1, null],
      "there, changed twice": [1, 2],
      "there, changed, then gone": [1, null],
      "there, gone, then made": [null, 2],
      "there, gone": [null, null],
      "there, changed": [2, 2],
    };

    test("a record that is written again behind SQL has one version, whatever became of it", async (t) => {
      const heard: unknown[] = [];
      const hear = listener("hear", { on: "record.note.*", run: (payload) => void heard.push(payload) });
      const [one, other] = await Promise.all(
        [true, false].map(async () => (await openTest(t, backend, { use: [...use, hear] })).book),
      );
      assert.ok(one !== undefined && other !== undefined);
      const fate = async (tx: UserTx, step: 0 | 1): Promise<void> => {
        for (const [id, steps] of Object.entries(fates)) {
          const n = steps[step];
          if (n === null) await tx.records.delete(Note, id);
          else await tx.records.put(Note, { id, n });
        }
      };
      for (const [book, looks] of [
        [one, true],
        [other, false],
      ] as const) {
        const there = Object.keys(fates).filter((id) => id.startsWith("there"));
        await book.records.putMany(
          Note,
          there.map((id) => ({ id, n: 0 })),
        );
        await book.write(async (tx) => {
          await fate(tx, 0);
          if (looks) await keys(tx);
          await fate(tx, 1);
          if (looks)
            assert.deepEqual(await keys(tx), [
              "made, then changed",
              "there, changed",
              "there, changed twice",
              "there, gone, then made",
            ]);
          const { value } = (await tx.records.entry(Note, "made, then changed")) ?? {};
          assert.deepEqual(value, { id: "made, then changed", n: 2 });
          assert.equal(await tx.records.query(Note).count(), 4);
        });
      }

      const told = async (book: typeof one): Promise<unknown> => {
        const { items } = await book.records.since(1);
        const facts = items
          .map(({ at: _at, ...change }) => change)
          .toSorted((a, b) => (JSON.stringify(a.key) < JSON.stringify(b.key) ? -1 : 1));
        return [facts, (await book.records.commit(2)).changes, await book.records.head()];
      };
      assert.deepEqual(await told(one), await told(other));
      const past = async (book: typeof one, id: string): Promise<unknown> => {
        const { items } = await book.records.history(Note, id);
        return items.map(({ at: _at, ...version }) => version);
      };
      for (const id of Object.keys(fates)) assert.deepEqual(await past(one, id), await past(other, id));
      const counts: number[] = [];
      for (const book of [one, other]) {
        await (await book.startWorker()).idle();
        counts.push(heard.splice(0).length);
        assert.deepEqual(await book.doctor(), []);
      }
      assert.equal(counts[0], counts[1], "each change is told once");
    });

    test("only SQL that names records has them written before the end, so that the commit counter is held for a moment", async (t) => {
      const { book } = await openTest(t, backend, { use, worker: false });
      await book.write((tx) => tx.sql`create table own (id integer primary key, n integer, "my_commits" integer)`);
      await book.write((tx) => tx.sql`create view mine as select key from daybook_record`);
      const seen = await book.write(async (tx) => {
        await tx.records.put(Note, { id: "a", n: 1 });
        await tx.sql`insert into own (id, n) values (1, 1)`;
        await tx.sql`update own set n = n + 1, my_commits = 0 where id = 1`;
        const byView = await tx.sql`select key from mine`;
        const byComment = await tx.sql`select key from mine /* daybook_record */`;
        await tx.records.put(Note, { id: "b", n: 1 });
        const byQuotes = await tx.sql`select key from "daybook_record"`;
        await tx.records.put(Note, { id: "c", n: 1 });
        const byCapitals = await tx.sql`select key from DAYBOOK_RECORD`;
        return [byView, byComment, byQuotes, byCapitals].map((rows) => rows.length);
      });
      assert.deepEqual(seen, [0, 1, 2, 3]);
    });

    test("behind SQL that saw its records a transaction reads the past up to the commit before its own", async (t) => {
      const { book } = await openTest(t, backend, { use, worker: false });
      const { records } = book;
      await book.write(async (tx) => {
        await tx.records.put(Note, { id: "first", n: 0 });
        await keys(tx);
        assert.equal(await tx.records.head(), null);
        assert.deepEqual((await tx.records.since(0)).items, []);
        await tx.records.delete(Note, "first");
      });
      await records.put(Note, { id: "a", n: 1 });
      await book.write(async (tx) => {
        const past = async (): Promise<unknown> => [
          await tx.records.head(),
          await tx.records.commits(),
          await tx.records.commits({ type: Note, until: tx.now + 1 }),
          await tx.records.since(0),
          await tx.records.diff(0, tx.now),
          await tx.records.history(Note, "a"),
          await tx.records.history(Note, "b"),
          await tx.records.find(Note, "a", { asOf: 1 }),
          await tx.records.find(Note, "a", { asOf: tx.now }),
        ];
        const before = await past();
        await tx.records.put(Note, { id: "a", n: 2 });
        await tx.records.put(Note, { id: "b", n: 1 });
        await keys(tx);
        assert.deepEqual(await past(), before);
        await assert.rejects(tx.records.commit(2), { code: "not_found" });
        await tx.records.put(Note, { id: "c", n: 1 }, { ifHead: await tx.records.head() });
      });
      assert.equal(await records.head(), 2);
    });

    test("a transaction whose changes come to nothing behind SQL makes no commit, and a failed one leaves nothing", async (t) => {
      const { book } = await openTest(t, backend, { use, worker: false });
      await book.write(async (tx) => {
        await tx.records.put(Note, { id: "a", n: 1 });
        assert.deepEqual(await keys(tx), ["a"]);
        await tx.records.delete(Note, "a");
        assert.deepEqual(await keys(tx), []);
      });
      assert.equal(await book.records.head(), null);
      await assert.rejects(
        book.write(async (tx) => {
          await tx.records.put(Note, { id: "a", n: 1 });
          await keys(tx);
          throw new Error("no");
        }),
        /no/,
      );
      await assert.rejects(
        book.write(async (tx) => {
          await tx.records.put(Note, { id: "a", n: 1 });
          await keys(tx);
          await tx.records.put(Note, { id: "b", n: 1 }, { ifHead: 1 });
        }),
        { code: "conflict", message: /expected to be 1, but it is none/ },
      );

      await book.write(async (tx) => {
        await tx.records.put(Lamp, { id: "hall" });
        await Promise.all([keys(tx), tx.records.put(Note, { id: "a", n: 1 }), keys(tx)]);
        await tx.records.link(Lights, { from: "hall", to: "a" });
        await keys(tx);
        await tx.records.delete(Lamp, "hall", { unlink: true });
        assert.deepEqual(await keys(tx), ["a"]);
      });

      assert.equal(await book.records.head(), 1);
      assert.deepEqual((await book.records.commits({ type: Lamp })).items, []);
      assert.deepEqual(
        (await book.records.changes(1)).items.map(({ key }) => key),
        ["a"],
      );
      assert.deepEqual(await book.doctor(), []);
    });
  });
}
