import type { Report } from "./report.ts";

/** One table of figures: `npm run bench -- <name>` prints it. It measures, and judges nothing by failing. */
export type Benchmark = {
  readonly name: string;
  readonly title: string;
  run(report: Report): Promise<void>;
};
