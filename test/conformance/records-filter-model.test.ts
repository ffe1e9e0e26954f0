// Every condition, on both back ends, against a naive evaluator over the same documents (R9); with and without an index.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { entity, type Book } from "../../src/index.ts";
import { follow } from "../../src/records/define/definition.ts";
import { evaluate } from "../../src/records/query/condition.ts";
import { anyCondition, anyFields, orderNames } from "../records/any-document.ts";
import { at, compareOrder, fits } from "../records/naive.ts";
import { backends, openTest } from "../support/open-test.ts";
import { fc } from "../support/property.ts";

// Lets everything through; zod would drop a field named __proto__.
const schema: StandardSchemaV1<{ readonly [name: string]: unknown; readonly id: string }> = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: value as { id: string } }) },
};
const Plain = entity("plain", { schema, key: "id" });
const Indexed = entity("indexed", {
  schema,
  key: "id",
  indexes: [
    "a",
    "a.b",
    ['a"b', "a"],
    { path: "b", temporal: true },
    { path: "a", each: true },
    { path: ['a"b'], each: true },
    "'; drop table daybook_record; --",
    "__proto__",
  ] as never,
});
const runs = process.env["DAYBOOK_TEST_SEED"] === "random" ? 400 : 40;

for (const backend of backends) {
  test(`${backend}: conditions, orders and pages mean what a naive evaluator says`, async (t) => {
    const { book } = await openTest(t, backend, { use: [Plain, Indexed], worker: false });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyFields, { minLength: 1, maxLength: 12 }),
        fc.array(anyCondition, { minLength: 6, maxLength: 6 }),
        fc.constantFrom(...orderNames),
        fc.constantFrom("asc" as const, "desc" as const),
        async (documents, conditions, name, direction) => {
          const own = book.tenant(`t${++round % 4}`);
          const all = await fill(own, documents);

          for (const condition of conditions) {
            const expected = all.filter((each) => fits(condition, each)).map(({ id }) => id);
            const found = all
              .filter((each) => evaluate(condition, ({ path }) => follow(each, path)))
              .map(({ id }) => id);
            assert.deepEqual(found, expected, "the evaluator of live queries");
            for (const type of [Plain, Indexed]) {
              const { items } = await own.records.query(type).where(condition).limit(500).list();
              assert.deepEqual(
                items.map(({ key }) => key),
                expected,
                `${type.name}: ${JSON.stringify(condition)}`,
              );
            }
          }
          const sign = direction === "asc" ? 1 : -1;
          const sorted = all.toSorted(
            (one, other) => sign * compareOrder(at(one, [name]), at(other, [name])) || (one.id < other.id ? -1 : 1),
          );
          for (const type of [Plain, Indexed]) {
            const ordered = own.records
              .query(type)
              .orderBy((record) => record(name), direction)
              .limit(3);
            const keys: string[] = [];
            for (let next: string | null | undefined; next !== null;) {
              const page = await (next === undefined ? ordered : ordered.after(next)).list();
              keys.push(...page.items.map(({ key }) => key));
              next = page.next;
            }
            assert.deepEqual(
              keys,
              sorted.map(({ id }) => id),
              `${type.name} by ${name} ${direction}`,
            );
          }
        },
      ),
      { numRuns: runs },
    );
    assert.deepEqual(await book.doctor(), []);
  });
}

/** The tenant's records are these and no others. */
async function fill(book: Book, documents: readonly Record<string, unknown>[]): Promise<{ id: string }[]> {
  const all = documents.map((fields, index) => withId(fields, `k${String(index).padStart(2, "0")}`));
  await book.write(async (tx) => {
    for (const type of [Plain, Indexed]) {
      for (const { key } of (await tx.records.query(type).limit(500).list()).items) await tx.records.delete(type, key);
      await tx.records.putMany(type, all);
    }
  });
  return all;
}

function withId(fields: Record<string, unknown>, id: string): { id: string } {
  return JSON.parse(
    `${JSON.stringify(fields).slice(0, -1)}${Object.keys(fields).length === 0 ? "" : ","}"id":"${id}"}`,
  ) as { id: string };
}
