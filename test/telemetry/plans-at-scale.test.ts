// PostgreSQL chooses its plan by what a table holds, so what it would do with many runs is asked of a book that has many: a
// hundred listeners with a minute's count each for days, and what an overview asks of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "pg";
import { manualClock } from "../../src/core/manual-clock.ts";
import { render, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { listRuns } from "../../src/telemetry/runs.ts";
import { bucketColumns } from "../../src/telemetry/rollup/series.ts";
import { telemetryReads } from "../../src/telemetry/telemetry.ts";
import { cleanup, openTestStore } from "../support/open-test.ts";

const now = Date.UTC(2026, 5, 10, 9, 30);
const [minute, series, minutes] = [60_000, 100, 500];
const runs = series * minutes;

const counts = `1, 1, 0, 0, 0, 0, 0, 5, 5, ${bucketColumns.map((_, index) => (index === 3 ? 1 : 0)).join(", ")}`;
const columns = `series_seq, span, at, first_seq, last_seq, runs, success, error, cancelled, timed_out, skipped, lost, sum_ms,
  max_ms, ${bucketColumns.join(", ")}`;

// Run n is of the listener n % series, in the minute n / series.
const fill = `
  insert into daybook_session (seq, id, host, pid, started_at, last_heartbeat_at) values (1, 'one', 'h', 1, ${now - 1e9}, ${now});
  insert into daybook_run_series (seq, tenant_id, kind, name, app, instance)
    select s, 'default', 'listener', 'l' || s, 'home', 0 from generate_series(1, ${series}) as s;
  insert into daybook_run (seq, tenant_id, id, kind, name, session_seq, attempt, started_at, ended_at, duration_ms, status, error_type,
      error_message, app, instance, registration)
    select n, 'default', 'r' || n, 'listener', 'default/home/0/l' || 1 + n % ${series}, 1, 1, at, at, n % 997,
      case when n % 100 = 7 then 'error' else 'success' end, 'E', 'no', 'home', 0, 'l' || 1 + n % ${series}
    from (select n, ${now} - (${minutes} - n / ${series}) * ${minute}::bigint as at from generate_series(0, ${runs - 1}) as n) as x;
  insert into daybook_run_rollup (${columns})
    select 1 + n % ${series}, 'minute', ${now} - (${minutes} - n / ${series}) * ${minute}::bigint, n, n, ${counts}
    from generate_series(0, ${runs - 1}) as n;
  insert into daybook_run_rollup (${columns})
    select s, 'hour', ${now - (now % 3_600_000)} - h * 3600000::bigint, greatest(0, ${runs} - (h + 1) * 60 * ${series}),
      ${runs} - h * 60 * ${series}, ${counts}
    from generate_series(1, ${series}) as s, generate_series(0, ${Math.ceil(minutes / 60)}) as h;
  insert into daybook_run_rollup (${columns}) select s, 'session', 1, 0, ${runs}, ${counts} from generate_series(1, ${series}) as s;
  insert into daybook_run_failure (series_seq, at, fingerprint, runs, first_at, last_at, last_seq, last_run_id, last_status,
      error_type, error_message)
    select 1 + n % ${series}, started_at, 'f' || n % 5, 1, started_at, started_at, seq, id, 'error', 'E', 'no'
    from (select seq as n, * from daybook_run) as r;
  insert into daybook_run_log (tenant_id, run_id, logged_at, level, message) select 'default', id, started_at, 'info', 'm' from daybook_run;
  update daybook_run_fold set folded_seq = ${runs};
  analyze`;

test("postgres: with many runs no question of an overview reads a whole table of them", async (t) => {
  const { store, url } = await openTestStore(t, "postgres", { clock: manualClock({ at: now }) });
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query(`set search_path to daybook; ${fill}`);
  const asked: Sql[] = [];
  const readHeavy: Store["readHeavy"] = (statement) => (asked.push(statement), store.readHeavy(statement));
  const watched = { ...store, readHeavy };
  const reads = telemetryReads(watched, "default");
  const hour = { since: "1h" };

  const questions: Readonly<Record<string, () => Promise<unknown>>> = {
    cards: () => reads.overview(hour),
    "summaries of some": () => reads.summaries({ ...hour, name: "l7" }),
    "summaries of a session": () => reads.summaries({ session: "one", limit: 5 }),
    apps: () => reads.apps(hour),
    errors: () => reads.errors({ ...hour, name: "l7" }),
    slow: () => reads.slow(hour),
    "slow of a session": () => reads.slow({ session: "one" }),
    line: () => reads.buckets(hour),
    logs: () => reads.logs(),
    activity: () => listRuns(watched, "default", {}),
    "activity of an hour": () => listRuns(watched, "default", { since: "3h", until: "2h" }),
    "runs of a listener": () => listRuns(watched, "default", { kind: "listener", name: "l7" }),
    "the latest errors": () => listRuns(watched, "default", { status: "error" }),
    "runs of a session": () => listRuns(watched, "default", { session: "one" }),
  };
  const wrong: string[] = [];
  for (const [what, ask] of Object.entries(questions)) {
    asked.length = 0;
    await ask();
    for (const statement of asked) {
      const { text, params } = render(statement, "postgres");
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain ${text}`, params as unknown[]);
      const plan = rows.map((row) => row["QUERY PLAN"]);
      if (
        plan.some((step) =>
          /Seq Scan on daybook_(?:run|run_rollup|run_failure|run_log)\b|Sort Key: (?:daybook_)?(?:run|run_log)\.seq/.test(
            step,
          ),
        )
      ) {
        wrong.push(`${what}:\n${plan.join("\n")}`);
      }
    }
  }

  assert.deepEqual(wrong, []);
});
