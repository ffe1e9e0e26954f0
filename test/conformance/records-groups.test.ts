// Groups in order and up to a limit, sums at the edge of what a number holds, and fields as deep as a document goes.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, relation, type Book } from "../../src/index.ts";
import type { Place } from "../../src/records/query/condition.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Thing = entity("thing", {
  schema: z.object({
    id: z.string(),
    of: z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string())]).optional(),
    n: z.number(),
  }),
  key: "id",
});
const Next = relation("next", { from: Thing, to: Thing });
type Node = { name: string; next?: Node | undefined };
const node: z.ZodType<Node> = z.object({
  name: z.string(),
  get next() {
    return node.optional();
  },
});
const Deep = entity("deep", {
  schema: z.object({
    id: z.string(),
    a: z.object({ b: z.object({ c: z.object({ d: z.object({ e: z.number() }) }) }) }),
    node,
  }),
  key: "id",
});

async function begin(t: TestContext, backend: Backend, of: readonly (readonly [unknown, number])[]): Promise<Book> {
  const { book } = await openTest(t, backend, { use: [Thing, Deep, Next], worker: false });
  await book.records.putMany(
    Thing,
    of.map(([value, n], index) => ({ id: `t${index}`, n, ...(value === undefined ? {} : { of: value as string }) })),
  );
  return book;
}

for (const backend of backends) {
  describe(backend, () => {
    test("groups come in the order of their values: nothing first, then numbers by size, then texts", async (t) => {
      const values = [10, 9, "b", "a", "Z", "é", null, undefined, true, 1, -2, "10", ["x"]];
      const { records } = await begin(
        t,
        backend,
        values.map((value) => [value, 1]),
      );
      const groups = records.query(Thing).groupBy((thing) => ({ of: thing("of") }));
      const inOrder = [null, ["x"], -2, 1, true, 9, 10, "10", "Z", "a", "b", "é"];
      const count = { n: { how: "count", at: null, where: null } } as const;

      const all = await groups.aggregate((thing) => ({ n: thing.count() }));
      const down = await groups.aggregate(() => count, { direction: "desc" });
      const some = await groups.aggregate(() => count, { limit: 4 });

      assert.deepEqual(
        all.map(({ of }) => of),
        inOrder,
      );
      assert.equal(all[0]?.n, 2, "null and missing are one");
      assert.deepEqual(
        down.map(({ of }) => of),
        inOrder.toReversed(),
      );
      assert.deepEqual(some.map(({ of }) => of).slice(2), inOrder.slice(2, 4));
    });

    test("groups are ordered by any of their numbers and cut", async (t) => {
      const { records } = await begin(t, backend, [
        ["a", 1],
        ["a", 10],
        ["b", 9],
        ["c", 2],
        ["c", 9],
        ["d", 100],
      ]);
      const groups = records.query(Thing).groupBy((thing) => ({ of: thing("of") }));

      const top = await groups.aggregate((thing) => ({ sum: thing("n").sum() }), {
        orderBy: (row) => row("sum"),
        direction: "desc",
        limit: 3,
      });
      const kept = await groups.aggregate((thing) => ({ n: thing.count(), least: thing("n").min() }), {
        having: (row) => row("n").gt(1),
        orderBy: (row) => row("least"),
        direction: "desc",
        limit: 1,
      });
      const last = await groups.aggregate((thing) => ({ avg: thing("n").avg() }), {
        orderBy: (row) => row("avg"),
        limit: 2,
      });

      assert.deepEqual(top, [
        { of: "d", sum: 100 },
        { of: "a", sum: 11 },
        { of: "c", sum: 11 },
      ]);
      assert.deepEqual(kept, [{ of: "c", n: 2, least: 2 }]);
      assert.deepEqual(
        last.map(({ of }) => of),
        ["a", "c"],
      );
      await assert.rejects(
        groups.aggregate((thing) => ({ n: thing.count() }), { limit: 0 }),
        { code: "invalid" },
      );
      await assert.rejects(
        // @ts-expect-error -- groups have no such value
        groups.aggregate((thing) => ({ n: thing.count() }), { orderBy: (row) => row("m") }),
        { code: "invalid", message: /ordered by one of their values: of, n/ },
      );
    });

    test("a group and a number of one name are refused", async (t) => {
      const { records } = await begin(t, backend, [["a", 1]]);
      const groups = records.query(Thing).groupBy((thing) => ({ n: thing("of") }));

      await assert.rejects(
        groups.aggregate((thing) => ({ n: thing.count() })),
        { code: "invalid", message: /a group and a number are both named "n"/ },
      );
    });

    test("an aggregate, a group and an order name only what such a record has", async (t) => {
      const { records } = await begin(t, backend, [["a", 1]]);
      await records.link(Next, { from: "t0", to: "t0" });
      const to = { at: { side: "toKey", path: [] } } as const;
      const key = { at: { side: "key", path: [] } } as const;
      const highest = (at: Place) => ({ how: "max", at, where: null }) as const;
      const [things, links] = [records.query(Thing), records.query(Next)];
      const noEnd = { code: "invalid", message: /an entity has no "toKey"/ };
      const noKey = { code: "invalid", message: /a relation has no key of its own/ };

      await assert.rejects(
        things.aggregate(() => ({ to: highest(to.at) })),
        noEnd,
      );
      await assert.rejects(
        links.groupBy(() => ({ key })).aggregate((link) => ({ n: link.count() })),
        noKey,
      );
      await assert.rejects(
        links.aggregate(() => ({ key: highest(key.at) })),
        noKey,
      );
      await assert.rejects(things.orderBy(() => to).list(), noEnd);
    });

    test("the first of any number of groups are given", async (t) => {
      const { records } = await begin(t, backend, []);
      const all = Array.from({ length: 10_050 }, (_, index) => ({ id: `k${index}`, of: index, n: index % 7 }));
      for (let from = 0; from < all.length; from += 5000) await records.putMany(Thing, all.slice(from, from + 5000));
      const groups = records.query(Thing).groupBy((thing) => ({ of: thing("of") }));

      const first = await groups.aggregate((thing) => ({ n: thing("n").max() }), {
        orderBy: (row) => row("n"),
        direction: "desc",
        limit: 2,
      });

      assert.deepEqual(first, [
        { of: 6, n: 6 },
        { of: 13, n: 6 },
      ]);
      await assert.rejects(
        groups.aggregate((thing) => ({ n: thing.count() })),
        { code: "invalid", message: /10000 groups/ },
      );
    });

    test("a sum is exact as long as a number holds it, and refused beyond", async (t) => {
      const most = Number.MAX_VALUE;
      const { records } = await begin(t, backend, [
        ["there and back", most],
        ["there and back", most],
        ["there and back", -most],
        ["too much", most],
        ["too much", most],
        ["small", 5e-324],
        ["small", 2],
      ]);
      const of = (name: string) => records.query(Thing).where((thing) => thing("of").eq(name));
      const sum = (name: string) => of(name).aggregate((thing) => ({ sum: thing("n").sum() }));
      const avg = (name: string) => of(name).aggregate((thing) => ({ avg: thing("n").avg(), n: thing.count() }));

      assert.deepEqual(await sum("there and back"), { sum: most });
      assert.deepEqual(await avg("too much"), { avg: most, n: 2 });
      assert.deepEqual(await avg("small"), { avg: 1, n: 2 });
      await assert.rejects(sum("too much"), { code: "invalid", message: /"sum" is beyond the largest number/ });
    });

    test("a field is named as deep as the document goes", async (t) => {
      const { records } = await begin(t, backend, []);
      const deep = {
        id: "d",
        a: { b: { c: { d: { e: 5 } } } },
        node: { name: "1", next: { name: "2", next: { name: "3" } } },
      };
      await records.put(Deep, deep);
      const all = records.query(Deep);

      assert.equal(await all.where((each) => each("a", "b", "c", "d", "e").gt(4)).count(), 1);
      assert.equal(await all.where((each) => each("node", "next", "next", "name").eq("3")).count(), 1);
      assert.equal(await all.where((each) => each("node", "next", "next", "next", "name").isNull()).count(), 1);
      const refused = (): unknown[] => [
        // @ts-expect-error -- there is no such name at that depth
        all.where((each) => each("a", "b", "c", "d", "f").gt(4)),
        // @ts-expect-error -- there is nothing inside a number
        all.where((each) => each("a", "b", "c", "d", "e", "f").isNull()),
        // @ts-expect-error -- a number is not compared with a text
        all.where((each) => each("a", "b", "c", "d", "e").eq("5")),
        // @ts-expect-error -- a name is a text
        all.where((each) => each("node", "next", "next", "next", "name").eq(5)),
      ];
      assert.equal(typeof refused, "function");
    });
  });
}
