// On PostgreSQL a template is archived by one process while another makes a job from it: whichever commits first, no job
// is made from a template that was archived before.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { z } from "zod";
import { job } from "../../src/index.ts";
import { until } from "../cli/until.ts";
import { cleanup, openTest } from "../support/open-test.ts";

const plain = job("plain", { run: () => undefined });

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

async function someoneWaits(client: Client): Promise<boolean> {
  const { rows } = await client.query(
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rows.length > 0;
}

const archive = `update daybook.daybook_job_template set archived_at = 1, revision = revision + 1 where name = 'one'`;

test("a job waits for an archive that is under way, and is refused", async (t) => {
  const { book, url } = await openTest(t, "postgres", { use: [plain] });
  await book.templates.create("one", { job: plain });
  const [other, watcher] = [await connect(t, url), await connect(t, url)];
  await other.query("begin");
  await other.query(archive);

  const byBook = book.jobs.enqueueFrom("one");
  await until(() => someoneWaits(watcher));
  await other.query("commit");

  await assert.rejects(byBook, { code: "conflict", message: /template "one" makes no new jobs/ });
  assert.deepEqual((await book.jobs.list()).items, []);
});

test("a transaction that waits for an archive runs again and is refused", async (t) => {
  const { book, url } = await openTest(t, "postgres", { use: [plain] });
  await book.templates.create("one", { job: plain });
  const [other, watcher] = [await connect(t, url), await connect(t, url)];
  await other.query("begin");
  await other.query(archive);

  const byTx = book.write((tx) => tx.jobs.enqueueFrom("one"));
  await until(() => someoneWaits(watcher));
  await other.query("commit");

  await assert.rejects(byTx, { code: "conflict", message: /template "one" makes no new jobs/ });
  assert.deepEqual((await book.jobs.list()).items, []);
});

test("an archive waits for the transaction that makes a job, and comes after it", async (t) => {
  const [asked, checked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = job("slow", {
    params: z.object({}).refine(async () => {
      asked.resolve();
      await checked.promise;
      return true;
    }),
    run: () => undefined,
  });
  const { book, url } = await openTest(t, "postgres", { use: [slow] });
  await book.templates.create("one", { job: slow });
  const watcher = await connect(t, url);

  const made = book.write((tx) => tx.jobs.enqueueFrom("one"));
  await asked.promise;
  const archived = book.templates.archive("one");
  await until(() => someoneWaits(watcher));
  checked.resolve();

  assert.equal((await made).status, "queued");
  assert.notEqual((await archived).archivedAt, null);
  await assert.rejects(book.jobs.enqueueFrom("one"), { code: "conflict" });
});
