// Exports: nothing of one that was cut off or changed is imported, and a history is read anew as it was.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, listener, manualClock, relation, type Book } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Note = entity("note", { schema: z.object({ id: z.string(), n: z.number() }), key: "id" });
const Cites = relation("cites", { from: Note, to: Note });
const use = [Note, Cites];

async function begin(t: TestContext, backend: Backend, more: Parameters<typeof openTest>[2] = {}): Promise<Book> {
  return (await openTest(t, backend, { use, worker: false, ...more })).book;
}

async function linesOf(book: Book, options?: Parameters<Book["records"]["export"]>[0]): Promise<string[]> {
  return Array.fromAsync(book.records.export(options));
}

async function fill(book: Book, clock = { advance: async (_ms: number): Promise<void> => undefined }): Promise<void> {
  const { records } = book;
  await records.putMany(
    Note,
    [
      { id: "a", n: 1 },
      { id: "b", n: 1 },
    ],
    { actor: "ada", reason: "begin", metadata: { ticket: 17 } },
  );
  await clock.advance(60_000);
  await records.put(Note, { id: "a", n: 2 }, { actor: "bob" });
  await records.link(Cites, { from: "a", to: "b" });
  await clock.advance(60_000);
  await records.delete(Note, "b", { unlink: true, actor: "ada" });
  await records.put(Note, { id: "b", n: 5 });
}

for (const backend of backends) {
  describe(backend, () => {
    test("an export that was cut off anywhere is refused, and nothing of it is imported", async (t) => {
      const book = await begin(t, backend);
      await fill(book);
      const copy = await begin(t, backend);

      for (const whole of [await linesOf(book), await linesOf(book, { history: true })]) {
        const text = whole.join("\n");
        const cuts = whole.map((_, index) => whole.slice(0, index).join("\n")).slice(1);
        const inside = [text.slice(0, -1), text.slice(0, -90), text.slice(0, text.lastIndexOf("{") + 4)];
        for (const cut of [...cuts, ...inside]) {
          await assert.rejects(copy.records.import(cut.split("\n")), {
            code: "invalid",
            message:
              /the export was cut off after line \d+: its trailer is missing\. Nothing was imported; export it again/,
          });
        }
      }
      assert.equal(await copy.records.head(), null);
      assert.deepEqual(await copy.records.types(), []);
    });

    test("an export that was changed, or has no trailer because it is old, is imported only when that is asked for", async (t) => {
      const book = await begin(t, backend);
      await fill(book);
      const copy = await begin(t, backend);
      const lines = await linesOf(book);
      const changed = lines.map((line) => line.replace('"n":2', '"n":3'));
      const fewer = lines.toSpliced(1, 1);
      const old = ['{"commit":5,"format":"daybook-records","version":1}', ...lines.slice(1, -1)];

      await assert.rejects(copy.records.import(changed), { code: "invalid", message: /its lines were changed/ });
      await assert.rejects(copy.records.import(fewer), {
        code: "invalid",
        message: /it has 1 lines where its trailer says 2\. Nothing was imported/,
      });
      await assert.rejects(copy.records.import([...lines, lines[1] ?? ""]), {
        code: "invalid",
        message: /after the trailer/,
      });
      await assert.rejects(copy.records.import(old), {
        code: "invalid",
        message: /version 1, which has no trailer.*allowTruncated/,
      });
      assert.equal(await copy.records.head(), null);

      assert.equal((await copy.records.import(old, { allowTruncated: true })).created, 2);
      assert.equal((await copy.records.import(lines.slice(0, 2), { allowTruncated: true })).unchanged, 1);
      assert.equal((await copy.records.import(changed, { allowTruncated: true, onConflict: "upsert" })).updated, 1);
      assert.equal((await copy.records.get(Note, "a")).n, 3);
    });

    test("an export is the same whatever ends its lines", async (t) => {
      const book = await begin(t, backend);
      await fill(book);
      for (const history of [false, true]) {
        for (const end of ["\r\n", "\r", "\n"]) {
          const copy = await begin(t, backend);
          await copy.records.import((await linesOf(book, { history })).map((line) => line + end));
          assert.deepEqual(await copy.records.get(Note, "a"), { id: "a", n: 2 });
        }
      }
    });

    test("a history is imported with its numbers, times, actors and documents, and the past reads as it did", async (t) => {
      const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
      const book = await begin(t, backend, { clock });
      await fill(book, clock);
      const lines = await linesOf(book, { history: true });
      const heard: unknown[] = [];
      const hear = listener("hear", { on: "record.note.*", run: (payload) => void heard.push(payload) });
      const copy = await begin(t, backend, { use: [...use, hear], worker: {} });

      const tried = await copy.records.import(lines, { dryRun: true });
      const done = await copy.records.import(lines);

      const counts = { created: 4, updated: 1, deleted: 2, unchanged: 0, skipped: 0, commits: 5 };
      assert.deepEqual(
        [tried, done],
        [
          { ...counts, dryRun: true },
          { ...counts, dryRun: false },
        ],
      );
      assert.deepEqual(await copy.records.commits(), await book.records.commits());
      assert.deepEqual(await copy.records.since(0), await book.records.since(0));
      const times = (await book.records.commits()).items.map(({ at }) => new Date(at));
      for (const asOf of [0, 1, 2, 3, 4, 5, ...times]) {
        for (const type of [Note, Cites]) {
          const [theirs, ours] = [copy, book].map((each) =>
            each.records.query<typeof Note | typeof Cites>(type).asOf(asOf).list(),
          );
          assert.deepEqual(await theirs, await ours);
        }
      }
      for (const key of ["a", "b"]) {
        assert.deepEqual(await copy.records.history(Note, key), await book.records.history(Note, key));
      }
      assert.equal((await copy.records.put(Note, { id: "b", n: 6 })).revision, 3);
      assert.equal(await copy.records.head(), 6);
      assert.deepEqual(await copy.doctor(), []);
      await (await copy.startWorker()).idle();
      assert.equal(heard.length, 1, "what was imported is not told again");
    });

    test("a history goes on where it ended, and is refused where another one began", async (t) => {
      const book = await begin(t, backend);
      await fill(book);
      const copy = await begin(t, backend);
      const other = await begin(t, backend);
      await other.records.put(Note, { id: "z", n: 1 });

      await copy.records.import(await linesOf(book, { history: true, asOf: 2 }));
      assert.equal(await copy.records.head(), 2);
      assert.equal((await copy.records.import(await linesOf(book, { history: true }))).commits, 3);
      assert.equal((await copy.records.import(await linesOf(book, { history: true }))).commits, 0);

      assert.deepEqual(await copy.records.since(0), await book.records.since(0));
      const lines = await linesOf(book, { history: true });
      await assert.rejects(other.records.import(lines), {
        code: "conflict",
        message: /commit 1 is another one than in the export/,
      });
      await assert.rejects(copy.records.import(lines, { onConflict: "skip" }), {
        code: "invalid",
        message: "a history brings its commits as they were: leave out onConflict",
      });
      await assert.rejects(linesOf(book, { history: true, types: [Note] }), {
        code: "invalid",
        message: /exported whole/,
      });
      assert.deepEqual(await copy.doctor(), []);
    });
  });
}
