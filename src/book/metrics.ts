// Prometheus text of one tenant, from the book at the moment of the scrape: every process that has it open says the same, so
// scrape one of them. prom-client writes the text; it is loaded when somebody asks.
import { readOpenCounts } from "../jobs/queues.ts";
import type { Store } from "../storage/store.ts";
import { readCounters, readGauges, type Counter } from "../telemetry/report/overview.ts";
import { bucketColumns, durationBounds } from "../telemetry/rollup/series.ts";
import { runStatuses } from "../telemetry/run.ts";

type Labels = Record<string, string>;

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export async function metrics(store: Store, tenant: string, seenBy: string | null): Promise<string> {
  const prom = await import("prom-client");
  const registry = new prom.Registry();
  const counters = await readCounters(store, tenant);
  const gauges = await readGauges(store, tenant, seenBy);
  const labelNames = ["kind", "name", "app", "instance"];

  const runs = new prom.Counter({
    name: "daybook_runs_total",
    help: "Runs that have ended, by how they ended",
    registers: [registry],
    labelNames: [...labelNames, "status"],
  });
  for (const row of counters) {
    for (const status of runStatuses) if (row[status] > 0) runs.inc({ ...labelsOf(row), status }, row[status]);
  }
  const jobs = new prom.Gauge({
    name: "daybook_jobs_open",
    help: "Jobs that have not ended",
    labelNames: ["queue", "status"],
    registers: [registry],
  });
  for (const { queue, status, jobs: count } of await readOpenCounts(store, tenant)) jobs.set({ queue, status }, count);
  const count = (name: string, help: string, value: number | null): void => {
    if (value !== null) new prom.Counter({ name, help, registers: [registry] }).inc(value);
  };
  new prom.Gauge({
    name: "daybook_sessions_running",
    help: "Processes that have the book open",
    registers: [registry],
  }).set(gauges.sessions);
  new prom.Gauge({
    name: "daybook_runs_unfolded",
    help: "Runs that are not in the rollups yet",
    registers: [registry],
  }).set(gauges.unfolded);
  count("daybook_dropped_runs_total", "Runs of live listeners that could not be recorded", gauges.droppedRuns);
  count("daybook_dropped_logs_total", "Log lines that could not be recorded", gauges.droppedLogs);
  count("daybook_dropped_events_total", "Events that found their listener too busy", gauges.droppedEvents);
  count("daybook_evicted_rows_total", "Rows that retention has removed", gauges.evicted);
  return `${await registry.metrics()}${durationText(counters)}`;
}

function labelsOf({ kind, name, app, instance }: Counter): Labels {
  return { kind, name, app, instance: instance < 0 ? "" : String(instance) };
}

// A histogram of prom-client can only observe one duration at a time; these have been counted already.
function durationText(counters: readonly Counter[]): string {
  const metric = "daybook_run_duration_seconds";
  const lines = [`\n# HELP ${metric} How long runs took`, `# TYPE ${metric} histogram`];
  for (const row of counters) {
    const labels = labelsOf(row);
    let sum = 0;
    for (const [index, column] of bucketColumns.entries()) {
      sum += row[column] ?? 0;
      const bound = durationBounds[index];
      lines.push(
        `${metric}_bucket${written({ ...labels, le: bound === undefined ? "+Inf" : String(bound / 1000) })} ${sum}`,
      );
    }
    lines.push(`${metric}_sum${written(labels)} ${row.sum_ms / 1000}`, `${metric}_count${written(labels)} ${row.runs}`);
  }
  return `${lines.join("\n")}\n`;
}

function written(labels: Labels): string {
  const escaped = (text: string): string =>
    text
      .replaceAll("\\", "\\\\")
      .replaceAll("\n", String.raw`\n`)
      .replaceAll('"', String.raw`\"`);
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",")}}`;
}
