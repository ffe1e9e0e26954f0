// Two transactions that lock the same rows in opposite orders wait for each other until PostgreSQL ends one of them. So there
// is one order for all (src/jobs/lock-order.ts): while somebody else holds what comes first, a verb that waits for it holds
// nothing that comes later.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim.ts";
import { recoverSession } from "../../src/jobs/rescue.ts";
import { cleanup } from "../support/open-test.ts";
import { assertInvariants } from "./model.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

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

async function given(t: TestContext): Promise<Given> {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const { id: group, jobs } = await at.groups.create({ mode: "parallel", onFailure: "continue" }, (each) => {
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

const endings = (jobs: readonly ClaimedJob[]) =>
  jobs.toReversed().map(({ seq, run_id: runId }) => ({ seq, runId, status: "success", durationMs: 1 }) as const);

type Verb = {
  readonly name: string;
  readonly run: (given: Given) => Promise<unknown>;
  readonly prepare?: (given: Given) => Promise<unknown>;
  readonly whiches?: readonly ("running" | "queued")[];
};

const verbs: readonly Verb[] = [
  {
    name: "a turn that settles several",
    run: ({ at, running }) => at.turn(0, at.claimer(), { endings: endings(running) }),
  },
  {
    name: "recovering a session",
    run: ({ at }) => at.store.write((tx) => recoverSession(tx, {}, at.session.seq)),
  },
  { name: "cancelling a running job", run: ({ at, running }) => at.jobs.cancel(running[0]?.id ?? "") },
  { name: "a claim", run: ({ at }) => at.claim(4) },
  {
    // It holds the queued job that it moves before it knows which others must make room.
    whiches: ["running"],
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

for (const { name, run, prepare, whiches = ["running", "queued"] } of verbs) {
  for (const which of whiches) {
    test(`${name} waits for the first ${which} job before it holds a later one`, async (t) => {
      const set = await given(t);
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
