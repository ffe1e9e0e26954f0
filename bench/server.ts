// What HTTP costs: the same requests to a server on a book and to a bare one whose handlers do nothing, one after the other. What readers
// that take nothing cost who writes, and how long the loop is held while reports of many runs are read: DAYBOOK_BENCH_RUNS says of how
// many, and the goal is for five million.
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report, Rounds } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { connections, heldBy, load, startServer, type Load, type Server } from "./server/load.ts";
import { openSlowReaders } from "./server/slow-readers.ts";

const rounds = 3;
const slowReaders = 200;
const runs = Number(process.env["DAYBOOK_BENCH_RUNS"] ?? 200_000);
const heldMsMax = 50;

export const server: Benchmark = {
  name: "server",
  title: `HTTP, ${connections} connections: a job is enqueued on disk, and a job is shown`,
  async run(report) {
    await askBoth(report);
    await readReports(report);
  },
};

async function askBoth(report: Report): Promise<void> {
  const ours = await startServer("ours", scratch("server.db"));
  const bare = await startServer("bare");
  try {
    const post: Loads = { ours: [], reference: [] };
    const get: Loads = { ours: [], reference: [] };
    const read: Loads = { ours: [], reference: [] };
    for (const each of [bare, ours]) await load(each, "POST", 2);
    for (let round = 0; round < rounds; round++) {
      post.reference.push(await load(bare, "POST"));
      post.ours.push(await load(ours, "POST"));
      get.reference.push(await load(bare, "GET"));
      get.ours.push(await load(ours, "GET"));
      const end = await openSlowReaders(ours, slowReaders);
      read.ours.push(await load(ours, "POST"));
      end();
      read.reference.push(await load(ours, "POST"));
    }
    const bareOne = "a handler that does nothing";
    report.rates(`POST /jobs, durable ÷ ${bareOne}`, { ...rates(post), goalMin: 0.4 });
    report.costs("the same, processor time of the server", costs(post));
    report.rates(`GET /jobs/{id} ÷ ${bareOne}`, { ...rates(get), goalMin: 0.6 });
    report.costs("the same, processor time of the server", costs(get));
    report.rates(`POST /jobs beside ${slowReaders} readers that take nothing ÷ without them`, rates(read));
    report.costs("the same, processor time of the server", costs(read));
  } finally {
    ours.child.kill();
    bare.child.kill();
  }
}

type Loads = { readonly ours: Load[]; readonly reference: Load[] };

function rates({ ours, reference }: Loads): Rounds {
  const of = (all: readonly Load[]): number[] => all.map(({ perSecond }) => perSecond);
  return { ours: of(ours), reference: of(reference) };
}

function costs({ ours, reference }: Loads): Rounds {
  const of = (all: readonly Load[]): number[] => all.map(({ usEach }) => usEach);
  return { ours: of(ours), reference: of(reference) };
}

const reports = [
  "/run-overview?since=7d",
  "/run-summaries?since=7d&limit=500",
  "/slow-runs?since=7d",
  "/runs?limit=500",
  "/metrics",
];

async function readReports(report: Report): Promise<void> {
  const ours = await startServer("ours", scratch("reports.db"), runs);
  try {
    await readAll(ours);
    await heldBy(ours);
    for (let round = 0; round < 3 * rounds; round++) await Promise.all([readAll(ours), readAll(ours), readAll(ours)]);
    const { heldMs, mostMs, workedMs } = await heldBy(ours);
    report.times(`the loop was held while reports of ${runs} runs were read, p99`, [heldMs], { goalMsMax: heldMsMax });
    report.note(
      `at most it was held for ${mostMs.toFixed(1)} ms, and worked for ${workedMs.toFixed(1)} ms of processor time`,
    );
  } finally {
    ours.child.kill();
  }
}

async function readAll({ port, token }: Server): Promise<void> {
  for (const path of reports) {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`);
  }
}
