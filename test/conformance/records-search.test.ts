import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { entity, open } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const schema = z.object({
  id: z.string(),
  title: z.string(),
  body: z.object({ text: z.string() }).optional(),
  n: z.number().default(0),
});
const Bare = entity("note", { schema, key: "id" });
const Note = entity("note", { schema, key: "id", search: ["title", ["body", "text"]] });
const Other = entity("other", { schema, key: "id" });

for (const backend of backends) {
  test(`${backend}: a search finds words in declared fields, of older records too, and of no other tenant`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Bare, Other], worker: false });
    await book.records.put(Bare, { id: "n-1", title: "Milk and Bread", body: { text: "from the market" } });
    await book.records.put(Bare, { id: "n-0", title: "gone" });
    await book.records.delete(Bare, "n-0");
    await book.close();
    await using again = await open(url, { use: [Note, Other], worker: false });
    const { records } = again;
    const found = async (words: string): Promise<string[]> =>
      (await records.query(Note).search(words).list()).items.map(({ key }) => key);
    await records.put(Note, { id: "n-2", title: "bread, butter", n: 5 });
    await records.put(Other, { id: "o-1", title: "bread" });
    await again.tenant("acme").records.put(Note, { id: "n-9", title: "bread" });

    assert.deepEqual(await found("bread"), ["n-1", "n-2"]);
    assert.deepEqual(await found("BREAD milk"), ["n-1"]);
    assert.deepEqual(await found("market milk"), ["n-1"]);
    assert.deepEqual(await found("brea"), []);
    assert.deepEqual(await found("gone"), []);
    assert.deepEqual(await found(`"bread" OR * -- '; drop`), []);
    const large = records
      .query(Note)
      .search("bread")
      .where((note) => note("n").gt(1));
    assert.deepEqual([await large.count(), (await large.first())?.key], [1, "n-2"]);
    await records.patch(Note, "n-2", { title: "jam" });
    await records.delete(Note, "n-1");
    assert.deepEqual([await found("bread"), await found("jam")], [[], ["n-2"]]);
    await assert.rejects(found("--"), { code: "invalid", message: /has no word/ });
    await assert.rejects(records.query(Note).search("jam").asOf(1).list(), {
      code: "invalid",
      message: /committed records as they are now/,
    });
    await assert.rejects(records.query(Other).search("jam").list(), { code: "invalid", message: /declares no fields/ });
    assert.deepEqual(await again.doctor(), []);
    await again.close();
    // Other fields: the index of words is built again.
    const Titled = entity("note", { schema, key: "id", search: [["body", "text"]] });
    await using last = await open(url, { use: [Titled], worker: false });
    await last.records.put(Titled, { id: "n-3", title: "cake", body: { text: "sweet" } });
    const keys = async (words: string): Promise<string[]> =>
      (await last.records.query(Titled).search(words).list()).items.map(({ key }) => key);
    assert.deepEqual([await keys("jam"), await keys("cake"), await keys("sweet")], [[], [], ["n-3"]]);
  });

  test(`${backend}: a program finds by the fields that it declares, also while another one searches others`, async (t) => {
    const Title = entity("note", { schema, key: "id", search: ["title"] });
    const Text = entity("note", { schema, key: "id", search: [["body", "text"]] });
    const { book, url } = await openTest(t, backend, { use: [Title], worker: false });
    await book.records.put(Title, { id: "n-1", title: "milk", body: { text: "bread" } });
    await using other = await open(url, { use: [Text], worker: false });
    await other.records.put(Text, { id: "n-2", title: "bread", body: { text: "milk" } });
    await book.records.put(Title, { id: "n-3", title: "milk and jam", body: { text: "bread" } });
    const titled = async (words: string): Promise<string[]> =>
      (await book.records.query(Title).search(words).list()).items.map(({ key }) => key);
    const told = async (words: string): Promise<string[]> =>
      (await other.records.query(Text).search(words).list()).items.map(({ key }) => key);

    assert.deepEqual([await titled("milk"), await titled("bread")], [["n-1", "n-3"], ["n-2"]]);
    assert.deepEqual([await told("milk"), await told("bread")], [["n-2"], ["n-1", "n-3"]]);

    // SQLite keeps the words of two; the program that came first is told when they are no longer its own.
    await using third = await open(url, { use: [Note], worker: false });
    assert.equal(await third.records.query(Note).search("milk").count(), 3);
    assert.deepEqual(await told("bread"), ["n-1", "n-3"]);
    if (backend === "sqlite") {
      await assert.rejects(titled("milk"), {
        code: "conflict",
        message: /no longer kept for the fields that this program searches/,
      });
    } else assert.deepEqual(await titled("milk"), ["n-1", "n-3"]);
    await book.records.put(Title, { id: "n-4", title: "bread", body: { text: "jam" } });
    assert.deepEqual(await told("jam"), ["n-4"]);
    await using again = await open(url, { use: [Title], worker: false });
    assert.equal(await again.records.query(Title).search("bread").count(), 2);
    assert.deepEqual(await again.doctor(), []);
  });
}

test("the compiler refuses words of a field that holds no text", () => {
  const listed = z.object({
    id: z.string(),
    tags: z.array(z.string()),
    n: z.number(),
    note: z.string().nullable().optional(),
  });
  entity("listed", { schema: listed, key: "id", search: ["id", "note", ["note"]] });
  // @ts-expect-error a list has no words
  entity("listed", { schema: listed, key: "id", search: ["tags"] });
  // @ts-expect-error nor has a list in a path of one name
  entity("listed", { schema: listed, key: "id", search: [["tags"]] });
  // @ts-expect-error a number has none either
  entity("listed", { schema: listed, key: "id", search: ["n"] });
});
