// npm run bench, or npm run bench -- storage reads
//
// Prints what this machine does beside what the issues ask for. A slow machine is not an error: the exit code is 0
// whether or not the goals are met.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { benchmarks } from "./benchmarks.ts";
import { describeMachine } from "./harness/machine.ts";
import type { Verdict } from "./harness/report.ts";

const known = Object.keys(benchmarks);
const named = process.argv.slice(2);
const unknown = named.find((name) => !known.includes(name));

if (unknown === undefined) await runAll(named.length > 0 ? named : known);
else {
  console.error(`there is no benchmark "${unknown}": ${known.join(", ")}`);
  process.exitCode = 2;
}

async function runAll(names: readonly string[]): Promise<void> {
  console.log(describeMachine());
  const total: Verdict = { met: 0, missed: 0 };
  for (const name of names) {
    const verdict = await runInOwnProcess(name);
    if (verdict === undefined) return;
    total.met += verdict.met;
    total.missed += verdict.missed;
  }
  console.log(
    `\n${total.met} of ${total.met + total.missed} goals met. docs/performance.md says what the figures mean.`,
  );
}

// A process each: the memory that is printed is this benchmark's own, and no other has shaped the compiled code.
async function runInOwnProcess(name: string): Promise<Verdict | undefined> {
  const child = fork(fileURLToPath(import.meta.resolve("./harness/run-one.ts")), [name]);
  let verdict: Verdict | undefined;
  child.on("message", (message) => (verdict = message as Verdict));
  const [code] = (await once(child, "exit")) as [number | null];
  if (code === 0) return verdict;
  console.error(`the benchmark ${name} ended with ${code}`);
  process.exitCode = 1;
  return undefined;
}
