// The outbox of docs/your-toolkit.md: what another program wrote in a transaction of its own becomes jobs, each once.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test, type TestContext } from "node:test";
import pg from "pg";
import { job, type Book } from "../../src/index.ts";
import { backends, cleanup, openTest, type Backend } from "../support/open-test.ts";

const welcome = job("welcome", { run: () => undefined });

const emptyOutbox = job("empty-outbox", {
  run: async (_params, { finish }) =>
    finish(async (tx) => {
      const asked = await tx.sql<{ id: number; job: string; params: string }>`delete from outbox
        where id in (select id from outbox order by id limit 100) returning id, job, params`;
      for (const { job, params } of asked.toSorted((a, b) => a.id - b.id))
        await tx.jobs.enqueue(job, JSON.parse(params));
      return asked.length;
    }),
});

/** Another program's connection, as that of Prisma would be. */
async function otherProgram(
  t: TestContext,
  backend: Backend,
  url: string,
): Promise<(text: string) => Promise<unknown>> {
  if (backend === "sqlite") {
    const db = new DatabaseSync(url, { timeout: 10_000 });
    cleanup(t, () => db.close());
    return async (text) => db.exec(text);
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query("set search_path to daybook");
  return (text) => client.query(text);
}

async function asked(book: Book): Promise<unknown[]> {
  const { items } = await book.jobs.list({ name: "welcome" });
  return Promise.all(items.map(async ({ id }) => (await book.jobs.get(id)).params));
}

for (const backend of backends) {
  describe(`an outbox on ${backend}`, () => {
    test("what another program committed becomes a job each, once, and what it rolled back does not", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [welcome, emptyOutbox] });
      const run = await otherProgram(t, backend, url);
      await run("create table outbox (id integer primary key, job text not null, params text not null)");

      await run("begin");
      await run(`insert into outbox (id, job, params) values (1, 'welcome', '{"name":"Ada"}')`);
      await run("commit");
      await run("begin");
      await run(`insert into outbox (id, job, params) values (2, 'welcome', '{"name":"Bob"}')`);
      await run("rollback");
      const emptied = await Promise.all([1, 2, 3].map(() => book.jobs.enqueue(emptyOutbox)));
      const worker = await book.startWorker();
      await worker.idle();

      const counts = await Promise.all(emptied.map((made) => made.result()));
      assert.deepEqual(
        counts.toSorted((a, b) => Number(a) - Number(b)),
        [0, 0, 1],
      );
      assert.deepEqual(await asked(book), [{ name: "Ada" }]);
    });

    test("a row that names no job undoes the whole take, so nothing of the outbox is lost", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [welcome, emptyOutbox] });
      const run = await otherProgram(t, backend, url);
      await run("create table outbox (id integer primary key, job text not null, params text not null)");
      await run(`insert into outbox (id, job, params) values (1, 'welcome', '{}'), (2, 'wellcome', '{}')`);

      const made = await book.jobs.enqueue(emptyOutbox, {}, { attempts: 1 });
      const worker = await book.startWorker();
      await worker.idle();

      await assert.rejects(made.result(), /does not know the job "wellcome"/);
      assert.deepEqual(await asked(book), []);
      assert.deepEqual(await book.read((tx) => tx.sql`select id from outbox order by id`), [{ id: 1 }, { id: 2 }]);
    });
  });
}
