import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { job, limits, open, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const mail = job("mail", {
  params: z.object({ to: z.string(), address: z.object({ zip: z.string() }).optional() }),
  run,
});
const plain = job("plain", { run });
const keyed = job("keyed", {
  limit: { key: (params) => params.key, concurrency: 1 },
  run: (_params: { key: string }) => undefined,
});
const use = [mail, plain, keyed];

function run(): void {}

for (const backend of backends) {
  describe(backend, () => {
    test("params that do not fit the schema are refused, with each misfit and its path", async (t) => {
      const { book } = await openTest(t, backend, { use });

      const wrong = { to: 5, address: { zip: 1 } } as never;

      const message = /params of job "mail" do not fit its schema: to: .*string.*; address\.zip: .*string/;
      await assertRefused(book, (jobs) => jobs.enqueue(mail, wrong), message);
      await assertRefused(book, (jobs) => jobs.enqueue("mail", wrong), message);
      await assertRefused(book, (jobs) => jobs.enqueueMany(mail, [{ to: "ada" }, wrong]), message);
    });

    test("an option that cannot be meant is refused before anything is written", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const wrong: [object, RegExp][] = [
        [{ in: -1 }, /in is -1, which is not a duration/],
        [{ in: "-5m" }, /in is "-5m", which is not a duration/],
        [{ in: "1h", at: 0 }, /give "at" or "in", not both/],
        [{ at: "tomorrow" }, /at is "tomorrow", which is not a time/],
        [{ at: Number.NaN }, /at is NaN/],
        [{ priority: 1001 }, /priority 1001 is not a whole number from -1000 to 1000/],
        [{ priority: -1001 }, /priority -1001/],
        [{ priority: 1.5 }, /priority 1.5/],
        [{ attempts: 0 }, /attempts 0/],
        [{ losses: -1 }, /losses -1/],
        [{ timeout: 0 }, /timeout is 0; it must be at least 1ms/],
        [{ backoff: [] }, /a list of backoffs/],
        [{ backoff: { factor: 0 } }, /backoff factor 0/],
        [{ queue: "" }, /queue "" is empty/],
        [{ queue: "a\0b" }, /queue .* has a control character/],
        [{ key: "" }, /key "" must be a text, not empty/],
        [{ key: 5 }, /key 5 must be a text/],
        [{ key: "a\0b" }, /key .* has a lone surrogate or U\+0000/],
        [{ key: "k".repeat(513) }, /key is 513 bytes long; at most 512/],
        [{ idempotencyKey: "" }, /idempotencyKey "" must be a text/],
        [{ keyScope: "forever", key: "k" }, /keyScope "forever" is not known: "queued", "done" or/],
        [{ keyScope: { window: 0 }, key: "k" }, /key window is 0; it must be at least 1ms/],
        [{ keyScope: "done" }, /"keyScope" says something about "key", which is missing/],
        [{ onConflict: "skip", key: "k" }, /onConflict "skip" is not known\. Known: keep, replace, error/],
        [{ onConflict: "replace" }, /"onConflict" says something about "key", which is missing/],
        [{ tags: "red" }, /tags is a list of texts/],
        [{ tags: Array.from({ length: 33 }, (_, n) => `t${n}`) }, /33 tags: at most 32/],
        [{ tags: ["a", ""] }, /tag "" is empty/],
        [{ tags: ["a".repeat(129)] }, /tag .* is 129 bytes long; at most 128/],
        [{ tags: ["a\0b"] }, /tag .* has a control character/],
        [{ proirity: 5 }, /unknown option "proirity" for enqueue of "plain": did you mean "priority"\?/],
      ];

      for (const [options, message] of wrong)
        await assertRefused(book, (jobs) => jobs.enqueue(plain, {}, options), message);
    });

    test("params that cannot be kept are refused, with where they are wrong", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const circle: Record<string, unknown> = {};
      circle["self"] = circle;
      const wrong: [unknown, RegExp][] = [
        [{ body: "x".repeat(limits.jsonBytesMax) }, /params is .*bytes of JSON, over the limit of 1048576/],
        [{ a: ["ok", "no\0"] }, /params\.a\[1\] .*U\+0000/],
        [{ ["k\0"]: 1 }, /params.*U\+0000/],
        [{ n: Number.NaN }, /params\.n .*NaN/],
        [{ at: new Date(0) }, /params\.at/],
        [{ f: run }, /params\.f/],
        [{ big: 5n }, /params\.big/],
        [circle, /params\.self/],
        [{ text: "\ud800" }, /params\.text .*surrogate/],
      ];

      for (const [params, message] of wrong) await assertRefused(book, (jobs) => jobs.enqueue(plain, params), message);
    });

    test("a limit key that cannot be used is refused", async (t) => {
      const { book } = await openTest(t, backend, { use });

      await assertRefused(book, (jobs) => jobs.enqueue(keyed, { key: "" }), /limit key "" must be a text, not empty/);
      await assertRefused(book, (jobs) => jobs.enqueue(keyed, { key: 5 as never }), /limit key 5 must be a text/);
    });

    test("an unknown name is refused with the nearest, and allowed where nothing is run", async (t) => {
      const { book, url } = await openTest(t, backend, { use });
      const stranger = job("stranger", { run });
      const impostor = job("mail", { run });

      const message =
        /this book does not know the job "mial": did you mean "mail"\? List it in "use", or open the book with/;
      await assertRefused(book, (jobs) => jobs.enqueue("mial", {}), message);
      await assertRefused(
        book,
        (jobs) => jobs.enqueue(stranger, {}),
        /does not know the job "stranger"\. List it in "use"/,
      );
      await assertRefused(book, (jobs) => jobs.enqueue(impostor, {}), /two definitions are named "mail"/);

      await using producer = await open(url, { worker: false });
      const made = await producer.jobs.enqueue("mial", { any: "thing" });
      const other = await producer.jobs.enqueue(stranger, {}, { key: "k" });
      assert.equal((await book.jobs.get(made.id)).name, "mial");
      assert.equal((await book.jobs.get(other.id)).name, "stranger");
      await assert.rejects(producer.jobs.enqueue("a\0b", {}), { code: "invalid" });
      await assert.rejects(producer.startWorker(), { code: "invalid", message: /opened with worker: false/ });
    });

    test("two definitions of one name are refused when the book is opened", async (t) => {
      const opened = openTest(t, backend, { use: [mail, job("mail", { run })] });

      await assert.rejects(opened, { code: "invalid", message: /two jobs in "use" are named "mail": rename one/ });
    });

    test("a list longer than a statement takes is refused with advice", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const list = Array.from({ length: limits.bulkRowsMax + 1 }, () => ({}));

      await assertRefused(book, (jobs) => jobs.enqueueMany(plain, list), /10001 .*at most 10000/);
    });
  });
}

/** Refused as `invalid` on the book and in a transaction, and nothing is left behind by either. */
async function assertRefused(
  book: Book,
  verb: (jobs: Pick<Book["jobs"], "enqueue" | "enqueueMany">) => Promise<unknown>,
  message: RegExp,
): Promise<void> {
  await assert.rejects(verb(book.jobs), { code: "invalid", message });
  await assert.rejects(
    book.write((tx) => verb(tx.jobs)),
    { code: "invalid", message },
  );
  assert.deepEqual((await book.jobs.list()).items, []);
}
