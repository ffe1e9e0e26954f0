// What one question about records may ask, and how much one page holds.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, limits, not, or, type Book } from "../../src/index.ts";
import { setLimit } from "../support/limit.ts";
import { backends, openTest } from "../support/open-test.ts";

const schema = z.object({ id: z.string(), n: z.number(), text: z.string() });
const Note = entity("note", { schema, key: "id", search: ["text"] });
const keyPlace = { side: "key", path: [] } as const;
const documents = 12;
const keys = Array.from({ length: documents }, (_, index) => `n-${String(index).padStart(2, "0")}`);

// A quarter of a page, and a page is smaller here than it is: what is large for it is written and indexed sooner.
const pageBytes = 200_000;
const largeBytes = 48_000;

/** Large documents, each in a commit of its own. */
async function fillLarge(book: Book): Promise<void> {
  for (const [n, id] of keys.entries()) await book.records.put(Note, { id, n, text: "x".repeat(largeBytes) });
}

/** All of a list, page by page; none may be empty, or larger than a page. */
async function pages<Item, Cursor>(
  read: (after: Cursor | undefined) => Promise<{ items: readonly Item[]; next: Cursor | null }>,
): Promise<Item[][]> {
  const found: Item[][] = [];
  for (let after: Cursor | undefined; ;) {
    const { items, next } = await read(after);
    found.push([...items]);
    assert.ok(items.length > 0 && Buffer.byteLength(JSON.stringify(items)) < limits.pageBytesMax * 1.1);
    if (next === null) return found;
    after = next;
  }
}

/** Says in which turn of the loop a read parses each of its large texts. */
function watchParsing(t: TestContext): (read: () => Promise<unknown>) => Promise<number[]> {
  const { parse } = JSON;
  let [turn, turns]: [number, number[]] = [0, []];
  t.mock.method(JSON, "parse", (text: string): unknown => {
    if (text.length >= 500_000) turns.push(turn);
    return parse(text);
  });
  return async (read) => {
    let reading = true;
    const count = (): void => {
      turn++;
      if (reading) setImmediate(count);
    };
    turns = [];
    count();
    await read();
    reading = false;
    return turns;
  };
}

for (const backend of backends) {
  describe(backend, () => {
    test("a page of large documents ends early, and its cursor continues without a gap", async (t) => {
      setLimit(t, "pageBytesMax", pageBytes);
      const { book } = await openTest(t, backend, { use: [Note], worker: false });
      await fillLarge(book);
      const newest = book.records.query(Note).orderBy((note) => note("n"), "desc");

      const byKey = await pages(async (after: string | undefined) => {
        const query = book.records.query(Note).limit(limits.pageMax);
        return (after === undefined ? query : query.after(after)).list();
      });
      const byField = await pages(async (after: string | undefined) =>
        book.read((tx) => {
          const query = tx.records.query(Note).orderBy((note) => note("n"), "desc");
          return (after === undefined ? query : query.after(after)).list();
        }),
      );
      const iterated: string[] = [];
      for await (const { key } of newest) iterated.push(key);

      assert.deepEqual(
        byKey.map((page) => page.length),
        [4, 4, 4],
      );
      assert.deepEqual(
        byKey.flat().map(({ key }) => key),
        keys,
      );
      assert.deepEqual(
        byField.map((page) => page.length),
        [4, 4, 4],
      );
      assert.deepEqual(
        byField.flat().map(({ key }) => key),
        keys.toReversed(),
      );
      assert.deepEqual(iterated, keys.toReversed());
    });

    test("the documents of a page are parsed in pieces, and the loop has a turn between two of them", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note], worker: false });
      for (let n = 0; n < 4; n++) {
        await book.records.put(Note, { id: "n-1", n, text: `${n}`.repeat(500_000) });
        await book.records.put(Note, { id: `n-2${n}`, n, text: "x".repeat(500_000) });
        await book.events.publish("said", { text: "x".repeat(500_000) });
      }
      const parsedIn = watchParsing(t);

      const reads: Record<string, () => Promise<unknown>> = {
        list: () => book.records.query(Note).list(),
        snapshot: () => book.read((tx) => tx.records.query(Note).list()),
        history: () => book.records.history(Note, "n-1"),
        since: () => book.records.since(0),
        diff: () => book.records.diff(0, 8),
        events: () => book.events.list(),
      };
      for (const [name, read] of Object.entries(reads)) {
        const turns = await parsedIn(read);
        assert.ok(turns.length >= 4, `${name} parsed ${turns.length} documents`);
        // A change has two, that before it and that after it.
        assert.ok(new Set(turns).size >= turns.length / 2, `${name} parsed them in ${new Set(turns).size} turns`);
      }
      const inTransaction = await parsedIn(() => book.write((tx) => tx.records.query(Note).list()));
      assert.equal(new Set(inTransaction).size, 1, "a transaction, which holds up the writers, goes on at once");
    });

    test("history, the change feed, diffs and exports of large documents end early and continue without a gap", async (t) => {
      setLimit(t, "pageBytesMax", pageBytes);
      const { book } = await openTest(t, backend, { use: [Note], worker: false });
      for (let n = 0; n < documents; n++) {
        await book.records.put(Note, { id: "n-1", n, text: String(n % 10).repeat(largeBytes) });
      }
      // A commit is never cut, however large it is.
      await book.write(async (tx) => {
        for (const id of keys) await tx.records.put(Note, { id, n: 0, text: "y".repeat(largeBytes) });
      });

      const history = await pages((after: number | undefined) =>
        book.records.history(Note, "n-1", after === undefined ? {} : { after }),
      );
      const feed: (readonly { commit: number }[])[] = [];
      for (let from = 0, more = true; more;) {
        const page = await book.records.since(from);
        feed.push(page.items);
        [from, more] = [page.commit, page.more];
      }
      const differences = await pages((after: string | undefined) =>
        book.records.diff(0, documents + 1, after === undefined ? {} : { after }),
      );
      const lines: string[] = [];
      for await (const line of book.records.export()) lines.push(line);

      assert.deepEqual(
        history.flat().map(({ commit }) => commit),
        keys.map((_, index) => index + 1),
      );
      assert.ok(history.length > 1);
      const commits = feed.flatMap((page) => page.map(({ commit }) => commit));
      assert.deepEqual(commits, [...keys.map((_, index) => index + 1), ...keys.map(() => documents + 1)]);
      assert.ok(feed.length > 2);
      assert.equal(feed.at(-1)?.length, documents);
      assert.deepEqual(
        differences.flat().map(({ key }) => key),
        ["n-1", ...keys].toSorted(),
      );
      // The first record, and the lines around them.
      assert.equal(lines.length, documents + 3);
    });

    test("a question with too many groups, words, fields to sort by or values is refused, and says so", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note], worker: false });
      const { records } = book;
      setLimit(t, "groupsMax", 100);
      await book.write(async (tx) => {
        for (let n = 0; n <= limits.groupsMax; n++) await tx.records.put(Note, { id: `n-${n}`, n, text: "" });
      });
      const all = records.query(Note);
      const byNumber = all.groupBy((note) => ({ n: note("n") }));
      const word = (index: number): string => `w${index}`;
      const refused = async (ask: () => unknown, message: RegExp): Promise<void> =>
        assert.rejects(async () => ask(), { code: "invalid", message });

      await refused(() => byNumber.aggregate((note) => ({ count: note.count() })), /more than 100 groups: narrow/);
      const fewer = all.where((note) => note("n").lt(limits.groupsMax)).groupBy((note) => ({ n: note("n") }));
      assert.equal((await fewer.aggregate((note) => ({ count: note.count() }))).length, limits.groupsMax);
      const words = Array.from({ length: 100_000 }, (_, index) => word(index)).join(" ");
      await refused(() => all.search(words).list(), /a text of 688889 characters, and 4096 at most/);
      const few = words.split(" ");
      await refused(
        () => all.search(few.slice(0, 33).join(" ")).list(),
        /looks for 33 words, and at most for 32: leave/,
      );
      assert.deepEqual((await all.search(few.slice(0, 32).join(" ")).list()).items, []);
      await refused(() => {
        let sorted = all;
        for (let index = 0; index <= limits.ordersMax; index++) sorted = sorted.orderBy((note) => note("n"));
      }, /ordered by at most 16 fields/);
      const values = (count: number, make = word): string[] => Array.from({ length: count }, (_, index) => make(index));
      await refused(
        () => all.where((note) => note("text").in(values(40_000, (index) => word(index).padEnd(40)))).count(),
        /take \d+ bytes, and 1048576 at most: ask in parts/,
      );
      await refused(
        () => all.where((note) => note("text").in(values(limits.questionValuesMax + 1))),
        /^50001 values in the lists of "in", and 50000 at most: ask in parts/,
      );
      const half = values(limits.questionValuesMax / 2);
      const both = all.where((note) => note("text").notIn(half)).where((note) => note("text").notIn(half));
      assert.equal(await both.count(), limits.groupsMax + 1);
      await refused(
        () => both.where((note) => note("text").in(["w1"])).count(),
        /^50001 values in the lists of one question, and 50000 at most/,
      );
      await refused(() => {
        let narrow = all;
        for (let n = 0; n <= limits.conditionsMax; n++) narrow = narrow.where((note) => note("n").ne(n));
      }, /more than 1000 conditions/);
      const two = or({ op: "isNull", at: { side: "value", path: ["n"] } }, not({ op: "isNull", at: keyPlace }));
      await refused(() => {
        let narrow = all;
        for (let n = 0; n < limits.conditionsMax / 2; n++) narrow = narrow.where(two).limit(1);
        assert.equal(narrow.question.where.length, limits.conditionsMax / 2);
        narrow.where(two);
      }, /more than 1000 conditions/);
    });
  });
}
