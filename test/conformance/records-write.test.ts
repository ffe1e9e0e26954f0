import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, job, relation, type Book } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Order = entity("order", {
  schema: z.object({
    id: z.string(),
    total: z.number(),
    status: z.string().default("open"),
    note: z.string().optional(),
  }),
  key: "id",
});
const Customer = entity("customer", { schema: z.object({ name: z.string() }), key: (customer) => customer.name });
const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });
const Rated = relation("rated", {
  from: Customer,
  to: Order,
  schema: z.object({ day: z.string(), stars: z.number() }),
  instanceKey: "day",
});
const use = [Order, Customer, Placed, Rated];

const urls = new WeakMap<Book, string>();

async function begin(t: TestContext, backend: Backend): Promise<Book> {
  const { book, url } = await openTest(t, backend, { use, worker: false });
  urls.set(book, url);
  return book;
}

for (const backend of backends) {
  describe(backend, () => {
    test("an empty book has no head, and asOf 0 is empty", async (t) => {
      const book = await begin(t, backend);

      assert.equal(await book.records.head(), null);
      assert.deepEqual(await book.records.query(Order).asOf(0).list(), { items: [], next: null });
      assert.equal(await book.records.find(Order, "o-1"), undefined);
      await assert.rejects(book.records.get(Order, "o-1"), { code: "not_found", message: 'there is no order "o-1"' });
    });

    test("every version stays readable, with its revision, commit and schema version", async (t) => {
      const book = await begin(t, backend);

      assert.deepEqual(await book.records.put(Order, { id: "o-1", total: 40 }), {
        key: "o-1",
        revision: 1,
        changed: true,
      });
      await book.records.put(Order, { id: "o-1", total: 41, status: "paid" });

      assert.deepEqual(await book.records.get(Order, "o-1"), { id: "o-1", total: 41, status: "paid" });
      assert.deepEqual(await book.records.get(Order, "o-1", { asOf: 1 }), { id: "o-1", total: 40, status: "open" });
      assert.deepEqual(await book.records.entry(Order, "o-1"), {
        type: "order",
        key: "o-1",
        value: { id: "o-1", total: 41, status: "paid" },
        revision: 2,
        commit: 2,
        schemaVersion: 1,
      });
      assert.equal(await book.records.head(), 2);
      assert.deepEqual(await book.doctor(), []);
    });

    test("ensure makes a version only of something new", async (t) => {
      const book = await begin(t, backend);
      await book.records.ensure(Order, { id: "o-1", total: 1.5, status: "open" });

      const again = await book.records.ensure(Order, { status: "open", total: 1.5, id: "o-1" });

      assert.deepEqual(again, { key: "o-1", revision: 1, changed: false });
      assert.equal(await book.records.head(), 1);
      assert.equal((await book.records.ensure(Order, { id: "o-1", total: 2 })).changed, true);
      assert.equal(await book.records.head(), 2);
    });

    test("of many documents the last of a key counts, and one that does not fit is named, also by a schema that answers later", async (t) => {
      const book = await begin(t, backend);
      const Late = entity("late", {
        schema: z.object({ id: z.string().refine(async (id) => id !== "bad") }),
        key: "id",
      });

      const written = await book.records.putMany(Order, [
        { id: "o-1", total: 1 },
        { id: "o-2", total: 2 },
        { id: "o-1", total: 3 },
      ]);
      const late = await book.records.putMany(Late, [{ id: "a" }, { id: "b" }]);

      assert.deepEqual(
        written.map(({ key, revision }) => [key, revision]),
        [
          ["o-1", 1],
          ["o-2", 1],
          ["o-1", 1],
        ],
      );
      assert.equal((await book.records.get(Order, "o-1")).total, 3);
      assert.equal((await book.records.commit(1)).changes, 2);
      assert.deepEqual(
        late.map(({ key }) => key),
        ["a", "b"],
      );
      for (const documents of [
        [{ id: "c" }, { id: "bad" }],
        [{ id: "c" }, { id: 7 }],
      ]) {
        await assert.rejects(book.records.putMany(Late, documents as { id: string }[]), {
          code: "invalid",
          message: /^document 1 of the list: the document does not fit/,
        });
      }
      assert.equal(await book.records.head(), 2);
    });

    test("patch lays fields over, and undefined removes one", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 1, note: "first" });

      await book.records.patch(Order, "o-1", { total: 2, note: undefined });

      assert.deepEqual(await book.records.get(Order, "o-1"), { id: "o-1", total: 2, status: "open" });
      await assert.rejects(book.records.patch(Order, "o-9", { total: 2 }), { code: "not_found" });
      await assert.rejects(book.records.patch(Order, "o-1", { id: "o-2" }), {
        code: "invalid",
        message: /another key/,
      });
    });

    test("a deleted record is gone from its commit on, and a record that is made again continues its revisions", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 1 });

      assert.equal(await book.records.delete(Order, "o-1"), true);
      assert.equal(await book.records.delete(Order, "o-1"), false);
      assert.equal(await book.records.find(Order, "o-1"), undefined);
      assert.equal((await book.records.put(Order, { id: "o-1", total: 3 })).revision, 2);

      assert.equal(await book.records.find(Order, "o-1", { asOf: 2 }), undefined);
      assert.equal((await book.records.get(Order, "o-1", { asOf: 1 })).total, 1);
      const { items } = await book.records.history(Order, "o-1");
      assert.deepEqual(
        items.map(({ kind, commit, revision, value }) => [kind, commit, revision, value?.total]),
        [
          ["created", 1, 1, 1],
          ["deleted", 2, 1, undefined],
          ["created", 3, 2, 3],
        ],
      );
    });

    test("all that a transaction writes is one commit with its notes, and it sees its own writes", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-0", total: 9 });

      await book.write(async (tx) => {
        await tx.records.annotate({ actor: "ada", metadata: { ticket: 17 } });
        await tx.records.put(Order, { id: "o-1", total: 1 }, { reason: "because" });
        await tx.records.put(Order, { id: "o-2", total: 2 });
        assert.equal(await tx.records.delete(Order, "o-0"), true);
        assert.equal((await tx.records.get(Order, "o-1")).total, 1);
        assert.equal(await tx.records.find(Order, "o-0"), undefined);
        const { items } = await tx.records
          .query(Order)
          .where((order) => order("total").gte(1))
          .list();
        assert.deepEqual(
          items.map(({ key, commit }) => [key, commit]),
          [
            ["o-1", null],
            ["o-2", null],
          ],
        );
        assert.equal(await tx.records.query(Order).count(), 2);
      });

      const commit = await book.records.commit(2);
      assert.deepEqual(
        [commit.actor, commit.reason, commit.metadata, commit.changes],
        ["ada", "because", { ticket: 17 }, 3],
      );
      assert.equal(await book.records.head(), 2);
    });

    test("the last write of a key counts, and a record that a unit makes and deletes leaves no trace", async (t) => {
      const book = await begin(t, backend);

      await book.write(async (tx) => {
        assert.equal((await tx.records.put(Order, { id: "o-1", total: 1 })).revision, 1);
        assert.equal((await tx.records.put(Order, { id: "o-1", total: 2 }, { ifRevision: 1 })).revision, 1);
        await tx.records.put(Order, { id: "o-2", total: 2 });
        await tx.records.delete(Order, "o-2");
      });
      await book.write(async (tx) => {
        await tx.records.put(Order, { id: "o-3", total: 2 });
        await tx.records.delete(Order, "o-3");
      });

      assert.equal(await book.records.head(), 1);
      assert.deepEqual(
        (await book.records.since(0)).items.map(({ kind, key, value }) => [kind, key, value]),
        [["created", "o-1", { id: "o-1", total: 2, status: "open" }]],
      );
    });

    test("a unit that throws leaves no commit and no gap", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 1 });

      await assert.rejects(
        book.write(async (tx) => {
          await tx.records.put(Order, { id: "o-2", total: 1 });
          throw new Error("no");
        }),
        { message: "no" },
      );

      await book.records.put(Order, { id: "o-3", total: 1 });
      assert.deepEqual(
        (await book.records.commits()).items.map(({ id }) => id),
        [2, 1],
      );
      assert.equal(await book.records.find(Order, "o-2"), undefined);
    });

    test("conditions that do not hold are a conflict that names the current state", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 1 }, { ifAbsent: true, ifHead: null });
      await book.records.put(Order, { id: "o-1", total: 2 }, { ifRevision: 1, ifHead: 1 });

      await assert.rejects(book.records.put(Order, { id: "o-1", total: 3 }, { ifRevision: 1 }), {
        code: "conflict",
        message: /expected at revision 1, but it is at revision 2 now/,
        details: { type: "order", key: "o-1", current: { revision: 2, commit: 2 } },
      });
      await assert.rejects(book.records.put(Order, { id: "o-1", total: 3 }, { ifAbsent: true }), { code: "conflict" });
      await assert.rejects(book.records.delete(Order, "o-1", { ifRevision: 9 }), { code: "conflict" });
      await assert.rejects(book.records.patch(Order, "o-2", {}, { ifRevision: 1 }), {
        code: "conflict",
        message: /there is none now/,
      });
      await assert.rejects(book.records.put(Order, { id: "o-2", total: 3 }, { ifHead: 1 }), {
        code: "conflict",
        details: { expected: 1, head: 2 },
      });
      await assert.rejects(book.records.put(Order, { id: "o-2", total: 3 }, { ifHead: null }), { code: "conflict" });
      assert.equal(await book.records.head(), 2);
    });

    test("a relation needs its endpoints, and keeps them from being deleted", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Customer, { name: "ada" });
      const ends = { from: "ada", to: "o-1" };
      await assert.rejects(book.records.link(Placed, ends, { at: 1 }), {
        code: "not_found",
        message: /needs its order "o-1", which does not exist: put it first/,
      });
      await book.records.put(Order, { id: "o-1", total: 1 });

      assert.deepEqual(await book.records.link(Placed, ends, { at: 1 }), {
        key: { from: "ada", to: "o-1", instance: "" },
        revision: 1,
        changed: true,
      });
      await book.records.patch(Placed, ends, { at: 2 });

      assert.deepEqual(await book.records.get(Placed, ends), { at: 2 });
      await assert.rejects(book.records.delete(Order, "o-1"), { code: "conflict", message: /is linked by placed/ });
      await book.records.delete(Order, "o-1", { unlink: true });
      assert.equal(await book.records.find(Placed, ends), undefined);
      assert.equal((await book.records.commit(5)).changes, 2);
      assert.deepEqual(await book.records.get(Placed, ends, { asOf: 4 }), { at: 2 });
    });

    test("an instance key tells relations between the same two entities apart", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Customer, { name: "ada" });
      await book.records.put(Order, { id: "o-1", total: 1 });
      const ends = { from: "ada", to: "o-1" };

      await book.records.link(Rated, ends, { day: "mon", stars: 1 });
      await book.records.link(Rated, ends, { day: "tue", stars: 5 });

      assert.equal((await book.records.get(Rated, { ...ends, instance: "mon" })).stars, 1);
      assert.equal(await book.records.find(Rated, ends), undefined);
      assert.equal(await book.records.unlink(Rated, { ...ends, instance: "mon" }), true);
      assert.equal(await book.records.query(Rated).count(), 1);
      assert.equal(
        await book.records
          .query(Rated)
          .where((rated) => rated.instanceKey.eq("tue"))
          .count(),
        1,
      );
    });

    test("tenants have their own types, keys, commits and heads", async (t) => {
      const book = await begin(t, backend);
      const acme = book.tenant("acme");
      await book.records.put(Order, { id: "o-1", total: 1 });
      await book.records.put(Order, { id: "o-1", total: 2 });

      await acme.records.put(Order, { id: "o-1", total: 100 });
      await acme.records.delete(Order, "o-1");

      assert.equal((await book.records.get(Order, "o-1")).total, 2);
      assert.equal(await acme.records.find(Order, "o-1"), undefined);
      assert.deepEqual([await book.records.head(), await acme.records.head()], [2, 2]);
      assert.deepEqual(
        (await acme.records.since(0)).items.map(({ kind }) => kind),
        ["created", "deleted"],
      );
      assert.deepEqual(
        (await acme.records.commits()).items.map(({ id }) => id),
        [2, 1],
      );
      assert.deepEqual((await book.records.diff(0, 2)).items.length, 1);
      await assert.rejects(acme.records.get(Order, "o-1", { asOf: 3 }), { code: "not_found" });
      assert.deepEqual(await book.doctor(), []);
    });

    test("a changed schema is a new version, and an older program continues with its own", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 1 });
      const wider = entity("order", {
        schema: z.object({ id: z.string(), total: z.number(), vat: z.number() }),
        key: "id",
      });
      const { book: other } = await openTest(t, backend, { url: urls.get(book) ?? "", use: [wider], worker: false });

      await other.records.put(wider, { id: "o-2", total: 1, vat: 2 });
      await book.records.put(Order, { id: "o-3", total: 1 });

      const rows = await book.read(
        (tx) =>
          tx.sql<{
            version: number;
            reason: string;
          }>`select version, reason from daybook_record_schema order by version`,
      );
      assert.deepEqual(
        rows.map(({ version, reason }) => [version, reason]),
        [
          [1, "initial"],
          [2, "changed"],
        ],
      );
      assert.deepEqual(
        (await book.records.query(Order).list()).items.map(({ key, schemaVersion }) => [key, schemaVersion]),
        [
          ["o-1", 1],
          ["o-2", 2],
          ["o-3", 1],
        ],
      );
      await assert.rejects(book.records.put(wider, { id: "o-2", total: 1, vat: 2 }), {
        code: "invalid",
        message: /not the definition/,
      });
    });

    test("transact runs the function again after a conflict", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 0 });
      let runs = 0;

      await book.records.transact(async (tx) => {
        runs++;
        await tx.records.put(Order, { id: "o-1", total: runs }, { ifRevision: runs < 3 ? 99 : 1 });
      });
      await assert.rejects(
        book.records.transact((tx) => tx.records.put(Order, { id: "o-1", total: ++runs }, { ifRevision: 99 })),
        { code: "conflict" },
      );

      assert.equal(runs, 3 + 4);
      assert.equal((await book.records.get(Order, "o-1")).total, 3);
    });

    test("history, diff, blame and restore answer from the past", async (t) => {
      const book = await begin(t, backend);
      await book.records.put(Order, { id: "o-1", total: 1, note: "a" }, { actor: "ada" });
      await book.records.put(Order, { id: "o-2", total: 5 });
      await book.records.patch(Order, "o-1", { total: 2 }, { actor: "bob", reason: "typo" });
      await book.records.delete(Order, "o-2");
      await book.records.patch(Order, "o-1", { total: 1 });

      assert.deepEqual(
        (await book.records.diff(1, 3)).items.map(({ key, kind }) => [key, kind]),
        [
          ["o-1", "updated"],
          ["o-2", "created"],
        ],
      );
      assert.deepEqual((await book.records.diff(1, 5)).items, []);
      assert.deepEqual(
        (await book.records.diff(3, 2)).items.map(({ key, kind, after }) => [
          key,
          kind,
          (after as { total: number }).total,
        ]),
        [["o-1", "updated", 1]],
      );
      const blame = await book.records.blame(Order, "o-1");
      assert.deepEqual([blame["total"]?.commit, blame["note"]?.commit, blame["note"]?.actor], [5, 1, "ada"]);
      await assert.rejects(book.records.blame(Order, "o-2"), { code: "not_found" });

      await book.records.restore(Order, "o-2", 3, { reason: "needed after all" });
      assert.deepEqual(await book.records.get(Order, "o-2"), { id: "o-2", total: 5, status: "open" });
      await assert.rejects(book.records.restore(Order, "o-2", 4), { code: "not_found" });
      const first = await book.records.history(Order, "o-1", { limit: 2 });
      const rest = await book.records.history(Order, "o-1", { after: first.next ?? -1 });
      assert.deepEqual(
        [...first.items, ...rest.items].map(({ kind, value }) => [kind, value?.total]),
        [
          ["created", 1],
          ["updated", 2],
          ["updated", 1],
        ],
      );
    });

    test("a run is named as the cause of its commits", async (t) => {
      const store = job("store", {
        run: async (_params, { book, finish }) => {
          await book.records.put(Order, { id: "o-1", total: 1 });
          await finish((tx) => tx.records.put(Order, { id: "o-2", total: 1 }));
        },
      });
      const { book } = await openTest(t, backend, { use: [...use, store] });
      const made = await book.jobs.enqueue(store, {});
      await (await book.startWorker()).idle();

      const { run } = await book.jobs.get(made.id);
      assert.deepEqual(
        (await book.records.commits()).items.map(({ cause }) => cause?.runId),
        [run?.id, run?.id],
      );
    });
  });
}
