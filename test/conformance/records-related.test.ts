// Questions along relations: filters from an entity's side, documents with what is related to them, and numbers about endpoints.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { and, entity, not, or, relation, type Book, type Query } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Customer = entity("customer", { schema: z.object({ id: z.string(), country: z.string() }), key: "id" });
const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number(), status: z.string() }),
  key: "id",
  indexes: ["status"],
});
const Product = entity("product", { schema: z.object({ id: z.string(), price: z.number() }), key: "id" });
const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });
const Holds = relation("holds", { from: Order, to: Product });
const Knows = relation("knows", { from: Customer, to: Customer });

/** ada placed o-1 (40) and o-2 (60), bob placed o-3 (10), cid placed nothing; ada knows bob. o-2 holds a pen and a book, o-3 a pen. */
async function begin(t: TestContext, backend: Backend): Promise<Book> {
  const { book } = await openTest(t, backend, { use: [Placed, Holds, Knows], worker: false });
  await book.write(async (tx) => {
    const { records } = tx;
    await records.putMany(Customer, [
      { id: "ada", country: "NO" },
      { id: "bob", country: "PE" },
      { id: "cid", country: "NO" },
    ]);
    await records.putMany(Order, [
      { id: "o-1", total: 40, status: "open" },
      { id: "o-2", total: 60, status: "paid" },
      { id: "o-3", total: 10, status: "open" },
    ]);
    await records.putMany(Product, [
      { id: "book", price: 9 },
      { id: "pen", price: 2 },
    ]);
    await records.link(Placed, { from: "ada", to: "o-1" }, { at: 1 });
    await records.link(Placed, { from: "ada", to: "o-2" }, { at: 2 });
    await records.link(Placed, { from: "bob", to: "o-3" }, { at: 3 });
    await records.link(Holds, { from: "o-2", to: "pen" });
    await records.link(Holds, { from: "o-2", to: "book" });
    await records.link(Holds, { from: "o-3", to: "pen" });
    await records.link(Knows, { from: "ada", to: "bob" });
  });
  return book;
}

async function keys(query: AsyncIterable<{ readonly key: unknown }>): Promise<unknown[]> {
  return (await Array.fromAsync(query)).map(({ key }) => key);
}

for (const backend of backends) {
  describe(backend, () => {
    test("entities are found by what is related to them, from either end", async (t) => {
      const { records } = await begin(t, backend);
      const customers = records.query(Customer);
      const orders = records.query(Order);

      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).some((order) => order("total").gt(50)))), [
        "ada",
      ]);
      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).some())), ["ada", "bob"]);
      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).none())), ["cid"]);
      assert.deepEqual(
        await keys(customers.where((c) => c.related(Placed).none((order) => order("status").eq("paid")))),
        ["bob", "cid"],
      );
      assert.deepEqual(
        await keys(customers.where((c) => c.related(Placed).every((order) => order("status").eq("open")))),
        ["bob", "cid"],
        "every one of none holds",
      );
      assert.deepEqual(
        await keys(
          customers.where((c) =>
            c.related(Placed).some((order, placed) => and(order("status").eq("open"), placed("at").gte(2))),
          ),
        ),
        ["bob"],
      );
      assert.deepEqual(await keys(orders.where((order) => order.related(Placed).some((c) => c("country").eq("NO")))), [
        "o-1",
        "o-2",
      ]);
      assert.deepEqual(await keys(orders.where((order) => order.related(Placed).some((c) => c.key.eq("bob")))), [
        "o-3",
      ]);
      assert.deepEqual(await keys(customers.where((c) => or(c.related(Placed).none(), not(c("country").eq("NO"))))), [
        "bob",
        "cid",
      ]);
    });

    test("what is related is counted and compared", async (t) => {
      const { records } = await begin(t, backend);
      const customers = records.query(Customer);

      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).count().gte(2))), ["ada"]);
      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).count().eq(1))), ["bob"]);
      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).count().lt(2))), ["bob", "cid"]);
      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).count().ne(0))), ["ada", "bob"]);
      const large = customers.where((c) =>
        c
          .related(Placed)
          .count((order) => order("total").gt(20))
          .lte(0),
      );
      assert.deepEqual(await keys(large), ["bob", "cid"]);
    });

    test("questions go on from what is related to what is related to that, and from the ends of a relation", async (t) => {
      const { records } = await begin(t, backend);
      const readers = records
        .query(Customer)
        .where((c) =>
          c.related(Placed).some((order) => order.related(Holds).some((product) => product("price").gt(5))),
        );
      const ofReaders = records.query(Placed).where((placed) => placed.to.related(Holds).some((p) => p.key.eq("book")));
      const buyers = records
        .query(Product)
        .where((product) =>
          product.related(Holds).some((order) => order.related(Placed).every((c) => c("country").eq("PE"))),
        );

      assert.deepEqual(await keys(readers), ["ada"]);
      assert.deepEqual(await keys(ofReaders), [{ from: "ada", to: "o-2", instance: "" }]);
      assert.deepEqual(await keys(buyers), ["pen"]);
    });

    test("a relation between entities of one type is told its way", async (t) => {
      const { records } = await begin(t, backend);
      const customers = records.query(Customer);

      assert.deepEqual(await keys(customers.where((c) => c.related(Knows, "out").some())), ["ada"]);
      assert.deepEqual(await keys(customers.where((c) => c.related(Knows, "in").some((of) => of.key.eq("ada")))), [
        "bob",
      ]);
      // What the types refuse is refused without them, too.
      // @ts-expect-error -- which of the two ends is meant?
      assert.throws(() => customers.where((c) => c.related(Knows).some()), { code: "invalid", message: /which way/ });
      // @ts-expect-error -- it goes from orders to products
      assert.throws(() => customers.where((c) => c.related(Holds).some()), {
        code: "invalid",
        message: /does not connect/,
      });
      assert.throws(() => customers.where((c) => c.related(Placed, "in").some()), {
        code: "invalid",
        message: /"out"/,
      });
      const refused = (): unknown[] => [
        // @ts-expect-error -- an order has no country
        customers.where((c) => c.related(Placed).some((order) => order("country").eq("NO"))),
        // @ts-expect-error -- a total is a number
        customers.where((c) => c.related(Placed).some((order) => order("total").gt("50"))),
        // @ts-expect-error -- the relation has no such field
        customers.where((c) => c.related(Placed).some((_, placed) => placed("until").gt(1))),
      ];
      assert.equal(typeof refused, "function");
    });

    test("what is related is asked about at the moment of the question, and in a transaction with what it wrote", async (t) => {
      const book = await begin(t, backend);
      const large = book.records.query(Customer).where((c) => c.related(Placed).some((order) => order("total").gt(50)));
      const paid = (of: Book["records"]): Query<typeof Customer> =>
        of.query(Customer).where((c) => c.related(Placed).some((order) => order("status").eq("paid")));
      await book.records.patch(Order, "o-2", { total: 5 });
      await book.records.patch(Order, "o-3", { total: 500 });
      await book.records.unlink(Placed, { from: "bob", to: "o-3" });
      await book.records.delete(Customer, "ada", { unlink: true });

      assert.deepEqual(await keys(large), []);
      assert.deepEqual(await keys(large.asOf(1)), ["ada"]);
      assert.deepEqual(await keys(large.asOf(3)), ["bob"]);
      assert.deepEqual(await keys(large.asOf(0)), []);
      await book.write(async (tx) => {
        const here = tx.records.query(Customer);
        await tx.records.link(Placed, { from: "cid", to: "o-3" }, { at: 9 });
        await tx.records.patch(Order, "o-3", { status: "paid" });
        assert.deepEqual(
          (await here.where((c) => c.related(Placed).some((order) => order("status").eq("paid"))).list()).items.map(
            ({ key }) => key,
          ),
          ["cid"],
        );
        assert.equal(await here.where((c) => c.related(Placed).count().gt(0)).count(), 1);
      });
      assert.deepEqual(await keys(paid(book.records)), ["cid"]);
      assert.deepEqual(await keys(paid(book.records).asOf(5)), []);
    });

    test("a relation of which nothing was written relates nothing", async (t) => {
      const { book } = await openTest(t, backend, { use: [Placed], worker: false });
      await book.records.put(Customer, { id: "ada", country: "NO" });
      const customers = book.records.query(Customer);

      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).some())), []);
      assert.deepEqual(await keys(customers.where((c) => c.related(Placed).none())), ["ada"]);
      const [ada] = (await customers.with((c) => ({ orders: c.related(Placed) })).list()).items;
      assert.deepEqual(ada?.related.orders, []);
    });

    test("documents are read with what is related to them, as they were at that moment", async (t) => {
      const { records } = await begin(t, backend);
      await records.patch(Order, "o-1", { total: 41 });
      const withOrders = records.query(Customer).with((c) => ({
        orders: c.related(Placed),
        last: c
          .related(Placed)
          .orderBy((_, placed) => placed("at"), "desc")
          .limit(1),
        paid: c.related(Placed).where((order) => order("status").eq("paid")),
      }));

      const [ada, bob, cid] = (await withOrders.list()).items;
      const totals = ada?.related.orders.map(({ key, value, relation: placed }) => [key, value.total, placed.value.at]);
      assert.deepEqual(totals, [
        ["o-1", 41, 1],
        ["o-2", 60, 2],
      ]);
      assert.deepEqual(ada?.related.orders[0], {
        type: "order",
        key: "o-1",
        value: { id: "o-1", total: 41, status: "open" },
        revision: 2,
        commit: 2,
        schemaVersion: 1,
        relation: {
          type: "placed",
          key: { from: "ada", to: "o-1", instance: "" },
          value: { at: 1 },
          revision: 1,
          commit: 1,
          schemaVersion: 1,
        },
      });
      assert.deepEqual(
        ada.related.last.map(({ key }) => key),
        ["o-2"],
      );
      assert.deepEqual(
        ada.related.paid.map(({ key }) => key),
        ["o-2"],
      );
      assert.deepEqual([bob?.related.orders.length, bob?.related.paid.length], [1, 0]);
      assert.deepEqual(cid?.related, { orders: [], last: [], paid: [] });
      const before = await withOrders.asOf(1).first();
      assert.deepEqual(
        before?.related.orders.map(({ value }) => value.total),
        [40, 60],
      );
    });

    test("documents of what is related to that in turn are read along, and those of a transaction's own writes", async (t) => {
      const book = await begin(t, backend);
      const deep = book.records.query(Customer).with((c) => ({
        orders: c.related(Placed).with((order) => ({ products: order.related(Holds) })),
      }));
      const buyers = book.records.query(Product).with((p) => ({ orders: p.related(Holds) }));

      const names = (await Array.fromAsync(deep)).map(({ key, related: { orders } }) => [
        key,
        orders.map(({ related: { products } }) => products.map(({ value }) => value.price)),
      ]);
      assert.deepEqual(names, [
        ["ada", [[], [9, 2]]],
        ["bob", [[2]]],
        ["cid", []],
      ]);
      const page = await buyers.limit(1).list();
      assert.deepEqual(
        page.items.map(({ related }) => related.orders.map(({ key }) => key)),
        [["o-2"]],
      );
      const second = await buyers.after(page.next ?? "").list();
      assert.deepEqual(
        second.items.map(({ related }) => related.orders.map(({ key }) => key)),
        [["o-2", "o-3"]],
      );
      await book.write(async (tx) => {
        await tx.records.put(Order, { id: "o-4", total: 1, status: "new" });
        await tx.records.link(Placed, { from: "cid", to: "o-4" }, { at: 4 });
        await tx.records.patch(Order, "o-3", { status: "sent" });
        const { items } = await tx.records
          .query(Customer)
          .with((c) => ({ orders: c.related(Placed) }))
          .list();
        const found = items.map(({ related }) => related.orders.map(({ key, value }) => [key, value.status]));
        assert.deepEqual(found.slice(1), [[["o-3", "sent"]], [["o-4", "new"]]]);
      });
      // @ts-expect-error -- a condition is nothing to read along
      assert.throws(() => book.records.query(Customer).with((c) => ({ some: c.related(Placed).some() })), {
        code: "invalid",
        message: /"some" of with/,
      });
      await assert.rejects(deep.count(), { code: "invalid", message: /leave out .*with/ });
    });

    test("what is read along is named in several steps, and each name once", async (t) => {
      const { records } = await begin(t, backend);
      const customers = records
        .query(Customer)
        .with((c) => ({ placed: c.related(Placed).with((order) => ({ holds: order.related(Holds) })) }))
        .with((c) => ({ knows: c.related(Knows, "out") }));

      const ada = await customers.first();

      const { placed, knows } = ada?.related ?? { placed: [], knows: [] };
      assert.deepEqual(
        [placed.map(({ key, related }) => [key, related.holds.length]), knows.map(({ key }) => key)],
        [
          [
            ["o-1", 0],
            ["o-2", 2],
          ],
          ["bob"],
        ],
      );
      assert.throws(() => customers.with((c) => ({ knows: c.related(Knows, "in") })), {
        code: "invalid",
        message: /with names "knows" twice/,
      });
    });

    test("a condition about what is related refuses an order, a limit and what is read along", async (t) => {
      const { records } = await begin(t, backend);
      const customers = records.query(Customer);
      const refused = { code: "invalid", message: /leave out orderBy, limit and with/ };

      assert.throws(() => customers.where((c) => c.related(Placed).limit(1).some()), refused);
      assert.throws(
        () =>
          customers.where((c) =>
            c
              .related(Placed)
              .orderBy((order) => order("total"))
              .none(),
          ),
        refused,
      );
      assert.throws(
        () =>
          customers.where((c) =>
            c
              .related(Placed)
              .with((order) => ({ holds: order.related(Holds) }))
              .count()
              .gt(1),
          ),
        refused,
      );
    });

    test("more than a thousand related records are read along only with a limit, and otherwise refused", async (t) => {
      const { book } = await openTest(t, backend, { use: [Placed], worker: false });
      await book.write(async (tx) => {
        await tx.records.put(Customer, { id: "ada", country: "NO" });
        const ids = Array.from({ length: 1001 }, (_, index) => `o-${index}`);
        await tx.records.putMany(
          Order,
          ids.map((id) => ({ id, total: 1, status: "open" })),
        );
        for (const to of ids) await tx.records.link(Placed, { from: "ada", to }, { at: 1 });
      });
      const customers = book.records.query(Customer);

      await assert.rejects(customers.with((c) => ({ orders: c.related(Placed) })).list(), {
        code: "invalid",
        message: /"ada" has more than 1000 of "orders".*limit/,
      });
      const some = await customers.with((c) => ({ orders: c.related(Placed).limit(500) })).first();
      assert.equal(some?.related.orders.length, 500);
      assert.equal(await customers.where((c) => c.related(Placed).count().eq(1001)).count(), 1);
    });

    test("numbers about the ends of relations are right, now, then and in a transaction", async (t) => {
      const book = await begin(t, backend);
      const placed = book.records.query(Placed);
      const numbers = (of: typeof placed): Promise<unknown> =>
        of.aggregate((each) => ({
          sum: each.to("total").sum(),
          avg: each.to("total").avg(),
          min: each.to("total").min(),
          max: each.from("country").max(),
          last: each.toKey.max(),
          n: each.count(),
          norwegian: each.countWhere(each.from("country").eq("NO")),
        }));
      const first = { sum: 110, avg: 110 / 3, min: 10, max: "PE", last: "o-3", n: 3, norwegian: 2 };
      await book.records.patch(Order, "o-3", { total: 20 });
      await book.records.patch(Customer, "ada", { country: "SE" });

      assert.deepEqual(await numbers(placed), { ...first, sum: 120, avg: 40, min: 20, max: "SE", norwegian: 0 });
      assert.deepEqual(await numbers(placed.asOf(1)), first);
      assert.deepEqual(await numbers(placed.asOf(2)), { ...first, sum: 120, avg: 40, min: 20 });
      await book.write(async (tx) => {
        await tx.records.patch(Order, "o-3", { total: 1 });
        const { sum } = await tx.records.query(Placed).aggregate((each) => ({ sum: each.to("total").sum() }));
        assert.equal(sum, 101);
      });
    });

    test("a number counts the records that something is related to, of all and by group", async (t) => {
      const { records } = await begin(t, backend);
      const customers = records.query(Customer);

      const all = await customers.aggregate((each) => ({
        buyers: each.countWhere(each.related(Placed).some((order) => order.related(Holds).count().gt(1))),
        others: each.countWhere(each.related(Placed).none()),
      }));
      const groups = await customers
        .groupBy((each) => ({ country: each("country") }))
        .aggregate((each) => ({ buyers: each.countWhere(each.related(Placed).some()) }));
      const ends = await records
        .query(Placed)
        .aggregate((each) => ({ knowing: each.countWhere(each.from.related(Knows, "out").some()) }));

      assert.deepEqual(all, { buyers: 1, others: 1 });
      assert.deepEqual(groups, [
        { country: "NO", buyers: 1 },
        { country: "PE", buyers: 1 },
      ]);
      assert.deepEqual(ends, { knowing: 2 });
      await assert.rejects(
        customers.aggregate((each) => ({
          n: each.countWhere({ op: "eq", at: { side: "to", path: ["total"] }, value: 1 }),
        })),
        { code: "invalid", message: /an entity has no "to"/ },
      );
    });

    test("relations are grouped and ordered by fields of their ends, and their pages leave out nothing", async (t) => {
      const { records } = await begin(t, backend);
      const groups = records.query(Placed).groupBy((each) => ({ country: each.from("country") }));
      const all = records
        .query(Placed)
        .orderBy((each) => each.from("country"), "desc")
        .orderBy((each) => each.to("total"));

      assert.deepEqual(await groups.aggregate((each) => ({ sum: each.to("total").sum() })), [
        { country: "NO", sum: 100 },
        { country: "PE", sum: 10 },
      ]);
      const seen: unknown[] = [];
      for (let next: string | null | undefined; next !== null;) {
        const page = await (next === undefined ? all.limit(1) : all.limit(1).after(next)).list();
        seen.push(...page.items.map(({ key }) => key.to));
        next = page.next;
      }
      assert.deepEqual(seen, ["o-3", "o-1", "o-2"]);
      await records.patch(Order, "o-1", { total: 70 });
      assert.deepEqual(
        (await all.list()).items.map(({ key }) => key.to),
        ["o-3", "o-2", "o-1"],
      );
      assert.deepEqual(
        (await all.asOf(1).list()).items.map(({ key }) => key.to),
        ["o-3", "o-1", "o-2"],
      );
    });

    test("a watch refuses what it does not look at", async (t) => {
      const { records } = await begin(t, backend);
      const some = records.query(Customer).where((c) => c.related(Placed).some());

      const watched = records.watch(some)[Symbol.asyncIterator]();
      await assert.rejects(watched.next(), { code: "invalid", message: /connected with/ });
    });
  });
}
