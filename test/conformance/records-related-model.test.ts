// What is related, and groups in order, on both back ends, against plain loops over the same documents.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { entity, relation, type Book } from "../../src/index.ts";
import type { Condition } from "../../src/records/query/condition.ts";
import { anyFields, anyPlainCondition, orderNames } from "../records/any-document.ts";
import { at, compareOrder, fits } from "../records/naive.ts";
import { backends, openTest } from "../support/open-test.ts";
import { fc } from "../support/property.ts";

type Document = { readonly [name: string]: unknown; readonly id: string };

// Lets everything through; zod would drop a field named __proto__.
const schema: StandardSchemaV1<Document> = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: value as Document }) },
};
const indexes = ["a", ["b"]] as never;
const Left = entity("left", { schema, key: "id", indexes });
const Right = entity("right", { schema, key: "id", indexes });
const Link = relation("link", { from: Left, to: Right, schema, instanceKey: "id", indexes });
const runs = process.env["DAYBOOK_TEST_SEED"] === "random" ? 200 : 15;

const counts = ["eq", "ne", "lt", "lte", "gt", "gte"] as const;
const anyEdge = fc.tuple(fc.nat(5), fc.nat(5), anyFields);
const anyAsked = fc.record({
  way: fc.constantFrom("out" as const, "in" as const),
  far: anyPlainCondition,
  link: fc.option(anyPlainCondition),
  not: fc.boolean(),
  is: fc.constantFrom(...counts),
  count: fc.nat(3),
});
type Asked = typeof anyAsked extends fc.Arbitrary<infer T> ? T : never;
type Edge = { readonly from: string; readonly to: string; readonly value: Document };
type State = {
  readonly left: readonly Document[];
  readonly right: readonly Document[];
  readonly edges: readonly Edge[];
};

for (const backend of backends) {
  test(`${backend}: conditions about what is related and orders of groups mean what plain loops say`, async (t) => {
    const { book } = await openTest(t, backend, { use: [Link], worker: false });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyFields, { minLength: 2, maxLength: 6 }),
        fc.array(anyFields, { minLength: 2, maxLength: 6 }),
        fc.array(anyEdge, { maxLength: 10 }),
        fc.array(anyAsked, { minLength: 4, maxLength: 4 }),
        fc.constantFrom(...orderNames),
        fc.constantFrom("asc" as const, "desc" as const),
        fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
        async (left, right, edges, asked, name, direction, limit) => {
          const own = book.tenant(`t${++round % 3}`);
          const state = await fill(own, left, right, edges);
          const moment = (await own.records.head()) ?? 0;
          // Everything is other than it was, so that what is found as of then was not found now.
          const later: State = {
            left: state.left,
            right: state.right.map(({ id }) => ({ id })),
            edges: state.edges.slice(1),
          };
          for (const each of asked)
            assert.deepEqual(await found(own, each), expected(state, each), JSON.stringify(each));
          await checkGroups(own, state, { name, direction, limit });
          await own.write(async (tx) => {
            await tx.records.putMany(Right, later.right);
            const [first] = state.edges;
            if (first !== undefined)
              await tx.records.unlink(Link, { from: first.from, to: first.to, instance: first.value.id });
            for (const each of asked) {
              assert.deepEqual(await found(tx as unknown as Book, each), expected(later, each), "in the transaction");
            }
          });
          for (const each of asked) {
            assert.deepEqual(await found(own, each), expected(later, each), "now");
            assert.deepEqual(await found(own, each, moment), expected(state, each), "then");
          }
        },
      ),
      { numRuns: runs },
    );
    assert.deepEqual(await book.doctor(), []);
  });
}

/** The tenant's records are these and no others. */
async function fill(
  book: Book,
  left: readonly Record<string, unknown>[],
  right: readonly Record<string, unknown>[],
  edges: readonly (readonly [number, number, Record<string, unknown>])[],
): Promise<State> {
  const state: State = {
    left: left.map((fields, index) => withId(fields, `l${index}`)),
    right: right.map((fields, index) => withId(fields, `r${index}`)),
    edges: edges.map(([from, to, fields], index) => ({
      from: `l${from % left.length}`,
      to: `r${to % right.length}`,
      value: withId(fields, `e${index}`),
    })),
  };
  await book.write(async ({ records }) => {
    for (const type of [Left, Right]) {
      for (const { key } of (await records.query(type).limit(500).list()).items)
        await records.delete(type, key, { unlink: true });
    }
    await records.putMany(Left, state.left);
    await records.putMany(Right, state.right);
    for (const { from, to, value } of state.edges) await records.link(Link, { from, to }, value);
  });
  return state;
}

// JSON.parse, because a literal with __proto__ would set a prototype.
function withId(fields: Record<string, unknown>, id: string): Document {
  const entries = Object.entries(fields).length === 0 ? "" : `${JSON.stringify(fields).slice(1, -1)},`;
  return JSON.parse(`{${entries}"id":"${id}"}`) as Document;
}

/** The condition of the relation: about its other end, and perhaps about itself. */
function whereOf({ way, far, link, not }: Asked): Condition {
  const end = moved(far, way === "out" ? "to" : "from");
  const about: Condition = not ? { op: "not", of: end } : end;
  return link === null ? about : { op: "and", of: [about, link] };
}

function moved(condition: Condition, side: "from" | "to"): Condition {
  if (condition.op === "and" || condition.op === "or")
    return { ...condition, of: condition.of.map((each) => moved(each, side)) };
  if (condition.op === "not") return { ...condition, of: moved(condition.of, side) };
  return { ...condition, at: { side, path: condition.at.path } };
}

async function found(book: Book, asked: Asked, asOf?: number): Promise<string[]> {
  const { way, is, count } = asked;
  const at = { side: "value", path: [] } as const;
  const query = book.records
    .query(way === "out" ? Left : Right)
    .where({ op: "related", at, relation: "link", way, where: whereOf(asked), is, count });
  const { items } = await (asOf === undefined ? query : query.asOf(asOf)).limit(500).list();
  return items.map(({ key }) => key);
}

function expected({ left, right, edges }: State, { way, far, link, not, is, count }: Asked): string[] {
  const [near, others] = way === "out" ? [left, right] : [right, left];
  const of = near.filter(({ id }) => {
    const mine = edges.filter((edge) => (way === "out" ? edge.from : edge.to) === id);
    const n = mine.filter((edge) => {
      const other = others.find((each) => each.id === (way === "out" ? edge.to : edge.from));
      return fits(far, other) !== not && (link === null || fits(link, edge.value));
    }).length;
    return { eq: n === count, ne: n !== count, lt: n < count, lte: n <= count, gt: n > count, gte: n >= count }[is];
  });
  return of.map(({ id }) => id).sort();
}

type GroupsAsked = { readonly name: string; readonly direction: "asc" | "desc"; readonly limit: number | undefined };

/** Relations are grouped by a field of an end, ordered by their number and cut. */
async function checkGroups(
  book: Book,
  { right, edges }: State,
  { name, direction, limit }: GroupsAsked,
): Promise<void> {
  const numbers = new Map<string, { readonly by: unknown; n: number }>();
  for (const { to } of edges) {
    const by =
      at(
        right.find((each) => each.id === to),
        [name],
      ) ?? null;
    const group = numbers.get(canonical(by)) ?? { by, n: 0 };
    group.n++;
    numbers.set(canonical(by), group);
  }
  const sign = direction === "asc" ? 1 : -1;
  const inOrder = [...numbers.values()].sort(
    (one, other) => sign * (one.n - other.n) || compareOrder(one.by, other.by),
  );
  const groups = book.records.query(Link).groupBy((link) => ({ by: link.to(name) }));

  const given = await groups.aggregate((link) => ({ n: link.count() }), {
    orderBy: (row) => row("n"),
    direction,
    ...(limit === undefined ? {} : { limit }),
  });

  // What the order does not tell apart, null and objects, 1 and true, may come in any order.
  const cut = inOrder.slice(0, limit);
  assert.deepEqual(
    given.map(({ n }) => n),
    cut.map(({ n }) => n),
  );
  given.forEach(({ by, n }, index) => {
    assert.equal(compareOrder(by, cut[index]?.by), 0);
    assert.equal(numbers.get(canonical(by))?.n, n);
  });
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    each !== null && typeof each === "object" && !Array.isArray(each)
      ? Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1))
      : each,
  );
}
