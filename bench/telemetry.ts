// What is asked of telemetry in a book of many runs, what folding and retention cost, and how long either keeps a writer waiting.
// DAYBOOK_BENCH_RUNS sets how many runs there are; the goals are for five million.
import { systemClock } from "../src/core/clock.ts";
import { migrations } from "../src/open/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import { rawSql } from "../src/storage/sql.ts";
import type { Store } from "../src/storage/store.ts";
import { listRuns, type RunFilter } from "../src/telemetry/runs.ts";
import { limits } from "../src/core/limits.ts";
import { retainTelemetry } from "../src/telemetry/retention/retain.ts";
import { readCounters } from "../src/telemetry/report/overview.ts";
import { foldRuns } from "../src/telemetry/rollup/roll-up.ts";
import { telemetryReads } from "../src/telemetry/telemetry.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { days, fillRuns, series } from "./telemetry/fill.ts";

const runs = Number(process.env["DAYBOOK_BENCH_RUNS"] ?? 200_000);
const queryMsMax = 50;
const stallMsMax = 50;

export const telemetry: Benchmark = {
  name: "telemetry",
  title: "telemetry: questions, folding and retention",
  async run(report) {
    const store = await openStore(scratch("telemetry.db"), migrations);
    const begun = performance.now();
    const sessions = await fillRuns(store, systemClock.now(), runs);
    const seconds = Math.round((performance.now() - begun) / 1000);
    report.note(
      `${runs} runs of ${5 * series} listeners, schedules and jobs over ${days} days, written in ${seconds} s`,
    );
    await fold(report, store);
    await ask(report, store, sessions);
    await retain(report, store);
    await store.close();
  },
};

async function fold(report: Report, store: Store): Promise<void> {
  const stall = watchLoop();
  const begun = performance.now();
  await foldRuns(store);
  const perSecond = Math.round(runs / ((performance.now() - begun) / 1000));
  report.note(`folding: ${perSecond} runs a second`);
  report.times("folding: how long the loop was held", stall.stop(), { goalMsMax: stallMsMax });
}

async function ask(report: Report, store: Store, sessions: { first: string; last: string }): Promise<void> {
  const reads = telemetryReads(store, "default");
  const list = (filter: RunFilter) => (): Promise<unknown> => listRuns(store, "default", filter);
  const questions: Readonly<Record<string, () => Promise<unknown>>> = {
    "cards, 24 hours": () => reads.overview({ since: "24h" }),
    "cards, 7 days": () => reads.overview({ since: "7d" }),
    "cards of a session": () => reads.overview({ session: sessions.last }),
    "summaries of listeners, 24 hours": () => reads.summaries({ kind: "listener", since: "24h", limit: 500 }),
    "summaries of schedules, 24 hours": () => reads.summaries({ kind: "schedule", since: "24h", limit: 500 }),
    "summaries of all, 24 hours": () => reads.summaries({ since: "24h", limit: 500 }),
    "summaries of all, 7 days": () => reads.summaries({ since: "7d", limit: 500 }),
    "summaries of a session": () => reads.summaries({ session: sessions.first, limit: 500 }),
    "health of apps, 24 hours": () => reads.apps({ since: "24h" }),
    "health of apps, 7 days": () => reads.apps({ since: "7d" }),
    "errors, 24 hours": () => reads.errors({ since: "24h" }),
    "errors, 7 days": () => reads.errors({ since: "7d" }),
    "the slowest, 24 hours": () => reads.slow({ since: "24h" }),
    "the slowest, 7 days": () => reads.slow({ since: "7d" }),
    "the slowest of a session": () => reads.slow({ session: sessions.first }),
    "line, one hour by minute": () => reads.buckets({ since: "1h" }),
    "line, 24 hours": () => reads.buckets({ since: "24h" }),
    "line, 7 days by hour": () => reads.buckets({ since: "7d", by: "hour" }),
    "line of one listener, 7 days by hour": () => reads.buckets({ name: "listener-7", since: "7d", by: "hour" }),
    activity: list({}),
    "activity of the app": list({ app: "home" }),
    "activity of jobs": list({ kind: "job" }),
    "the latest errors": list({ status: "error" }),
    "the runs of a listener": list({ kind: "listener", name: "listener-7" }),
    "the runs of a schedule": list({ kind: "schedule", name: "schedule-7" }),
    "the runs of a job by name": list({ name: "job-7" }),
    "the runs of one hour, days ago": list({ since: "100h", until: "99h" }),
    "the runs of a session": list({ session: sessions.first }),
    logs: () => reads.logs({}),
    warnings: () => reads.logs({ level: "warn" }),
    metrics: () => readCounters(store, "default"),
  };
  for (const [what, question] of Object.entries(questions)) {
    const times: number[] = [];
    let cpuMs = 0;
    for (let round = 0; round < 12; round++) {
      const [begun, cpu] = [performance.now(), process.cpuUsage()];
      await question();
      if (round < 2) continue;
      times.push(performance.now() - begun);
      const { user, system } = process.cpuUsage(cpu);
      cpuMs += (user + system) / 1000 / 10;
    }
    // Where others are at work, what a question itself costs is its share of the processor.
    report.times(`${what} (CPU ${cpuMs.toFixed(1)} ms)`, times, { goalMsMax: queryMsMax });
  }
}

// Another writer that comes every few milliseconds, as handlers and workers do.
async function retain(report: Report, store: Store): Promise<void> {
  const waits: number[] = [];
  let done = false;
  const writer = (async () => {
    while (!done) {
      const begun = performance.now();
      await store.write((tx) => tx.run(rawSql("update daybook_run_fold set folded_seq = folded_seq")));
      waits.push(performance.now() - begun);
      await systemClock.sleep(2);
    }
  })();
  // What each slice itself costs the thread that has the writer, its flush to disk and what others take from it apart.
  const held: number[] = [];
  const write: Store["write"] = (unit, options) =>
    store.write(async (tx) => {
      const from = process.threadCpuUsage();
      const answer = await unit(tx);
      const { user, system } = process.threadCpuUsage(from);
      held.push((user + system) / 1000);
      return answer;
    }, options);
  const begun = performance.now();
  const by = (days: number): number => systemClock.now() - days * 86_400_000;
  const gone = await retainTelemetry(
    { ...store, write },
    {
      tenant: null,
      runsBy: by(limits.runDays),
      logsBy: by(limits.logDays),
      rollupsBy: by(limits.rollupDays),
      bytesMax: limits.telemetryBytesMax,
      dryRun: false,
    },
  );
  done = true;
  await writer;
  const seconds = Math.round((performance.now() - begun) / 1000);
  report.note(`retention: ${gone.runs} runs and ${gone.logs} lines in ${gone.slices} slices, ${seconds} s`);
  report.times("retention: CPU of a slice", held, { goalMsMax: stallMsMax });
  report.note(`the costliest slice took ${Math.round(Math.max(...held))} ms, its flush to disk apart`);
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
