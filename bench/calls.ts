// How fast calls that are due are sent to a server on this machine, beside a bare pool of connections; how long another tenant
// waits while one tenant's host is dead; and what scheduled calls cost while none is due.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import { open, type Book } from "../src/index.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";

const callsCount = 5000;
const inFlight = 50;
const rounds = 3;
const scheduledCount = 100_000;
const fairMsMax = 1000;

export const calls: Benchmark = {
  name: "calls",
  title: `${callsCount} calls to a local server, ${inFlight} in flight`,
  async run(report) {
    const server = fork(fileURLToPath(import.meta.resolve("./calls/server.ts")), { execArgv: [] });
    try {
      const [{ port }] = (await once(server, "message")) as [{ port: number }];
      const url = `http://127.0.0.1:${port}`;
      await sendAll(report, url);
      await beside(report, url);
      await idle(report);
    } finally {
      server.kill();
    }
  },
};

async function sendAll(report: Report, url: string): Promise<void> {
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push(await bareRound(url));
    ours.push(await callRound(url, round));
  }
  report.note(`the reference is a loop on a bare undici Pool; ${callsCount} calls a round`);
  report.times("due calls, until every end is on disk", ours, { referenceMs: bare, goalMin: 0.5 });
  const perSecond = (ms: readonly number[]): string => ((callsCount / Math.min(...ms)) * 1000).toFixed(0);
  report.note(`best round: ${perSecond(ours)} calls/s; the bare pool ${perSecond(bare)} requests/s`);
}

async function bareRound(url: string): Promise<number> {
  const pool = new Pool(url, { connections: inFlight, pipelining: 1 });
  const begun = performance.now();
  let left = callsCount;
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const { body } = await pool.request({ path: "/", method: "POST", body: '{"orderId":"o-17"}' });
      await body.text();
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  const took = performance.now() - begun;
  await pool.close();
  return took;
}

function openCalls(path: string): Promise<Book> {
  return open(path, {
    // The worker bounds how many are in flight; the host's own limit is not what is measured.
    calls: { key: Buffer.alloc(32, 1), allow: ["127.0.0.1"], perHost: { concurrency: 4 * inFlight } },
  });
}

async function callRound(url: string, round: number): Promise<number> {
  await using book = await openCalls(scratch(`calls-${round}`));
  await submitMany(book, callsCount, url);
  const begun = performance.now();
  const worker = await book.startWorker({ concurrency: inFlight });
  await worker.idle();
  const took = performance.now() - begun;
  const [row] = await book.read(
    (tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_call where status = 'succeeded'`,
  );
  if (row?.n !== callsCount) throw new Error(`${row?.n} calls succeeded, not ${callsCount}`);
  return took;
}

async function submitMany(book: Book, count: number, url: string, delay?: string): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    await book.write(async (tx) => {
      for (let index = from; index < Math.min(count, from + 500); index++) {
        await tx.calls.submit({ url, json: { orderId: "o-17" }, ...(delay === undefined ? {} : { in: delay }) });
      }
    });
  }
}

/** A thousand calls to a host that never answers, of one tenant; another one's ten are due. */
async function beside(report: Report, url: string): Promise<void> {
  await using book = await open(scratch("calls-beside"), { calls: { allow: ["127.0.0.1"] } });
  const [a, b] = [book.tenant("a"), book.tenant("b")];
  await submitMany(a, 1000, `${url}/hang`);
  const worker = await book.startWorker();
  const starts: number[] = [];
  for (let index = 0; index < 10; index++) {
    const { id, dueAt } = await b.calls.submit({ url });
    for (;;) {
      const { startedAt } = await b.calls.get(id);
      if (startedAt !== null) {
        starts.push(startedAt - dueAt);
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  report.times("start of another tenant's call beside 1000 to a dead host", starts, { goalMsMax: fairMsMax });
  if (Math.max(...starts) >= fairMsMax) report.note(`the slowest of them waited ${Math.max(...starts)} ms`);
  for (const { id } of (await a.calls.list({ status: "running" })).items) await a.calls.cancel(id);
  await worker.stop();
}

/** What many that are due tomorrow cost: the time to claim one that is due now, and the processor while nothing is. */
async function idle(report: Report): Promise<void> {
  await using book = await openCalls(scratch("calls-idle"));
  await submitMany(book, scheduledCount, "https://api.example.com/", "1d");
  const worker = await book.startWorker();
  await worker.idle();
  const before = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const { user, system } = process.cpuUsage(before);
  report.note(
    `${scheduledCount} scheduled calls, idle for 2 s: ${((user + system) / 1000).toFixed(0)} ms of processor time`,
  );
  await worker.stop();
}
