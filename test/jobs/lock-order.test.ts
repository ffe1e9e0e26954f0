// On PostgreSQL everybody locks in one order (src/jobs/lock-order.ts). While somebody else holds what comes first, a verb
// waits for it and holds nothing that comes later; two that wait for each other would need the opposite.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { cleanup } from "../support/open-test.ts";
import { assertInvariants } from "./model.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

const plain = job("plain", { attempts: 2, backoff: ["1s"], run: () => undefined });
const [one, two] = [
  job("limit-a", { concurrency: 1, attempts: 1, run: () => undefined }),
  job("limit-b", { concurrency: 1, attempts: 1, run: () => undefined }),
];

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query("set search_path to daybook");
  return client;
}

// Asked outside a transaction: within one, PostgreSQL would give the same answer again.
async function untilItWaits(client: Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (rows.length > 0) return;
  }
}

type Given = { readonly at: TestEngine; readonly queued: string; readonly running: ClaimedJob; readonly group: string };

const verbs: Record<string, (given: Given) => Promise<unknown>> = {
  "cancelling a job": ({ at, queued }) => at.jobs.cancel(queued),
  "cancelling a running job": ({ at, running }) => at.jobs.cancel(running.id),
  "cancelling the group": ({ at, group }) => at.groups.cancel(group),
  "adding to the group": ({ at, group }) => at.groups.add(group, plain, {}),
  "settling a success": ({ at, running }) => at.end(running, { status: "success" }),
  "settling a failure": ({ at, running }) => at.end(running, { status: "error" }),
  "recovering a loss": ({ at, running }) => at.end(running, { status: "lost" }),
  "settling a shutdown": ({ at, running }) => at.end(running, { status: "cancelled", shutdown: true }),
};

for (const [name, verb] of Object.entries(verbs)) {
  test(`${name} waits for the group before it holds a job`, async (t) => {
    const at = await openEngine(t, "postgres", { use: [plain] });
    const { id: group, jobs } = await at.groups.create({ mode: "parallel" }, (each) => {
      for (let n = 0; n < 2; n++) each.add(plain, {});
    });
    const [running] = await at.claim(1);
    const queued = jobs.find(({ id }) => id !== running?.id)?.id ?? "";
    const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
    await other.query("begin");
    await other.query("select seq from daybook_job_group for update");

    const done = verb({ at, queued, running: running as ClaimedJob, group });
    await untilItWaits(watcher);
    const { rows } = await other.query("select seq from daybook_line for update skip locked");
    await other.query("rollback");

    assert.equal(rows.length, 2);
    await done;
    await assertInvariants(at);
  });
}

const inTwoQueues: Record<string, (at: TestEngine) => Promise<unknown>> = {
  "a group": (at) =>
    at.groups.create({ mode: "parallel" }, (each) => {
      for (const queue of ["b", "a"]) each.add(plain, {}, { queue });
    }),
  "many jobs": (at) => at.jobs.enqueueMany(plain, [{}, {}], (_, index) => ({ queue: index === 0 ? "b" : "a" })),
};

for (const [name, make] of Object.entries(inTwoQueues)) {
  test(`who makes ${name} in queues that are new waits for the first of them before it makes another`, async (t) => {
    const at = await openEngine(t, "postgres", { use: [plain] });
    const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
    const lane = (seq: number, queue: string): Promise<unknown> =>
      other.query("insert into daybook_lane (seq, tenant_id, queue) values ($1, 'default', $2)", [seq, queue]);
    await other.query("begin; set local lock_timeout = 1");
    await lane(1_000_000, "a");

    const made = make(at);
    await untilItWaits(watcher);
    await lane(1_000_001, "b");
    await other.query("commit");

    await made;
    assert.equal((await at.jobs.list()).items.length, 2);
  });
}

test("a retry by hand waits for the group before it holds a job", async (t) => {
  const at = await openEngine(t, "postgres", { use: [plain] });
  await at.groups.create({ mode: "parallel", onFailure: "continue" }, (each) => {
    for (let n = 0; n < 2; n++) each.add(plain, {}, { attempts: 1 });
  });
  const [failed] = await at.claim(1);
  await at.end(failed as ClaimedJob, { status: "error" });
  const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
  await other.query("begin");
  await other.query("select seq from daybook_job_group for update");

  const done = at.jobs.retry(failed?.id ?? "");
  await untilItWaits(watcher);
  const { rows } = await other.query("select seq from daybook_line for update skip locked");
  await other.query("rollback");

  // The failed one no longer stands there.
  assert.equal(rows.length, 1);
  assert.equal((await done).status, "queued");
});

test("all that a turn settles is locked as one ordered set", async (t) => {
  const at = await openEngine(t, "postgres", { use: [one, two] });
  await at.jobs.enqueue(two, {});
  await at.jobs.enqueue(one, {});
  const claimed = await at.claim(2);
  const byName = (name: string): ClaimedJob => claimed.find((each) => each.name === name) as ClaimedJob;
  const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
  const lock = (how: string, name: string): Promise<{ rows: { got: unknown }[] }> =>
    other.query(`select ${how}(hashtextextended($1, 0)) as got`, [`daybook:default\n\n${name}`]);
  await other.query("begin");
  await lock("pg_advisory_xact_lock", "limit-a");

  const endings = ["limit-b", "limit-a"].map(byName).map(({ seq, run_id: runId, name }) => {
    return { seq, runId, status: name === "limit-a" ? "cancelled" : "success", durationMs: 1 } as const;
  });
  const done = at.turn(0, at.claimer(), { endings });
  await untilItWaits(watcher);
  const later = await lock("pg_try_advisory_xact_lock", "limit-b");
  await other.query("rollback");

  assert.equal(later.rows[0]?.got, true);
  await done;
  assert.deepEqual(await at.rows("select name, status from daybook_job_now order by name"), [
    { name: "limit-a", status: "cancelled" },
    { name: "limit-b", status: "completed" },
  ]);
  await assertInvariants(at);
});
