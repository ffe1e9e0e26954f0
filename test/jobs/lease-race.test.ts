// On PostgreSQL several transactions find that a lease ran out: the timer's, a sweep's, that of the worker that comes late. One of
// them ends the run. A sweep passes by what another holds; the worker is refused once the run has ended, never before.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { manualClock } from "../../src/index.ts";
import { until } from "../cli/until.ts";
import { cleanup, openTest } from "../support/open-test.ts";

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

async function pidOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? 0;
}

/** The process of the server that waits for this one. */
async function waiterFor(watcher: Client, pid: number): Promise<number> {
  let waiter: number | undefined;
  await until(async () => {
    const { rows } = await watcher.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = current_database() and $1 = any(pg_blocking_pids(pid))",
      [pid],
    );
    waiter = rows[0]?.pid;
    return waiter !== undefined;
  });
  return waiter ?? 0;
}

test("while the timer of a lease ends its run, recover passes it by and a late settle waits for the end", async (t) => {
  const clock = manualClock();
  const { book, url } = await openTest(t, "postgres", { worker: false, clock });
  await book.jobs.enqueue("resize", {});
  const { session } = await book.workers.attach({ names: ["resize"] });
  const [taken] = await book.workers.claim(session);
  const { lease = "", run = "" } = taken ?? {};
  const [other, watcher] = [await connect(t, url), await connect(t, url)];
  await other.query("begin");
  await other.query("select seq from daybook.daybook_line for update");

  await clock.advance("31s");
  const timer = await waiterFor(watcher, await pidOf(other));
  const { recovered } = await book.jobs.recover();
  const settled = book.workers.settle(lease);
  const refused = assert.rejects(settled, { code: "conflict", message: /ran out at/ });
  await waiterFor(watcher, timer);
  const before = await book.runs.list();
  await other.query("rollback");
  await refused;

  assert.equal(recovered, 0);
  assert.deepEqual(before.items, []);
  assert.equal((await book.runs.get(run)).status, "lost");
  assert.deepEqual(await book.doctor(), []);
});
