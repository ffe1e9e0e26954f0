// How long a program waits for its book: again and again in one process, and once in a fresh one.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { open as openBook } from "../src/index.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { buildPackage, type Package } from "./open/build-package.ts";
import type { OpenTimes } from "./open/open-once.ts";

const run = promisify(execFile);
const openMsMax = 50;
const helpMsMax = 100;

export const open: Benchmark = {
  name: "open",
  title: "opening an existing book, starting the command line",
  async run(report) {
    const path = scratch("open.db");
    await (await openBook(path)).close();
    await timeSameProcess(report, path);
    const source = { index: file("../src/index.ts"), main: file("../src/cli/main.ts") };
    await timeFreshProcess(report, path, { ...source, what: "from source, types stripped at start", goals: false });
    // The goals are for what users install.
    await timeFreshProcess(report, path, { ...(await buildPackage()), what: "as published", goals: true });
  },
};

async function timeSameProcess(report: Report, path: string): Promise<void> {
  const opened: number[] = [];
  const closed: number[] = [];
  for (let count = 0; count < 40; count++) {
    const begun = performance.now();
    const book = await openBook(path);
    const ready = performance.now();
    await book.close();
    opened.push(ready - begun);
    closed.push(performance.now() - ready);
  }
  report.times("open(), the same process again and again", opened, { goalMsMax: openMsMax });
  report.times("close() right after it", closed);
}

type Fresh = Package & { readonly what: string; readonly goals: boolean };

async function timeFreshProcess(report: Report, path: string, { index, main, what, goals }: Fresh): Promise<void> {
  report.note(`a fresh process each time, ${what}`);
  const fresh: OpenTimes[] = [];
  const helpMs: number[] = [];
  const bareMs: number[] = [];
  const hasCli = existsSync(main);
  for (let count = 0; count < 11; count++) {
    const { stdout } = await run(process.execPath, [file("./open/open-once.ts"), path, index]);
    fresh.push(JSON.parse(stdout) as OpenTimes);
    if (hasCli) helpMs.push(await timeNode([main, "--help"]));
    bareMs.push(await timeNode(["--eval", "0"]));
  }
  const openMs = fresh.map((each) => each.openMs);
  report.times(
    "import of the library",
    fresh.map((each) => each.importMs),
  );
  report.times("open()", openMs, goals ? { goalMsMax: openMsMax } : {});
  if (hasCli) {
    const options = goals ? { goalMsMax: helpMsMax } : {};
    report.times("daybook --help; the reference is node alone", helpMs, { ...options, referenceMs: bareMs });
  } else report.note("daybook --help: skipped, there is no command line yet");
}

async function timeNode(args: readonly string[]): Promise<number> {
  const begun = performance.now();
  await run(process.execPath, args);
  return performance.now() - begun;
}

function file(path: string): string {
  return fileURLToPath(import.meta.resolve(path));
}
