// Bad input: every case is a clear error, or means literally what it says. Nothing of it ever becomes SQL.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { entity, relation, type Book, type Condition } from "../../src/index.ts";
import { parseJson } from "../../src/core/parse-json.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const anything: StandardSchemaV1<{ readonly [name: string]: unknown; readonly id: string }> = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: value as { id: string } }) },
};
const Thing = entity("thing", { schema: anything, key: "id" });
const Strict = entity("strict", { schema: z.object({ id: z.string(), n: z.number().int() }), key: "id" });
const Near = relation("near", { from: Thing, to: Thing });
const invalid = { code: "invalid" };

async function begin(t: TestContext, backend: Backend): Promise<Book> {
  return (await openTest(t, backend, { use: [Thing, Strict, Near], worker: false })).book;
}

const eq = (path: readonly unknown[], value: unknown): Condition =>
  ({ op: "eq", at: { side: "value", path }, value }) as Condition;

for (const backend of backends) {
  describe(backend, () => {
    test("documents and keys that cannot be kept are refused, and nothing is written", async (t) => {
      const { records } = await begin(t, backend);

      await assert.rejects(records.put(Strict, { id: "a", n: 1.5 }), {
        code: "invalid",
        message: /does not fit the schema of "strict": n: /,
      });
      await assert.rejects(records.put(Thing, { x: 1 } as never), {
        code: "invalid",
        message: /the key of "thing" is undefined/,
      });
      for (const id of ["", "   ", "\u00a0"])
        await assert.rejects(records.put(Thing, { id }), { code: "invalid", message: /is blank/ });
      for (const id of ["a\0b", "\ud800", "x".repeat(513)]) await assert.rejects(records.put(Thing, { id }), invalid);
      await assert.rejects(records.put(Thing, [] as never), invalid);
      await assert.rejects(records.put(Thing, { id: "a", x: "\ud800" }), {
        code: "invalid",
        message: /lone surrogate/,
      });
      await assert.rejects(records.put(Thing, { id: "a", x: 2n ** 53n + 1n }), { code: "invalid", message: /bigint/ });
      await assert.rejects(records.put(Thing, { id: "a", x: deep(200) }), {
        code: "invalid",
        message: /nested deeper than 64/,
      });
      await assert.rejects(records.put(Thing, { id: "a", x: "x".repeat(2 ** 20) }), {
        code: "invalid",
        message: /over the limit/,
      });
      await assert.rejects(records.put("thing" as never, { id: "a" }), {
        code: "invalid",
        message: /the definition, not its name/,
      });
      await assert.rejects(records.put(Thing, { id: "a" }, { ifRevison: 1 } as never), {
        code: "invalid",
        message: /did you mean "ifRevision"/,
      });
      await assert.rejects(records.put(Thing, { id: "a" }, { ifRevision: 0 }), {
        code: "invalid",
        message: /use ifAbsent/,
      });
      await assert.rejects(records.put(Thing, { id: "a" }, { ifRevision: 1, ifAbsent: true }), invalid);
      await assert.rejects(records.put(Thing, { id: "a" }, { metadata: [] as never }), invalid);
      await assert.rejects(records.put(Thing, { id: "a" }, { reason: "x".repeat(5000) }), invalid);
      // Text from outside is read strictly before it gets here.
      assert.throws(() => parseJson('{"id":"a","id":"b"}'), invalid);
      assert.throws(() => parseJson('{"id":"a","n":9007199254740993}'), invalid);

      assert.equal(await records.head(), null);
    });

    test("the names in a path are taken literally", async (t) => {
      const { records } = await begin(t, backend);
      const names = [
        "a.b",
        'a"b',
        "a'b",
        "'; drop table daybook_record; --",
        "__proto__",
        "constructor",
        "\\",
        "$",
        "[0]",
        "*",
        "a\nb",
        "\u{1F600}",
        "",
      ];
      for (const [index, name] of names.entries()) {
        await records.put(
          Thing,
          JSON.parse(`{"id":"k${index}",${JSON.stringify(name)}:{${JSON.stringify(name)}:"hit"}}`) as { id: string },
        );
      }

      for (const [index, name] of names.entries()) {
        const found = await records
          .query(Thing)
          .where(eq([name, name], "hit"))
          .list();
        assert.deepEqual(
          found.items.map(({ key }) => key),
          [`k${index}`],
          JSON.stringify(name),
        );
      }
      assert.equal(
        await records
          .query(Thing)
          .where(eq(["a", "b"], "hit"))
          .count(),
        0,
      );
      assert.equal(await records.query(Thing).count(), names.length);
    });

    test("paths and values that no document can have are refused", async (t) => {
      const { records } = await begin(t, backend);
      const ask = (condition: unknown): Promise<unknown> =>
        (async () =>
          records
            .query(Thing)
            .where(condition as Condition)
            .list())();

      await assert.rejects(ask(eq(Array<string>(200).fill("a"), 1)), { code: "invalid", message: /path of 200 names/ });
      for (const path of [["a\0"], ["\ud800"], [1], ["x".repeat(600)], "a"])
        await assert.rejects(ask(eq(path as string[], 1)), invalid);
      for (const value of [null, undefined])
        await assert.rejects(ask(eq(["a"], value)), { code: "invalid", message: /use isNull\(\) instead/ });
      await assert.rejects(ask({ op: "ne", at: { path: ["a"] }, value: null }), {
        code: "invalid",
        message: /use isNotNull\(\) instead/,
      });
      for (const value of [Number.NaN, Infinity, {}, [], 1n, "\ud800", "a\0"])
        await assert.rejects(ask(eq(["a"], value)), invalid);
      for (const value of [true, null]) await assert.rejects(ask({ op: "lt", at: { path: ["a"] }, value }), invalid);
      await assert.rejects(ask({ op: "startsWith", at: { path: ["a"] }, value: 1 }), invalid);
      await assert.rejects(ask({ op: "in", at: { path: ["a"] }, value: [1, null] }), {
        code: "invalid",
        message: /isNull/,
      });
      await assert.rejects(ask({ op: "like", at: { path: ["a"] }, value: "%" }), {
        code: "invalid",
        message: /"like" is not known/,
      });
      await assert.rejects(ask({ op: "eq", at: { side: "body; drop", path: [] }, value: 1 }), invalid);
      await assert.rejects(
        ask({ op: "any", at: { path: ["a"] }, where: { op: "eq", at: { side: "key" }, value: "a" } }),
        invalid,
      );
      await assert.rejects(ask(nestedNot(100)), { code: "invalid", message: /nested deeper/ });
      await assert.rejects(ask({ kind: "sql", strings: ["1=1"], values: [] }), invalid);
    });

    test("a list of 33,000 values is one parameter, and LIKE's signs are letters", async (t) => {
      const { records } = await begin(t, backend);
      await records.putMany(
        Thing,
        ["a%b", "a_b", "aXb", "A%B"].map((text, index) => ({ id: `k${index}`, text, n: index })),
      );
      const many = Array.from({ length: 33_000 }, (_, index) => index + 2);

      assert.deepEqual(
        (
          await records
            .query(Thing)
            .where((thing) => thing("n").in(many))
            .list()
        ).items.map(({ key }) => key),
        ["k2", "k3"],
      );
      assert.equal(
        await records
          .query(Thing)
          .where((thing) => thing("text").in(many.map(String)))
          .count(),
        0,
      );
      for (const [text, count] of [
        ["a%", 1],
        ["a_", 1],
        ["A", 1],
        ["%", 0],
      ] as const) {
        assert.equal(
          await records
            .query(Thing)
            .where((thing) => thing("text").startsWith(text))
            .count(),
          count,
          text,
        );
      }
      assert.equal(
        await records
          .query(Thing)
          .where((thing) => thing("text").contains("%"))
          .count(),
        2,
      );
      assert.equal(
        await records
          .query(Thing)
          .where((thing) => thing("text").endsWith("_b"))
          .count(),
        1,
      );
    });

    test("an error names the commit or the endpoint that does not exist", async (t) => {
      const { records } = await begin(t, backend);
      await records.put(Thing, { id: "a" });

      for (const asOf of [2, 1e10]) await assert.rejects(records.query(Thing).asOf(asOf).list(), { code: "not_found" });
      // A larger number is a time.
      await assert.rejects(records.query(Thing).asOf(1e14).list(), { code: "invalid", message: /is in the future/ });
      for (const asOf of [-1, 0.5, Number.NaN]) await assert.rejects(records.query(Thing).asOf(asOf).list(), invalid);
      await assert.rejects(records.query(Thing).asOf("yesterday").list(), invalid);
      await assert.rejects(records.since(9), { code: "not_found" });
      await assert.rejects(records.diff(0, 9), { code: "not_found" });
      await assert.rejects(records.commit(9), { code: "not_found" });
      await assert.rejects(records.commit(0), { code: "not_found" });
      await assert.rejects(records.restore(Thing, "a", 7), { code: "not_found" });
      await assert.rejects(records.link(Near, { from: "a", to: "gone" }), { code: "not_found" });
      await records.delete(Thing, "a");
      await assert.rejects(records.link(Near, { from: "a", to: "a" }), { code: "not_found" });
      await assert.rejects(records.link(Near, { from: "a", to: " " }), invalid);
      await assert.rejects(records.link(Near, { from: "a", to: "a" }, { x: 1 } as never), {
        code: "invalid",
        message: /has no schema/,
      });
    });
  });
}

test("definitions that cannot work are refused when they are made", () => {
  const schema = z.object({ id: z.string(), n: z.number() });
  assert.throws(() => entity("a.b", { schema, key: "id" }), invalid);
  assert.throws(() => entity("", { schema, key: "id" }), invalid);
  assert.throws(() => entity("a", { schema: {} as never, key: "id" }), { code: "invalid", message: /has no schema/ });
  // @ts-expect-error -- a key is a text
  assert.doesNotThrow(() => entity("a", { schema, key: "n" }));
  assert.throws(() => entity("a", { schema, key: undefined as never }), { code: "invalid", message: /has no key/ });
  assert.throws(() => entity("a", { schema, key: "id", index: ["n"] } as never), {
    code: "invalid",
    message: /did you mean "indexes"/,
  });
  assert.throws(() => entity("a", { schema, key: "id", indexes: [7 as never] }), invalid);
  assert.throws(() => entity("a", { schema, key: "id", indexes: [["n\0"] as never] }), invalid);
  assert.throws(() => relation("r", { from: undefined as never, to: Thing }), {
    code: "invalid",
    message: /has no "from"/,
  });
  assert.throws(() => relation("r", { from: Thing, to: Near as never }), { code: "invalid", message: /has no "to"/ });
});

function deep(levels: number): unknown {
  return levels === 0 ? 1 : { a: deep(levels - 1) };
}

function nestedNot(levels: number): unknown {
  return levels === 0 ? eq(["a"], 1) : { op: "not", of: nestedNot(levels - 1) };
}
