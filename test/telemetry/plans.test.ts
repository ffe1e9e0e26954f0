// Questions do not read all runs: lists find theirs by an index or between two numbers, and counts by seeks in the rollups.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { Client } from "pg";
import { manualClock } from "../../src/core/manual-clock.ts";
import { render, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { listRuns } from "../../src/telemetry/runs.ts";
import { retainTelemetry } from "../../src/telemetry/retention/retain.ts";
import { policyAt } from "./policy.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { startSession } from "../../src/telemetry/session.ts";
import { telemetryReads } from "../../src/telemetry/telemetry.ts";
import { backends, openTestStore, type Backend } from "../support/open-test.ts";
import { insertRuns } from "./raw-run.ts";

const now = Date.UTC(2026, 5, 10, 9, 30);

type Question = (store: Store, session: string) => Promise<unknown>;

const tenant = "default";
const questions: Readonly<Record<string, readonly [ask: Question, how: RegExp]>> = {
  "registration and time": [
    (store) => listRuns(store, tenant, { kind: "listener", name: "lamp", since: "2d" }),
    /runs_registered/,
  ],
  "status and time": [(store) => listRuns(store, tenant, { status: "error", since: "2d" }), /runs_unlike_success/],
  time: [
    (store) => listRuns(store, tenant, { since: "2d", until: "1d" }),
    /SEARCH (?:daybook_)?run USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)|daybook_run_pkey/,
  ],
  session: [
    (store, session) => listRuns(store, tenant, { session }),
    /SEARCH (?:daybook_)?run USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)|daybook_run_pkey/,
  ],
  "the latest": [(store) => listRuns(store, tenant, {}), /USING INTEGER PRIMARY KEY|daybook_run_pkey/],
  summaries: [(store) => telemetryReads(store, tenant).summaries({ since: "5d" }), /run_rollup.*(?:PRIMARY KEY|_pkey)/],
  overview: [(store) => telemetryReads(store, tenant).overview({ since: "5d" }), /run_rollup.*(?:PRIMARY KEY|_pkey)/],
  errors: [(store) => telemetryReads(store, tenant).errors({ since: "5d" }), /run_failure.*(?:PRIMARY KEY|_pkey)/],
  "the last of each error": [
    (store) => telemetryReads(store, tenant).errors({ since: "5d" }),
    /SEARCH last USING INDEX run_failures_by_last \(series_seq=\? AND last_seq=\?\)|using (?:daybook_)?run_failure/,
  ],
  "the last error of each": [
    (store) => telemetryReads(store, tenant).summaries({ since: "5d" }),
    /SEARCH (?:daybook_)?run_failure USING INDEX run_failures_by_last \(series_seq=\? AND last_seq=\?\)|using (?:daybook_)?run_failure/,
  ],
  slow: [
    (store) => telemetryReads(store, tenant).slow({ since: "5d" }),
    /run.*(?:INTEGER PRIMARY KEY|daybook_run_pkey)/,
  ],
  "slow, of a session": [
    (store, session) => telemetryReads(store, tenant).slow({ session }),
    /run_rollup.*(?:PRIMARY KEY|_pkey)/,
  ],
  "summaries of a session": [
    (store, session) => telemetryReads(store, tenant).summaries({ session }),
    /runs_unlike_success/,
  ],
  line: [
    (store) => telemetryReads(store, tenant).buckets({ since: "5d", by: "hour" }),
    /run_rollup.*(?:PRIMARY KEY|_pkey)/,
  ],
  logs: [
    (store) => telemetryReads(store, tenant).logs(),
    /SEARCH (?:daybook_)?run_log USING INTEGER PRIMARY KEY|Scan Backward using daybook_run_log_pkey/,
  ],
  retention: [
    (store) => retainTelemetry(store, policyAt(now, tenant, { dryRun: true, bytes: Number.MAX_SAFE_INTEGER })),
    /runs_registered/,
  ],
};

for (const backend of backends) {
  test(`${backend}: no question about runs reads or sorts all of them`, async (t) => {
    const { store, url } = await openTestStore(t, backend, { clock: manualClock({ at: now }) });
    const session = await store.write((tx) => startSession(tx, thisProcess(), "{}"));
    const at = (n: number): number => now - n * 3_600_000;
    await insertRuns(
      store,
      Array.from({ length: 200 }, (_, n) => ({
        name: n % 2 === 0 ? "lamp" : "door",
        startedAt: at(200 - n),
        durationMs: n,
        sessionSeq: session.seq,
        status: n % 10 === 0 ? ("error" as const) : ("success" as const),
      })),
    );
    await foldRuns(store);

    for (const [what, [ask, how]] of Object.entries(questions)) {
      const asked: Sql[] = [];
      const readHeavy: Store["readHeavy"] = (statement) => {
        asked.push(statement);
        return store.readHeavy(statement);
      };
      const readPage: Store["readPage"] = (statement) => {
        asked.push(statement);
        return store.readPage(statement);
      };
      await ask({ ...store, readHeavy, readPage }, session.id);
      const plans = await plansOf(backend, url, asked);
      // Which way PostgreSQL goes about so few rows says nothing; plans-at-scale.test.ts asks it with many.
      if (backend === "postgres" && /^slow|^logs/.test(what)) continue;

      assert.ok(
        plans.some((plan) => plan.some((step) => how.test(step))),
        `${what}:\n${plans.flat().join("\n")}`,
      );
      const wrong = plans
        .flat()
        .filter((step) => /^SCAN (?:daybook_)?run(?: |_log |$)|Seq Scan on daybook_run\b/.test(step));
      assert.deepEqual(wrong, [], what);
    }
  });
}

async function plansOf(backend: Backend, url: string, asked: readonly Sql[]): Promise<string[][]> {
  if (backend === "sqlite") {
    using db = new DatabaseSync(url, { readOnly: true });
    return asked.map((statement) => {
      const { text } = render(statement, "sqlite");
      return (db.prepare(`explain query plan ${text}`).all() as { detail: string }[]).map(({ detail }) => detail);
    });
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // So few rows would be read faster one after the other; what matters is what many could be found by.
    await client.query("set search_path to daybook; set enable_seqscan to off; set enable_bitmapscan to off");
    const plans: string[][] = [];
    for (const statement of asked) {
      const { text } = render(statement, "postgres");
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (generic_plan) ${text}`);
      plans.push(rows.map((row) => row["QUERY PLAN"]));
    }
    return plans;
  } finally {
    await client.end();
  }
}

test("sqlite: a slice of retention finds each row that it removes by a seek", async (t) => {
  const { store, url } = await openTestStore(t, "sqlite", { clock: manualClock({ at: now }) });
  await insertRuns(store, [{ name: "lamp", startedAt: now - 30 * 86_400_000, durationMs: 1 }]);
  await foldRuns(store);
  const asked: Sql[] = [];
  const write: Store["write"] = (unit, options) =>
    store.write((tx) => {
      const run = tx.run.bind(tx);
      tx.run = (statement) => (asked.push(statement), run(statement));
      return unit(tx);
    }, options);

  const { runs } = await retainTelemetry({ ...store, write }, policyAt(now, tenant));

  const removing = asked.filter((statement) => render(statement, "sqlite").text.startsWith("delete from daybook_run "));
  const plans = await plansOf("sqlite", url, removing);
  assert.deepEqual(
    [runs, plans.map(([first]) => first)],
    [1, ["SEARCH daybook_run USING INTEGER PRIMARY KEY (rowid=?)"]],
  );
});
