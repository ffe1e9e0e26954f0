// The life of a job that does nothing: enqueued, claimed, run, settled, with a run kept for it.
import type { Benchmark } from "./harness/benchmark.ts";
import { compareWithBare } from "./jobs/compare-bare.ts";
import { measureFigures } from "./jobs/figures.ts";

export const jobs: Benchmark = {
  name: "jobs",
  title: "jobs that do nothing, each with its run, on disk",
  async run(report) {
    report.note("SQLite, durability full, beside a bare script of the same statements");
    await compareWithBare(report);
    report.note(`RSS after this: ${Math.round(process.memoryUsage().rss / 1e6)} MB`);
    await measureFigures(report);
  },
};
