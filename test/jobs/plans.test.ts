// The statements of the engine as it sends them, and how the databases would run them: growth is tested by looking at
// plans, not by timing. A mixed workload is run once with the statements written down, then each is explained on a book
// with enough rows of every kind.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { Client } from "pg";
import { job } from "../../src/index.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { recallClaim } from "../../src/jobs/claim/claim.ts";
import { render, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { backends } from "../support/open-test.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

type Account = { readonly account: string };
const run = (_params: Account): void => undefined;
const plain = job("plain", { attempts: 2, backoff: ["1s"], run });
const limited = job<Account>("limited", {
  attempts: 1,
  concurrency: 2,
  limit: { key: ({ account }) => account, concurrency: 1 },
  run,
});
const rated = job("rated", { rate: { max: 2, per: "1m" }, run });
const use = [plain, limited, rated];

for (const backend of backends) {
  describe(backend, () => {
    test("no statement of claim, settle, park, release or sweep scans the jobs or sorts them", async (t) => {
      const texts = new Set<string>();
      const at = await openEngine(t, backend, { use, fault: (_moment, text) => void texts.add(text) });
      await at.jobs.enqueueMany(
        plain,
        Array.from({ length: 10 }, () => ({ account: "a" })),
      );
      await fill(at, ["completed"]);
      texts.clear();
      await work(at, (statement) => void texts.add(render(statement, backend).text));
      const statements = [...texts].filter(isAboutJobs);

      const found: string[] = [];
      const look = async (): Promise<void> => {
        const plans = await (backend === "sqlite"
          ? sqlitePlans(at.url, statements)
          : postgresPlans(at.url, statements));
        for (const [text, plan] of plans)
          if (plan.some((line) => trouble.test(line))) found.push(`${text}\n${plan.join("\n")}`);
      };
      if (backend === "sqlite") {
        // Without statistics, which nobody need ever gather, and with those of a time when nearly everything was done.
        await look();
        await at.run("analyze");
        await look();
      }
      await fill(at, [
        ...["queued", "waiting, waits_for: 'time'", "waiting, waits_for: 'key', waits_key: 'key-' || n"],
        "waiting, waits_for: 'host', waits_key: 'unhosted'",
        "waiting, waits_for: 'time', waits_key: 'rate-' || n",
        `running, started_at: 1, run_id: 'o' || n, session_seq: ${at.session.seq}, timeout_at: 9000000000000 + n`,
      ]);
      // Without a list PostgreSQL would wait for whoever analyzes the catalogs that all databases of the server share.
      await at.run(
        backend === "sqlite"
          ? "analyze"
          : "analyze daybook_job, daybook_line, daybook_run, daybook_run_command, daybook_lane, daybook_session",
      );
      await look();

      assert.ok(statements.length >= 30, `only ${statements.length} statements were seen`);
      assert.deepEqual(found, []);
    });
  });
}

// Those of the tests themselves begin otherwise; a limit that is put on a lane by hand may read all that runs.
function isAboutJobs(text: string): boolean {
  return (
    /\b(?:daybook_)?(?:job|line)\b|^insert into daybook_lane/.test(text) &&
    !/^\s*(?:begin|commit|create|analyze)/i.test(text)
  );
}

/** 4,000 rows of each kind, so that a planner sees what it would cost to read them all. */
async function fill(at: TestEngine, kinds: readonly string[]): Promise<void> {
  const [lane] = await at.rows<{ seq: number }>("select seq from daybook_lane limit 1");
  const numbers = `(with recursive g(n) as (select 1 union all select n + 1 from g where n < 4000) select n from g) as g`;
  for (const kind of kinds) {
    const [status, ...more] = kind.split(", ").map((part) => part.split(": "));
    const names = more.map(([name]) => `, ${name}`).join("");
    const values = more.map(([, value]) => `, ${value}`).join("");
    const [{ last } = { last: 0 }] = await at.rows<{ last: number }>("select max(seq) as last from daybook_job");
    await at.run(`insert into daybook_job (tenant_id, id, lane_seq, name, priority, created_at, params, attempts, losses_max)
      select 'default', '${kind.replaceAll("'", "")}' || n, ${lane?.seq}, 'plain', -5, 1, '{}', 4, 3 from ${numbers}`);
    const made = `(select seq, seq - ${last} as n from daybook_job where seq > ${last}) as made`;
    await at.run(
      status?.[0] === "completed"
        ? `insert into daybook_run (tenant_id, id, kind, name, job_seq, attempt, started_at, ended_at, duration_ms, status)
            select 'default', 'r' || n, 'job', 'plain', seq, 1, 1, 1, 1, 'success' from ${made}`
        : `insert into daybook_line (seq, lane_seq, status, priority, position, available_at, ties${names})
            select seq, ${lane?.seq}, '${status?.[0]}', -5, seq * 100, 9000000000000, 0${values} from ${made}`,
    );
  }
  await at.run(`insert into daybook_run_command (tenant_id, run_id, job_id, argv, host, started_at, ended_at)
    select 'default', '${kinds.length}' || n, 'x' || n, '[]', 'here', 1, 1 from ${numbers}`);
}

/** A little of everything that workers and users do. */
async function work(at: TestEngine, onRead: (statement: Sql) => void): Promise<void> {
  await at.queues.limit("narrow", { concurrency: 1, rate: { max: 5, per: "1m" } });
  await at.jobs.enqueueMany(plain, [{ account: "a" }, { account: "b" }], { priority: 9, queue: "narrow" });
  await at.jobs.enqueueMany(
    limited,
    ["a", "a", "b", "c", "d"].map((account) => ({ account })),
    { priority: 9 },
  );
  await at.jobs.enqueueMany(rated, [{ account: "a" }, { account: "a" }, { account: "a" }], { priority: 9 });
  await at.jobs.enqueue(plain, { account: "a" }, { key: "k", priority: 9, in: "1s" });
  await at.jobs.enqueue(plain, { account: "b" }, { key: "k", onConflict: "replace", priority: 9 });
  await at.jobs.enqueue(plain, { account: "c" }, { idempotencyKey: "i" });
  await at.jobs.enqueue(plain, { account: "c" }, { idempotencyKey: "i" });
  const by = at.claimer();
  const first = await at.turn(20, by, { lookForDue: true, lookForHosted: true });
  const [one, two, three, ...rest] = first.claim.jobs;
  assert.ok(one && two && three && rest.length > 0);
  const endings = [
    { seq: one.seq, runId: one.run_id, status: "success", durationMs: 1, result: "1" },
    {
      seq: two.seq,
      runId: two.run_id,
      status: "error",
      durationMs: 1,
      error: { type: "E", message: "m", trace: null },
    },
    { seq: 1, runId: "another", status: "success", durationMs: 1 },
  ] as const;
  const progress = [{ seq: three.seq, run_id: three.run_id, progress: 0.5, note: null }];
  await at.turn(5, by, { endings, progress, lookForDue: true, lookForHosted: true });
  await at.store.write((tx) => recallClaim(tx, by, [three]));
  const spare = await at.jobs.enqueue(plain, { account: "z" });
  await at.jobs.cancel(spare.id);
  await at.jobs.retry(spare.id);
  await at.jobs.cancel(rest[0]?.id ?? "");
  await at.jobs.pause("plain");
  await at.claim(5, by);
  await at.jobs.resume("plain");
  await at.jobs.enqueueMany(
    plain,
    Array.from({ length: 5 }, () => ({ account: "d" })),
  );
  await inLine(at);
  await at.clock.advance(60_000);
  await at.turn(0, by, { lookForDue: true });
  const dead = await at.newSession();
  await at.claim(3, at.claimer(dead.seq));
  await at.run(`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${dead.seq}`);
  const read: Store["read"] = (statement) => {
    onRead(statement);
    return at.store.read(statement);
  };
  assert.equal(await sweep({ ...at.engine, store: { ...at.store, read } }), 3);
}

/** Moves in every direction, with and without room. */
async function inLine(at: TestEngine): Promise<void> {
  const made = await at.jobs.enqueueMany(
    plain,
    Array.from({ length: 5 }, () => ({ account: "e" })),
  );
  const [one = "", two = "", three = "", four = "", five = ""] = made.map((each) => each.id);
  await at.jobs.move(three, "first");
  await at.jobs.move(three, "last");
  await at.jobs.prioritise(five, 3);
  for (let times = 0; times < 12; times++) await at.jobs.move(times % 2 === 0 ? three : four, { after: one });
  await at.jobs.move(two, { before: one });
  await at.jobs.edit(two, { account: "f" });
}

/** What a planner should not do: read the whole table, or sort. What runs is no more than the places of all workers, and who
 *  looks for what dead sessions left reads all of it. */
const trouble =
  /^SCAN (?:daybook_)?(?:job|line|run|child|parent|daybook_lane)\b(?! USING (?:COVERING )?INDEX jobs_running$)|TEMP B-TREE|Seq Scan on daybook_(?:job|line|run)\b|\bSort\b/;

type Plans = Map<string, readonly string[]>;

function sqlitePlans(url: string, statements: readonly string[]): Plans {
  using db = new DatabaseSync(url, { readOnly: true });
  const planOf = (text: string): string[] =>
    (db.prepare(`explain query plan ${text}`).all() as { detail: string }[]).map(({ detail }) => detail);
  return new Map(statements.map((text) => [text, planOf(text)]));
}

async function postgresPlans(url: string, statements: readonly string[]): Promise<Plans> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("set search_path to daybook");
    const plans: Plans = new Map();
    for (const text of statements) {
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (generic_plan) ${text}`);
      plans.set(
        text,
        rows.map((row) => row["QUERY PLAN"]),
      );
    }
    return plans;
  } finally {
    await client.end();
  }
}
