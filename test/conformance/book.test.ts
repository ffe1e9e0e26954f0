import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { job } from "../../src/index.ts";
import { backends, openTest, testFolder, testUrl } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a book that is closed twice at once ends its session once, and well", async (t) => {
      const { book, url } = await openTest(t, backend);
      const id = book.sessionId;

      await Promise.all([book.close(), book.tenant("acme").close()]);

      const { book: later } = await openTest(t, backend, { url });
      const { items } = await later.sessions.list();
      assert.equal(items.find((session) => session.id === id)?.status, "success");
    });

    test("a unit runs in the async context of whoever asked for it", async (t) => {
      const { book } = await openTest(t, backend);
      const request = new AsyncLocalStorage<number>();

      const seen = await Promise.all(
        Array.from({ length: 20 }, (_, n) => request.run(n, () => book.write(() => request.getStore()))),
      );

      assert.deepEqual(
        seen,
        Array.from({ length: 20 }, (_, n) => n),
      );
    });

    test("a job that a handler enqueues in a transaction knows its cause, also beside other writes", async (t) => {
      const child = job("child", { run: () => undefined });
      const parent = job("parent", {
        run: (_params: object, { book }) => book.write((tx) => tx.jobs.enqueue(child, {})),
      });
      const { book } = await openTest(t, backend, { use: [child, parent] });
      const worker = await book.startWorker();

      await Promise.all([
        ...Array.from({ length: 10 }, () => book.jobs.enqueue(parent, {})),
        ...Array.from({ length: 30 }, () => book.write((tx) => tx.sql`select 1 as one`)),
      ]);
      await worker.idle();

      const { items } = await book.jobs.list({ name: "child" });
      assert.equal(items.length, 10);
      assert.ok(items.every((each) => each.cause !== null));
    });

    test("reading through the book inside write is refused, another book is not", async (t) => {
      const { book } = await openTest(t, backend);
      const { book: other } = await openTest(t, "sqlite");

      const reads: (() => Promise<unknown>)[] = [
        () => book.sessions.list(),
        () => book.jobs.list(),
        () => book.queues.list(),
        () => book.runs.list(),
      ];
      for (const read of reads) {
        await assert.rejects(book.write(read), { code: "invalid", message: /use the tx/ });
      }
      assert.equal((await book.write(() => other.jobs.list())).items.length, 0);
    });

    test("a slip in calling the book is named", async (t) => {
      const { book } = await openTest(t, backend);
      const slips = book as unknown as Record<"write" | "read", (work?: unknown) => Promise<unknown>>;

      await assert.rejects(slips.write(), { code: "invalid", message: /takes a function/ });
      await assert.rejects(slips.read(), { code: "invalid", message: /takes a function/ });
      const call = (tx: { sql: unknown }): unknown => (tx.sql as (text: string) => unknown)("select 1");
      await assert.rejects(slips.write(call), { code: "invalid", message: /as a template/ });
      const limti = { limti: 1 } as object;
      await assert.rejects(book.sessions.list(limti), { code: "invalid", message: /limit/ });
    });

    test("what is explained is judged as if it ran", async (t) => {
      const { book } = await openTest(t, backend);

      for (const prefix of ["explain", "EXPLAIN query plan", "explain (analyze, verbose)", "explain analyze"]) {
        const text = `${prefix} pragma query_only = on`;
        const template = Object.assign([text], { raw: [text] });
        await assert.rejects(
          book.write((tx) => tx.sql(template)),
          { code: "invalid", message: /pragma/ },
        );
      }
    });

    test("an exception that the program's own handler answers by exiting is recorded", async (t) => {
      const url = await testUrl(t, backend);
      const program = join(testFolder(t), "program.ts");
      const entry = fileURLToPath(import.meta.resolve("../../src/index.ts"));
      writeFileSync(
        program,
        `import { open } from ${JSON.stringify(entry)};
        process.on("uncaughtException", () => process.exit(3));
        const book = await open(${JSON.stringify(url)});
        await book.write((tx) => tx.sql\`select 1 as one\`);
        setImmediate(() => { throw new RangeError("too far"); });`,
      );

      const code = await new Promise((resolve) => {
        execFile(process.execPath, [program], (error) => resolve(error?.code));
      });

      assert.equal(code, 3);
      const { book } = await openTest(t, backend, { url });
      const { items } = await book.sessions.list();
      assert.deepEqual(
        items.map((session) => session.error?.message ?? session.status),
        ["running", "too far"],
      );
    });
  });
}
