import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { and, entity, not, or, relation, type Book } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Order = entity("order", {
  schema: z.object({
    id: z.string(),
    total: z.number().nullable(),
    status: z.enum(["open", "paid"]),
    address: z.object({ city: z.string() }).optional(),
    lines: z.array(z.object({ sku: z.string(), count: z.number() })),
    tags: z.array(z.string()),
  }),
  key: "id",
  indexes: ["status", ["address", "city"], { path: "total", temporal: true }],
});
const Customer = entity("customer", { schema: z.object({ id: z.string(), country: z.string() }), key: "id" });
const Amount = entity("amount", { schema: z.object({ id: z.string(), cents: z.number() }), key: "id" });
const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });

const orders = [
  { id: "o-1", total: 10, status: "open", address: { city: "Oslo" }, lines: [{ sku: "x", count: 1 }], tags: ["new"] },
  {
    id: "o-2",
    total: 20,
    status: "paid",
    address: { city: "Osaka" },
    lines: [
      { sku: "x", count: 5 },
      { sku: "y", count: 1 },
    ],
    tags: [],
  },
  { id: "o-3", total: null, status: "paid", lines: [], tags: ["new", "gift"] },
  { id: "o-4", total: 40, status: "paid", address: { city: "Lima" }, lines: [{ sku: "z", count: 2 }], tags: ["gift"] },
] as const;

async function begin(t: TestContext, backend: Backend): Promise<Book> {
  const { book } = await openTest(t, backend, { use: [Order, Placed], worker: false });
  await book.records.putMany(
    Order,
    orders.map((order) => ({ ...order, lines: [...order.lines], tags: [...order.tags] })),
  );
  return book;
}

for (const backend of backends) {
  describe(backend, () => {
    test("a number beyond 2^53 is found, and pages that are ordered by it leave out nothing and repeat nothing", async (t) => {
      const { book } = await openTest(t, backend, { use: [Amount], worker: false });
      const large = -1_152_921_504_606_847_000;
      await book.records.putMany(Amount, [
        { id: "a", cents: large },
        { id: "b", cents: 1 },
        { id: "c", cents: large },
      ]);
      const all = book.records
        .query(Amount)
        .orderBy((amount) => amount("cents"), "desc")
        .limit(1);

      const seen: string[] = [];
      for (let page = await all.list(); ; page = await all.after(page.next ?? "").list()) {
        seen.push(...page.items.map(({ key }) => key));
        if (page.next === null || seen.length > 3) break;
      }
      const found = await book.records
        .query(Amount)
        .where((amount) => amount("cents").eq(large))
        .list();

      assert.deepEqual(seen, ["b", "a", "c"]);
      assert.deepEqual(
        found.items.map(({ key }) => key),
        ["a", "c"],
      );
    });

    test("conditions are typed, nest and combine", async (t) => {
      const { records } = await begin(t, backend);
      const keys = async (query: ReturnType<typeof records.query<typeof Order>>): Promise<string[]> =>
        (await query.list()).items.map(({ key }) => key);
      const all = records.query(Order);

      assert.deepEqual(
        await keys(all.where((order) => order("status").eq("paid")).where((order) => order("total").gte(20))),
        ["o-2", "o-4"],
      );
      assert.deepEqual(await keys(all.where((order) => order("address", "city").startsWith("Os"))), ["o-1", "o-2"]);
      assert.deepEqual(await keys(all.where((order) => order("tags").any((tag) => tag().eq("gift")))), ["o-3", "o-4"]);
      const five = all.where((order) => order("lines").any((line) => and(line("sku").eq("x"), line("count").gt(4))));
      assert.deepEqual(await keys(five), ["o-2"]);
      assert.deepEqual(await keys(all.where((order) => order("total").isNull())), ["o-3"]);
      assert.deepEqual(await keys(all.where((order) => not(or(order("total").lt(20), order("total").isNull())))), [
        "o-2",
        "o-4",
      ]);
      assert.deepEqual(await keys(all.where((order) => order("total").ne(20))), ["o-1", "o-3", "o-4"]);
      assert.deepEqual(await keys(all.where((order) => order("total").in([]))), []);
      assert.deepEqual(await keys(all.where((order) => order("total").notIn([]))), ["o-1", "o-2", "o-3", "o-4"]);
      assert.deepEqual(await keys(all.where((order) => order.key.in(["o-4", "o-9"]))), ["o-4"]);
      // What the types refuse; the code is never run.
      const refused = (): unknown[] => [
        // @ts-expect-error -- no such field
        all.where((order) => order("totl").eq(1)),
        // @ts-expect-error -- a number is not compared with a text
        all.where((order) => order("total").eq("1")),
        // @ts-expect-error -- not one of the values
        all.where((order) => order("status").eq("gone")),
        // @ts-expect-error -- no such field of a customer
        records.query(Placed).where((placed) => placed.from("city").eq("Oslo")),
        // @ts-expect-error -- a key is a text
        records.get(Order, 17),
        // @ts-expect-error -- a relation is found by its endpoints
        records.get(Placed, "o-1"),
        // @ts-expect-error -- the document lacks its fields
        records.put(Customer, { id: "c-1" }),
        // @ts-expect-error -- the relation knows something
        records.link(Placed, { from: "ada", to: "o-1" }),
      ];
      assert.equal(typeof refused, "function");
    });

    test("lists are ordered, cut and continued", async (t) => {
      const { records } = await begin(t, backend);
      const byTotal = records.query(Order).orderBy((order) => order("total"), "desc");

      const first = await byTotal.limit(2).list();
      const second = await byTotal
        .limit(2)
        .after(first.next ?? "")
        .list();

      assert.deepEqual(
        [...first.items, ...second.items].map(({ key }) => key),
        ["o-4", "o-2", "o-1", "o-3"],
      );
      assert.equal(second.next, null);
      assert.deepEqual(
        (await byTotal.limit(1).offset(1).list()).items.map(({ key }) => key),
        ["o-2"],
      );
      assert.equal((await byTotal.first())?.key, "o-4");
      assert.equal(
        await records
          .query(Order)
          .where((order) => order("total").gt(999))
          .first(),
        undefined,
      );
      await assert.rejects(
        records
          .query(Order)
          .after(first.next ?? "")
          .list(),
        { code: "invalid", message: /another question/ },
      );
      await assert.rejects(byTotal.after("nonsense").list(), { code: "invalid", message: /not a cursor/ });
      // A cursor is a place in the order: it works when the record it was made at is gone.
      await records.delete(Order, "o-2");
      assert.deepEqual(
        (
          await byTotal
            .limit(2)
            .after(first.next ?? "")
            .list()
        ).items.map(({ key }) => key),
        ["o-1", "o-3"],
      );
    });

    test("counts, sums, averages, minima and maxima are computed over all, by group and with having", async (t) => {
      const { records } = await begin(t, backend);
      const all = records.query(Order);

      assert.deepEqual(
        await all.aggregate((order) => ({
          n: order.count(),
          sum: order("total").sum(),
          avg: order("total").avg(),
          min: order("total").min(),
          max: order("total").max(),
          first: order("address", "city").min(),
          paid: order.countWhere(order("status").eq("paid")),
          lines: order("lines").avgLength(),
        })),
        { n: 4, sum: 70, avg: 70 / 3, min: 10, max: 40, first: "Lima", paid: 3, lines: 1 },
      );
      assert.deepEqual(
        await all
          .where((order) => order("total").gt(999))
          .aggregate((order) => ({ n: order.count(), sum: order("total").sum(), min: order("total").min() })),
        { n: 0, sum: null, min: null },
      );
      const groups = all.groupBy((order) => ({ status: order("status"), city: order("address", "city") }));
      assert.deepEqual(await groups.aggregate((order) => ({ n: order.count(), sum: order("total").sum() })), [
        { status: "open", city: "Oslo", n: 1, sum: 10 },
        { status: "paid", city: null, n: 1, sum: null },
        { status: "paid", city: "Lima", n: 1, sum: 40 },
        { status: "paid", city: "Osaka", n: 1, sum: 20 },
      ]);
      const many = all.groupBy((order) => ({ status: order("status") }));
      assert.deepEqual(await many.aggregate((order) => ({ n: order.count() }), { having: (row) => row("n").gt(1) }), [
        { status: "paid", n: 3 },
      ]);
      assert.equal(await records.query(Customer).count(), 0, "a type of which nothing was written");
      await assert.rejects(all.limit(2).count(), { code: "invalid", message: /leave out/ });
    });

    test("relations are asked about by their endpoints, at the same moment", async (t) => {
      const { records } = await begin(t, backend);
      await records.put(Customer, { id: "ada", country: "NO" });
      await records.put(Customer, { id: "bob", country: "PE" });
      for (const [at, [from, to]] of Object.entries([
        ["ada", "o-1"],
        ["ada", "o-2"],
        ["bob", "o-4"],
      ] as const)) {
        await records.link(Placed, { from, to }, { at: Number(at) });
      }
      const head = (await records.head()) ?? 0;
      await records.patch(Customer, "ada", { country: "SE" });
      await records.patch(Order, "o-2", { status: "open" });
      const ends = async (query: ReturnType<typeof records.query<typeof Placed>>): Promise<string[]> =>
        (await query.list()).items.map(({ key }) => `${key.from} ${key.to}`);
      const norwegian = records.query(Placed).where((placed) => placed.from("country").eq("NO"));

      assert.deepEqual(await ends(norwegian), []);
      assert.deepEqual(await ends(norwegian.asOf(head)), ["ada o-1", "ada o-2"]);
      assert.deepEqual(await ends(norwegian.asOf(head).where((placed) => placed.to("status").eq("paid"))), ["ada o-2"]);
      const open = records.query(Placed).where((placed) => and(placed.to("status").eq("open"), placed("at").gt(0)));
      assert.deepEqual(await ends(open), ["ada o-2"]);
      assert.deepEqual(await ends(records.query(Placed).where((placed) => placed.fromKey.eq("bob"))), ["bob o-4"]);
      assert.deepEqual(
        await ends(records.query(Placed).where((placed) => placed.to("lines").any((line) => line("sku").eq("y")))),
        ["ada o-2"],
      );
      assert.deepEqual(
        await ends(
          records
            .query(Placed)
            .where((placed) => placed.to("total").ne(10))
            .orderBy((placed) => placed("at"), "desc"),
        ),
        ["bob o-4", "ada o-2"],
      );
    });

    test("a time means the last commit at or before it", async (t) => {
      const { book } = await openTest(t, backend, { use: [Customer], worker: false });
      await book.records.put(Customer, { id: "ada", country: "NO" });
      const { at } = await book.records.commit(1);
      const before = new Date(at - 1);

      assert.equal(await book.records.find(Customer, "ada", { asOf: before }), undefined);
      assert.equal(await book.records.query(Customer).asOf(before.toISOString()).count(), 0);
      for (const moment of [new Date(at), at]) {
        assert.equal((await book.records.get(Customer, "ada", { asOf: moment })).country, "NO");
        assert.equal(await book.records.query(Customer).asOf(moment).count(), 1);
        assert.equal((await book.records.diff(0, moment)).items.length, 1);
      }
      await assert.rejects(book.records.find(Customer, "ada", { asOf: at + 1e9 }), {
        code: "invalid",
        message: /asOf 2\d{3}-.* is in the future/,
      });
      await assert.rejects(book.records.find(Customer, "ada", { asOf: "2999-01-01T00:00:00Z" }), {
        code: "invalid",
        message: /future/,
      });
      await assert.rejects(book.records.find(Customer, "ada", { asOf: 2 }), {
        code: "not_found",
        message: /the last one is 1/,
      });
    });

    test("a snapshot sees all records of one moment", async (t) => {
      const book = await begin(t, backend);

      const [count, head, one] = await book.read(async (tx) => {
        const query = tx.records.query(Order);
        const counted = await query.count();
        return [counted, await tx.records.head(), await tx.records.get(Order, "o-1")] as const;
      });

      assert.deepEqual([count, head, one.total], [4, 1, 10]);
      await assert.rejects(
        book.write(() => book.records.get(Order, "o-1")),
        { code: "invalid", message: /inside book.write/ },
      );
      await assert.rejects(
        book.write((tx) => void tx.records.query(Order).count()),
        { code: "invalid", message: /not awaited/ },
      );
    });
  });
}
