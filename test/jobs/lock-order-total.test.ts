// Two transactions that lock the same rows in opposite orders wait for each other until PostgreSQL ends one of them. So there
// is one order for all (src/jobs/lock-order.ts): while somebody else holds what comes first, a verb that waits for it holds
// nothing that comes later.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { directJobs, directKind } from "../../src/jobs/direct/reservation.ts";
import type { OnFailure } from "../../src/jobs/group/group.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { settleInUserTx } from "../../src/jobs/run/step.ts";
import { sql } from "../../src/storage/sql.ts";
import { cleanup } from "../support/open-test.ts";
import { askForTurn, declareDead, takeDirect } from "./direct.ts";
import { assertInvariants } from "./model.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

const ports = { kinds: { [directKind]: directJobs } };
const plain = job("plain", { attempts: 1, run: () => undefined });

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query("set search_path to daybook");
  return client;
}

/** Resolves once a verb waits for a lock, or has ended without waiting. */
async function untilItWaitsOrEnds(watcher: Client, verb: Promise<unknown>): Promise<"waits" | "ended"> {
  let ended = false;
  const end = (): void => void (ended = true);
  verb.then(end, end);
  for (;;) {
    const { rows } = await watcher.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (rows.length > 0) return "waits";
    if (ended) return "ended";
  }
}

type Given = {
  readonly at: TestEngine;
  /** In the order of their numbers; in the line they stand in the opposite order. */
  readonly running: readonly ClaimedJob[];
  readonly queued: readonly string[];
  readonly group: string;
};

async function given(t: TestContext, onFailure: OnFailure): Promise<Given> {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const { id: group, jobs } = await at.groups.create({ mode: "parallel", onFailure }, (each) => {
    for (let n = 0; n < 8; n++) each.add(plain, {});
  });
  // The rows themselves lie in the opposite order, too: one that is written is written behind the others.
  for (const { id } of jobs.toReversed()) await at.jobs.move(id, "last");
  const running = await at.claim(4);
  assert.equal(running.length, 4);
  const begun = new Set(running.map(({ id }) => id));
  return {
    at,
    group,
    running: running.toSorted((a, b) => a.seq - b.seq),
    queued: jobs.flatMap(({ id }) => (begun.has(id) ? [] : id)),
  };
}

const endings = (jobs: readonly ClaimedJob[], status: "success" | "error" = "success") =>
  jobs.toReversed().map(({ seq, run_id: runId }) => ({ seq, runId, status, durationMs: 1 }) as const);

type Verb = {
  readonly name: string;
  readonly run: (given: Given) => Promise<unknown>;
  readonly prepare?: (given: Given) => Promise<unknown>;
  readonly onFailure?: OnFailure;
};

const verbs: readonly Verb[] = [
  {
    name: "a turn that settles several",
    run: ({ at, running }) => at.turn(0, at.claimer(), { endings: endings(running) }),
  },
  {
    name: "a turn that fails jobs of a group that stops",
    onFailure: "stop",
    run: ({ at, running }) => at.turn(0, at.claimer(), { endings: endings(running, "error") }),
  },
  {
    name: "recovering a session that has reserved the queue",
    prepare: ({ at }) => askForTurn(at, { does: plain }),
    run: ({ at }) => at.store.write((tx) => recoverSession(tx, ports, at.session.seq)),
  },
  { name: "cancelling a running job", run: ({ at, running }) => at.jobs.cancel(running[0]?.id ?? "") },
  {
    name: "cancelling a queued job of a group that stops",
    onFailure: "stop",
    run: ({ at, queued }) => at.jobs.cancel(queued.at(-1) ?? ""),
  },
  { name: "a claim", run: ({ at }) => at.claim(4) },
  {
    name: "moving jobs to where there is no room",
    prepare: ({ at, queued: [first = "", , , last = ""] }) => at.jobs.move(first, { after: last }),
    async run({ at, queued: [, second = "", third = ""] }) {
      for (let n = 0; n < 6; n++) {
        await at.jobs.move(second, { before: third });
        await at.jobs.move(third, { before: second });
      }
    },
  },
  { name: "normalising a queue", run: ({ at }) => at.queues.normalise("default") },
  { name: "cancelling a group", run: ({ at, group }) => at.groups.cancel(group) },
];

for (const { name, run, prepare, onFailure = "continue" } of verbs) {
  for (const which of ["running", "queued"] as const) {
    test(`${name} waits for the first ${which} job before it holds a later one`, async (t) => {
      const set = await given(t, onFailure);
      await prepare?.(set);
      const { at } = set;
      const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
      const query = async (text: string): Promise<number[]> =>
        (await other.query<{ seq: string }>(text)).rows.map(({ seq }) => Number(seq));
      await other.query("begin");
      const [first = 0] = await query(
        `select seq from daybook_line where status = '${which}' order by seq limit 1 for update`,
      );
      const later = await query(`select seq from daybook_line where seq > ${first} order by seq`);

      const done = run(set);
      const became = await untilItWaitsOrEnds(watcher, done);
      const held = `select seq from daybook_line where seq > ${first} order by seq for update skip locked`;
      const free = became === "waits" ? await query(held) : later;
      await other.query("rollback");

      assert.deepEqual(free, later);
      await done;
      await assertInvariants(at);
    });
  }
}

const ends: Record<string, (at: TestEngine, retry: ClaimedJob) => Promise<unknown>> = {
  succeeds: (at, retry) => at.end(retry, { status: "success" }),
  fails: (at, retry) => at.end(retry, { status: "error" }),
  finishes: (at, retry) => {
    const ending = { seq: retry.seq, runId: retry.run_id, job: retry, status: "success", durationMs: 1 } as const;
    return at.store.write((tx) => settleInUserTx(tx, ports, ending), { by: "user" });
  },
};

for (const [how, end] of Object.entries(ends)) {
  test(`a retry that ${how} waits for the next of its group before it holds itself`, async (t) => {
    const at = await openEngine(t, "postgres", { use: [plain] });
    await at.groups.create({ mode: "sequential" }, (each) => {
      each.add(plain, {}, { attempts: 2, backoff: ["1ms"] });
      each.add(plain, {});
    });
    const [first] = await at.claim(1);
    await at.end(first as ClaimedJob, { status: "error" });
    await at.clock.advance(10);
    const { claim } = await at.turn(1, at.claimer(), { lookForDue: true });
    const [retry] = claim.jobs;
    const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
    await other.query("begin");
    await other.query("select seq from daybook_line where waits_for = 'group' for update");

    const done = end(at, retry as ClaimedJob);
    assert.equal(await untilItWaitsOrEnds(watcher, done), "waits");
    const { rows } = await other.query("select seq from daybook_line for update skip locked");
    await other.query("rollback");

    assert.equal(rows.length, 2);
    await done;
    await assertInvariants(at);
  });
}

for (const [how, end] of Object.entries(ends)) {
  test(`direct work that ${how} waits for its reservation before it holds itself`, async (t) => {
    const at = await openEngine(t, "postgres", { use: [plain] });
    const [direct] = (await takeDirect(at, await askForTurn(at, { does: plain }))).jobs;
    const [other, watcher] = [await connect(t, at.url), await connect(t, at.url)];
    await other.query("begin; select seq from daybook_reservation for update");

    const done = end(at, direct as ClaimedJob);
    assert.equal(await untilItWaitsOrEnds(watcher, done), "waits");
    const { rows } = await other.query("select seq from daybook_line for update skip locked");
    await other.query("rollback");

    assert.equal(rows.length, 1);
    await done;
    assert.deepEqual(await at.rows("select status from daybook_reservation"), [{ status: "released" }]);
    await assertInvariants(at);
  });
}

test("a claim passes by a job that must run alone while another holds it, and looks again", async (t) => {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const { id } = await at.jobs.enqueue(plain, {});
  await at.run("update daybook_job set alone = 2");
  assert.equal((await at.claimFully(1)).leftAlone, true);
  const other = await connect(t, at.url);
  await other.query("begin; select seq from daybook_line for update");

  const passed = await at.claimAlone();
  await other.query("rollback");

  assert.deepEqual([passed.jobs.length, passed.contended], [0, true]);
  assert.deepEqual(
    (await at.claimAlone()).jobs.map((each) => each.id),
    [id],
  );
});

test("direct work that another holds is passed by, and its worker looks again", async (t) => {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const turn = await askForTurn(at, { does: plain });
  const other = await connect(t, at.url);
  await other.query("begin; select seq from daybook_line for update");

  const passed = await takeDirect(at, turn);
  await other.query("rollback");

  assert.deepEqual([passed.jobs.length, passed.contended], [0, true]);
  assert.equal((await takeDirect(at, turn)).jobs.length, 1);
});

test("a lost job is tried again in the next free place rather than wait for those who should make room", async (t) => {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const ids = (await at.jobs.enqueueMany(plain, [{}, {}, {}, {}], { losses: 3 })).map((each) => each.id);
  const [a = "", b = "", c = "", d = ""] = ids;
  await at.run("update daybook_line set position = 150 + seq - (select min(seq) from daybook_line)");
  const by = { ...at.claimer(), sessionSeq: (await at.newSession()).seq };
  const [lost] = await at.claim(1, by);
  assert.equal(lost?.id, a);
  // Another was moved onto its number, and no number is free between that one and the one before.
  await at.run(`update daybook_line set position = 149 where seq = (select seq from daybook_job where id = '${b}')`);
  await at.run(`update daybook_line set position = 150 where seq = (select seq from daybook_job where id = '${c}')`);
  const other = await connect(t, at.url);
  await other.query(
    `begin; select seq from daybook_line where seq in (select seq from daybook_job where id = '${b}') for update`,
  );

  await declareDead(at, { seq: by.sessionSeq, id: "" });
  await at.store.write((tx) => recoverSession(tx, ports, by.sessionSeq));
  await other.query("rollback");

  const line = (await at.queues.line("default")).items.map((each) => each.id);
  assert.deepEqual([line[0], line[1], line[3]], [b, c, d]);
  await assertInvariants(at);
});

test("a queue is normalised without waiting for a job that came after its jobs were locked", async (t) => {
  const { at } = await given(t, "continue");
  const [other, watcher, late] = [await connect(t, at.url), await connect(t, at.url), await connect(t, at.url)];
  await other.query("begin; select seq from daybook_line order by seq limit 1 for update");
  const done = at.queues.normalise("default");
  await untilItWaitsOrEnds(watcher, done);
  await at.jobs.enqueue(plain, {});
  await late.query("begin; select seq from daybook_line order by seq desc limit 1 for update");

  await other.query("rollback");
  const { jobs } = await done;
  await late.query("rollback");

  assert.equal(jobs, 8);
  await assertInvariants(at);
});

test("a group ends with the last of its jobs, also when two finish at once and one began before the other was claimed", async (t) => {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const { id } = await at.groups.create({ mode: "parallel" }, (each) => {
    for (let n = 0; n < 2; n++) each.add(plain, {});
  });
  const finish = (each: ClaimedJob | undefined, before: () => Promise<void>): Promise<unknown> => {
    const job = each as ClaimedJob;
    const ending = { seq: job.seq, runId: job.run_id, job, status: "success", durationMs: 1 } as const;
    return at.store.write(
      async (tx) => {
        await tx.all(sql`select 1`);
        await before();
        return settleInUserTx(tx, ports, ending);
      },
      { by: "user" },
    );
  };
  const [first] = await at.claim(1);
  const [begun, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];

  const early = finish(first, () => (begun.resolve(), over.promise));
  await begun.promise;
  const [second] = await at.claim(1);
  await finish(second, () => Promise.resolve());
  over.resolve();
  await early;

  assert.equal((await at.groups.get(id)).status, "completed");
  await assertInvariants(at);
});
