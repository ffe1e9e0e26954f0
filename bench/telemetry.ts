// What is asked of telemetry in a book of many runs, what folding and retention cost, and how long either keeps a writer waiting.
// DAYBOOK_BENCH_RUNS sets how many runs there are; the goals are for five million.
import { systemClock } from "../src/core/clock.ts";
import { migrations } from "../src/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import { rawSql } from "../src/storage/sql.ts";
import type { Store } from "../src/storage/store.ts";
import { listRuns } from "../src/telemetry/list-runs.ts";
import { thisProcess } from "../src/telemetry/process-identity.ts";
import { toPolicy } from "../src/telemetry/retention/policy.ts";
import { retainTelemetry } from "../src/telemetry/retention/retain.ts";
import { foldRuns } from "../src/telemetry/rollup/folder.ts";
import { startSession } from "../src/telemetry/session.ts";
import { telemetryReads } from "../src/telemetry/telemetry.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";

const runs = Number(process.env["DAYBOOK_BENCH_RUNS"] ?? 200_000);
const series = 50;
const days = 9;
const queryMsMax = 50;
const stallMsMax = 50;

export const telemetry: Benchmark = {
  name: "telemetry",
  title: "telemetry: questions, folding and retention",
  async run(report) {
    const store = await openStore(scratch("telemetry.db"), migrations);
    const session = await store.write((tx) => startSession(tx, thisProcess(), "{}"));
    const now = systemClock.now();
    await fill(store, now, session.seq);
    report.note(`${runs} runs of ${series} live listeners over ${days} days, one in a hundred an error`);
    await fold(report, store);
    await ask(report, store, session.id);
    await retain(report, store);
    await store.close();
  },
};

async function fill(store: Store, now: number, session: number): Promise<void> {
  const step = 50_000;
  for (let from = 0; from < runs; from += step) {
    await store.write((tx) =>
      tx.run(
        rawSql(`insert into run (tenant_id, id, kind, name, session_seq, attempt, started_at, ended_at, duration_ms,
          status, error_type, error_message, topic, app, instance, registration)
        with recursive n (n) as (select ${from} union all select n + 1 from n where n < ${Math.min(runs, from + step) - 1})
        select 'default', 'run-' || n, 'listener', 'listener-' || (n % ${series}), ${session}, 1,
          ${now - days * 86_400_000} + cast(n * ${(days * 86_400_000) / runs} as integer),
          ${now - days * 86_400_000} + cast(n * ${(days * 86_400_000) / runs} as integer) + 5, (n % 977) * 0.5,
          case when n % 100 = 7 then 'error' else 'success' end, case when n % 100 = 7 then 'TypeError' end,
          case when n % 100 = 7 then 'no lamp ' || n end, 'light', 'home', n % 3, 'listener-' || (n % ${series}) from n`),
      ),
    );
  }
}

async function fold(report: Report, store: Store): Promise<void> {
  const stall = watchLoop();
  const begun = performance.now();
  await foldRuns(store);
  const perSecond = Math.round(runs / ((performance.now() - begun) / 1000));
  report.note(`folding: ${perSecond} runs a second`);
  report.times("folding: how long the loop was held", stall.stop(), { goalMsMax: stallMsMax });
}

async function ask(report: Report, store: Store, session: string): Promise<void> {
  const reads = telemetryReads(store, "default");
  const questions: Readonly<Record<string, () => Promise<unknown>>> = {
    "overview, 24 hours": () => reads.overview({ since: "24h" }),
    "overview, 7 days": () => reads.overview({ since: "7d" }),
    "summaries, 24 hours": () => reads.summaries({ since: "24h", limit: 500 }),
    "summaries, 7 days": () => reads.summaries({ since: "7d", limit: 500 }),
    "summaries of a session": () => reads.summaries({ session, limit: 500 }),
    "apps, 24 hours": () => reads.apps({ since: "24h" }),
    "errors, 24 hours": () => reads.errors({ since: "24h" }),
    "the slowest, 24 hours": () => reads.slow({ since: "24h" }),
    "buckets, 24 hours": () => reads.buckets({ since: "24h" }),
    "buckets, 7 days by hour": () => reads.buckets({ since: "7d", by: "hour" }),
    "the latest runs": () => listRuns(store, "default", {}),
    "the latest errors": () => listRuns(store, "default", { status: "error" }),
    "the runs of a listener": () => listRuns(store, "default", { kind: "listener", registration: "listener-7" }),
    "the runs of one hour, days ago": () => listRuns(store, "default", { since: "100h", until: "99h" }),
    "the runs of a session": () => listRuns(store, "default", { session }),
  };
  for (const [what, question] of Object.entries(questions)) {
    const times: number[] = [];
    for (let round = 0; round < 12; round++) {
      const begun = performance.now();
      await question();
      if (round > 1) times.push(performance.now() - begun);
    }
    report.times(what, times, { goalMsMax: queryMsMax });
  }
}

// Another writer that comes every few milliseconds, as handlers and workers do.
async function retain(report: Report, store: Store): Promise<void> {
  const waits: number[] = [];
  let done = false;
  const writer = (async () => {
    while (!done) {
      const begun = performance.now();
      await store.write((tx) => tx.run(rawSql("update run_fold set folded_seq = folded_seq")));
      waits.push(performance.now() - begun);
      await systemClock.sleep(2);
    }
  })();
  const begun = performance.now();
  const gone = await retainTelemetry(store, toPolicy(systemClock.now(), null));
  done = true;
  await writer;
  report.note(`retention: ${gone.runs} runs in ${gone.slices} slices, ${Math.round(performance.now() - begun)} ms`);
  report.times("retention: how long another writer waited", waits, { goalMsMax: stallMsMax });
  report.note(`the longest wait was ${Math.round(Math.max(...waits))} ms, flushes to disk included`);
}

function watchLoop(): { stop(): number[] } {
  const held: number[] = [];
  let [last, stopped] = [performance.now(), false];
  void (async () => {
    while (!stopped) {
      await systemClock.sleep(1);
      const now = performance.now();
      held.push(now - last);
      last = now;
    }
  })();
  return { stop: () => ((stopped = true), held) };
}
