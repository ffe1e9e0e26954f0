// What HTTP costs: the same requests to a server on a book and to a bare one whose handlers do nothing, one after the other. What readers
// that take nothing cost who writes, and how long the loop is held while reports of many runs are read: DAYBOOK_BENCH_RUNS says of how
// many, and the goal is for five million.
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { connections, heldBy, load, startServer, type Server } from "./server/load.ts";
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
    const post: Rates = { ours: [], reference: [] };
    const get: Rates = { ours: [], reference: [] };
    const read: Rates = { ours: [], reference: [] };
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
    report.rates("POST /jobs, durable ÷ a handler that does nothing", { ...post, goalMin: 0.4 });
    report.rates("GET /jobs/{id} ÷ a handler that does nothing", { ...get, goalMin: 0.6 });
    report.rates(`POST /jobs beside ${slowReaders} readers that take nothing ÷ without them`, read);
  } finally {
    ours.child.kill();
    bare.child.kill();
  }
}

type Rates = { readonly ours: number[]; readonly reference: number[] };

const reports = [
  "/run-overview?since=7d",
  "/run-summaries?since=7d&limit=500",
  "/slow-runs?since=7d",
  "/runs?limit=1000",
  "/metrics",
];

async function readReports(report: Report): Promise<void> {
  const ours = await startServer("ours", scratch("reports.db"), runs);
  try {
    await readAll(ours);
    await heldBy(ours);
    for (let round = 0; round < 3 * rounds; round++) await Promise.all([readAll(ours), readAll(ours), readAll(ours)]);
    const { heldMs, mostMs } = await heldBy(ours);
    report.times(`the loop was held while reports of ${runs} runs were read, p99`, [heldMs], { goalMsMax: heldMsMax });
    report.note(`at most it was held for ${mostMs.toFixed(1)} ms`);
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
