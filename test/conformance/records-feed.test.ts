import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, relation, type Book, type WatchedCommit } from "../../src/index.ts";
import { migrations } from "../../src/open/migrations.ts";
import { recordVerbs } from "../../src/records/record-verbs.ts";
import type { RecordFact, RecordRoom } from "../../src/records/room.ts";
import { endWatching, watchQuery } from "../../src/records/watch.ts";
import { withinUnitOf } from "../../src/records/write/write-unit.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { backends, cleanup, openTest, openTestStore, testUrl, type Backend } from "../support/open-test.ts";

const Person = entity("person", { schema: z.object({ id: z.string(), age: z.number() }), key: "id" });
const City = entity("city", { schema: z.object({ id: z.string() }), key: "id" });
const Knows = relation("knows", { from: Person, to: Person });
const Lives = relation("lives", { from: Person, to: City });
const use = [Person, City, Knows, Lives];

async function town(t: TestContext, backend: Backend): Promise<Book> {
  const { book } = await openTest(t, backend, { use, worker: false });
  await book.write(async ({ records }) => {
    await records.putMany(
      Person,
      ["ada", "bob", "cy", "dan"].map((id, age) => ({ id, age })),
    );
    await records.putMany(City, [{ id: "oslo" }, { id: "lima" }]);
    for (const [from, to] of [
      ["ada", "bob"],
      ["bob", "cy"],
      ["cy", "dan"],
      ["dan", "ada"],
    ] as const)
      await records.link(Knows, { from, to });
    await records.link(Lives, { from: "cy", to: "oslo" });
  });
  return book;
}

for (const backend of backends) {
  describe(backend, () => {
    test("a traversal finds each record once, by a shortest path, both ways and as of a commit", async (t) => {
      const book = await town(t, backend);
      await book.records.unlink(Knows, { from: "bob", to: "cy" });
      const reach = async (options: object): Promise<string[]> =>
        (await book.records.traverse(Person, "ada", { via: [Knows, Lives], ...options })).map(
          ({ key, hops }) => `${key} ${hops}`,
        );

      assert.deepEqual(await reach({ hops: 3 }), ["bob 1"]);
      assert.deepEqual(await reach({ hops: 3, asOf: 1 }), ["bob 1", "cy 2", "dan 3", "oslo 3"]);
      assert.deepEqual(await reach({ hops: 2, direction: "in" }), ["dan 1", "cy 2"]);
      assert.deepEqual(await reach({ hops: 3, direction: "both" }), ["bob 1", "dan 1", "cy 2", "oslo 3"]);
      const [, , cy] = await book.records.traverse(Person, "ada", { via: Knows, hops: 2, direction: "both" });
      assert.deepEqual(
        cy?.path.map(({ relation: name, direction, from, to }) => [name, direction, from, to]),
        [
          ["knows", "in", "dan", "ada"],
          ["knows", "in", "cy", "dan"],
        ],
      );
      await book.write(async ({ records }) => {
        await records.link(Knows, { from: "bob", to: "dan" });
        assert.deepEqual(
          (await records.traverse(Person, "ada", { via: Knows, hops: 2 })).map(({ key }) => key),
          ["bob", "dan"],
        );
      });
      await assert.rejects(book.records.traverse(Person, "eve", { via: Knows }), { code: "not_found" });
      await assert.rejects(book.records.traverse(Person, "ada", { via: Knows, hops: 11 }), { code: "invalid" });
      assert.deepEqual(await book.tenant("acme").records.query(Knows).list(), { items: [], next: null });
    });

    test("a watch tells which records come to match, change and cease to match, and continues after a given commit", async (t) => {
      const { book, url } = await openTest(t, backend, { use, worker: false });
      const { book: other } = await openTest(t, backend, { url, use, worker: false });
      const adults = book.records.query(Person).where((person) => person("age").gte(18));
      const ended = new AbortController();
      const seen: WatchedCommit<typeof Person>[] = [];
      const watching = (async () => {
        for await (const commit of book.records.watch(adults, { after: 0, signal: ended.signal })) {
          seen.push(commit);
          if (seen.length === 3) ended.abort();
        }
      })();

      await other.records.put(Person, { id: "kid", age: 3 });
      await other.records.put(Person, { id: "ada", age: 20 });
      await book.records.put(Person, { id: "ada", age: 21 });
      await other.tenant("acme").records.put(Person, { id: "eve", age: 99 });
      await other.records.patch(Person, "ada", { age: 1 });
      await watching;

      const told = seen.map(({ commit, changes }) => [
        commit,
        ...changes.map(({ kind, key, value }) => [kind, key, value?.age]),
      ]);
      assert.deepEqual(told, [
        [2, ["added", "ada", 20]],
        [3, ["changed", "ada", 21]],
        [4, ["removed", "ada", 1]],
      ]);
      for await (const { commit } of other.records.watch(adults, { after: 2 })) {
        assert.equal(commit, 3);
        break;
      }
    });

    test("closing the book ends its watches", async (t) => {
      const { book } = await openTest(t, backend, { use, worker: false });
      const watch = book.records.watch(book.records.query(Person));
      const next = watch[Symbol.asyncIterator]().next();
      await book.records.head();

      await book.close();

      assert.equal((await next).done, true);
    });

    test("a watch that is about to read when its book is closed ends like any other", async (t) => {
      const { store } = await openTestStore(t, backend);
      const closed = Promise.withResolvers<void>();
      const slow: Store = { ...store, read: async (statement) => closed.promise.then(() => store.read(statement)) };
      const next = watchQuery<typeof Person>(
        slow,
        "default",
        { name: "person", type: Person, where: [], orders: [] },
        {},
      ).next();

      endWatching(slow);
      await store.close();
      closed.resolve();

      assert.equal((await next).done, true);
    });

    test("facts are stated in the commit's own transaction, and only for types that have listeners", async (t) => {
      const store = await openStore(await testUrl(t, backend), migrations);
      cleanup(t, () => store.close());
      await store.write((tx) => tx.run(sql`create table heard (type text not null, key text not null)`));
      const facts: RecordFact[] = [];
      const room: RecordRoom = {
        store,
        definitions: new Map(),
        cause: () => undefined,
        hooks: {
          hears: (_tx, type) => type === "person",
          onFact: async (tx, fact) => {
            facts.push(fact);
            await tx.run(sql`insert into heard (type, key) values (${fact.type}, ${fact.record.key})`);
            if (fact.record.key === "bad") throw new Error("no");
          },
        },
      };
      const records = recordVerbs(withinUnitOf(room, "default"));

      await records.put(Person, { id: "ada", age: 1 });
      await records.put(City, { id: "oslo" });
      await records.patch(Person, "ada", { age: 2 });
      await assert.rejects(records.put(Person, { id: "bad", age: 1 }), { message: "no" });
      await records.delete(Person, "ada");

      const heard = await store.read<{ type: string }>(sql`select type from heard`);
      assert.deepEqual(
        heard.map(({ type }) => type),
        ["record.person.created", "record.person.updated", "record.person.deleted"],
      );
      const last = facts.at(-1)?.record;
      assert.deepEqual(
        [last?.kind, last?.revision, last?.commit, last?.value],
        ["deleted", 2, 4, { id: "ada", age: 2 }],
      );
      const [head] = await store.read<{ commit_id: number }>(sql`select commit_id from daybook_record_head`);
      assert.equal(head?.commit_id, 4, "the fact that failed took its commit with it");
    });
  });
}
