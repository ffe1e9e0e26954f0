// What a program can get wrong about records, and what must not go wrong for it: each was seen to go wrong once.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, or, relation, type Book, type Condition } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Person = entity("person", {
  schema: z.object({
    id: z.string(),
    age: z.number().optional(),
    tags: z.array(z.string()).optional(),
  }),
  key: "id",
});
const Note = entity("note", {
  schema: z.object({ id: z.string(), tags: z.array(z.string()), about: z.string() }),
  key: "id",
  indexes: [{ path: "tags", each: true }],
  search: ["about"],
});
const City = entity("city", { schema: z.object({ id: z.string() }), key: "id" });
const Knows = relation("knows", { from: Person, to: Person });
const Likes = relation("likes", { from: Person, to: Person });
const use = [Person, City, Knows, Likes];

async function begin(t: TestContext, backend: Backend): Promise<{ book: Book; url: string }> {
  const opened = await openTest(t, backend, { use, worker: false });
  await opened.book.records.putMany(Person, [{ id: "ada", age: 1, tags: ["x"] }, { id: "bob", age: 2 }, { id: "cy" }]);
  return opened;
}

for (const backend of backends) {
  describe(backend, () => {
    test("a traversal in a transaction tells relations of two types between the same two entities apart", async (t) => {
      const { book } = await begin(t, backend);
      await book.records.link(Likes, { from: "ada", to: "bob" });

      const reached = await book.write(async ({ records }) => {
        await records.link(Knows, { from: "ada", to: "bob" });
        await records.unlink(Knows, { from: "ada", to: "bob" });
        return records.traverse(Person, "ada", { via: [Likes, Knows] });
      });

      assert.deepEqual(
        reached.map(({ key, path }) => [key, path[0]?.relation]),
        [["bob", "likes"]],
      );
    });

    test("a relation cannot change the entities that it connects", async (t) => {
      const { book, url } = await begin(t, backend);
      await book.records.link(Likes, { from: "ada", to: "bob" });
      const Moved = relation("likes", { from: City, to: City });
      const { book: other } = await openTest(t, backend, { url, use: [City, Moved], worker: false });
      await other.records.put(City, { id: "oslo" });

      await assert.rejects(other.records.link(Moved, { from: "oslo", to: "oslo" }), {
        code: "conflict",
        message: /"likes" connects other entities in this book/,
      });
      assert.deepEqual(await other.doctor(), []);
    });

    test("a definition that was read as one tenant does not write for another", async (t) => {
      const { book } = await begin(t, backend);
      const read = await book.records.type("person");
      const acme = book.tenant("acme");

      await assert.rejects(acme.records.put(read as typeof Person, { id: "eve" }), {
        code: "invalid",
        message: /was read as tenant "default": read it as "acme"/,
      });
      assert.equal(await acme.records.head(), null);
    });

    test("a type that the book was not opened with is read without its indexes", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });
      await book.records.put(Note, { id: "n-1", tags: ["x"], about: "hello" });

      const tagged = book.records.query(Note).where((note) => note("tags").any((tag) => tag().eq("x")));
      assert.equal(await tagged.count(), 1);
      await assert.rejects(book.records.query(Note).search("hello").count(), {
        code: "invalid",
        message: /open the book with its definition in "use"/,
      });
    });

    test("a limit bounds a loop over a query, and a watch refuses one", async (t) => {
      const { book } = await begin(t, backend);
      const two = book.records.query(Person).limit(2);

      const keys: string[] = [];
      for await (const { key } of two) keys.push(key);
      assert.deepEqual(keys, ["ada", "bob"]);
      for (const query of [two, book.records.query(Person).offset(1)]) {
        const watch = book.records.watch(query, { after: 0 })[Symbol.asyncIterator]();
        await assert.rejects(watch.next(), { code: "invalid", message: /leave out asOf, orderBy, limit, offset/ });
      }
    });

    test("a thousand conditions are one question, and more are refused with advice", async (t) => {
      const { book } = await begin(t, backend);
      const ages = (count: number) =>
        book.records
          .query(Person)
          .where((person) => or(...Array.from({ length: count }, (_, age) => person("age").eq(age))));
      const nested = (depth: number): Condition => {
        let condition: unknown = { op: "isNull", at: { path: ["age"] } };
        for (let each = 0; each < depth; each++) condition = { op: "any", at: { path: ["tags"] }, where: condition };
        return condition as Condition;
      };

      assert.equal(await ages(1000).count(), 2);
      assert.throws(() => ages(1001), { code: "invalid", message: /a list of values is one, with "in"/ });
      assert.equal(await book.records.query(Person).where(nested(16)).count(), 0);
      assert.throws(() => book.records.query(Person).where(nested(17)), {
        code: "invalid",
        message: /write it flatter/,
      });
    });

    test("a search finds words between punctuation of any kind", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note], worker: false });
      await book.records.put(Note, { id: "n-1", tags: [], about: "write to ada@example.org, the well-known 3.14" });

      for (const words of ["ada", "example", "ADA@example.org", "well", "well-known", "14", "3.14"]) {
        const { items } = await book.records.query(Note).search(words).list();
        assert.deepEqual(
          items.map(({ key }) => key),
          ["n-1"],
          words,
        );
      }
      assert.equal(await book.records.query(Note).search("exam").count(), 0);
    });

    test("an import takes lines in any order, each record once, and says what is missing before it writes", async (t) => {
      const { book } = await begin(t, backend);
      const line = (type: string, key: unknown, value: object): string => JSON.stringify({ type, key, value });
      const known = line("knows", { from: "dan", to: "eve" }, {});
      const [dan, eve] = [line("person", "dan", { id: "dan" }), line("person", "eve", { id: "eve" })];

      for (const dryRun of [true, false]) {
        await assert.rejects(book.records.import([dan, known], { dryRun }), {
          code: "not_found",
          message: /line 2: knows from "dan" to "eve" needs its person "eve", which is neither in the file nor/,
        });
      }
      await assert.rejects(book.records.import([dan, eve, dan], { onConflict: "upsert" }), {
        code: "invalid",
        message: /line 3 is about person "dan", and so is line 1/,
      });
      for (const dryRun of [true, false]) {
        await assert.rejects(book.records.import([], { dryRun, ifHead: 7 }), {
          code: "conflict",
          message: /expected to be 7, but it is 1/,
        });
      }
      assert.equal(await book.records.head(), 1);
      assert.equal((await book.records.import([known, dan, eve])).created, 3);
    });

    test("an import of what is no list of lines, and a type whose name is no text, are refused", async (t) => {
      const { records } = (await begin(t, backend)).book;
      const notLines = { code: "invalid", message: /import takes the lines that an export gave, not/ };

      for (const given of [7, null, undefined, "{}", {}, () => []] as never[]) {
        await assert.rejects(records.import(given), notLines);
      }
      await assert.rejects(records.import([7 as never]), {
        code: "invalid",
        message: /line 1 is 7: import takes each/,
      });
      for (const given of [7, null, undefined, Person] as never[]) {
        await assert.rejects(records.type(given), {
          code: "invalid",
          message: /the name of a record type is a text, not/,
        });
      }
    });

    test("a verb of a closed book names itself", async (t) => {
      const { book } = await begin(t, backend);
      await book.close();

      for (const verb of ["get", "find", "entry"] as const) {
        await assert.rejects(book.records[verb](Person, "ada"), { message: new RegExp(`book\\.records\\.${verb}\\b`) });
      }
    });

    test("a name where a definition belongs is refused everywhere", async (t) => {
      const { records } = (await begin(t, backend)).book;
      const refused = { code: "invalid", message: /the definition, not its name; got "person"/ };
      const name = "person" as unknown as typeof Person;

      await assert.rejects(records.get(name, "ada"), refused);
      assert.throws(() => records.query(name), refused);
      await assert.rejects(records.since(0, { type: name }), refused);
      await assert.rejects(records.diff(0, 1, { type: name }), refused);
      await assert.rejects(records.traverse(Person, "ada", { via: name as unknown as typeof Knows }), refused);
      await assert.rejects(
        records
          .export({ types: [name] })
          [Symbol.asyncIterator]()
          .next(),
        refused,
      );
      await assert.rejects(records.traverse(Person, "ada", { via: Person as never }), { code: "invalid" });
      assert.throws(() => records.query(Person).orderBy("age" as never), {
        code: "invalid",
        message: /orderBy takes a function that names a field/,
      });
      await assert.rejects(records.commit(0), { code: "not_found", message: /there is no commit 0/ });
    });
  });
}

test("postgres: a write whose commit has an unknown outcome is not repeated", async (t) => {
  let lost = false;
  const { book } = await openTest(t, "postgres", {
    use,
    worker: false,
    fault: (moment, text) => {
      if (!lost || moment !== "after" || text !== "commit") return;
      lost = false;
      throw new Error("the connection was lost");
    },
  });
  await book.records.put(Person, { id: "ada" });
  lost = true;

  await assert.rejects(book.records.put(Person, { id: "ada", age: 2 }), { code: "unknown_outcome" });

  assert.equal((await book.records.entry(Person, "ada"))?.revision, 2);
});

test("postgres: questions of many shapes leave nothing behind on the server", async (t) => {
  const { book } = await openTest(t, "postgres", { use, worker: false, connections: 2 });
  const kept = async (): Promise<number> => {
    const [row] = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from pg_prepared_statements`);
    return row?.n ?? 0;
  };
  const ask = async (parts: number): Promise<number> =>
    book.records
      .query(Person)
      .where((person) => or(...Array.from({ length: parts }, (_, age) => person("age").eq(age))))
      .count();
  await book.records.put(Person, { id: "ada", age: 0 });
  await ask(1);
  const before = await kept();

  for (let parts = 2; parts < 12; parts++) assert.equal(await ask(parts), 1);

  assert.equal(await kept(), before);
});
