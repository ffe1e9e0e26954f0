// Runs one benchmark in this process, and tells the parent how many goals were met.
import { benchmarks } from "../benchmarks.ts";
import { createReport, type Verdict } from "./report.ts";

const benchmark = await benchmarks[process.argv[2] ?? ""]?.();
if (benchmark === undefined) throw new Error("bench/run.ts starts this file with the name of a benchmark");
const verdict: Verdict = { met: 0, missed: 0 };
const begun = performance.now();

console.log(`\n${benchmark.name}: ${benchmark.title}`);
await benchmark.run(createReport(verdict));
const seconds = Math.round((performance.now() - begun) / 1000);
const rssMb = Math.round(process.resourceUsage().maxRSS / 1024);
console.log(`  ${seconds} s, at most ${rssMb} MB of memory (RSS), references included`);

process.send?.(verdict);
