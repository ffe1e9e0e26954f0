// What one tenant feels of another that uses everything at once: ten thousand queues, slow queries, replays, and a thousand calls to
// a host that never answers. Both share one process and its worker.
import { fork } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { entity, job, listener, open, type Book, type Job } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { median, quantile } from "./harness/median.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { watchLoop } from "./reads/held.ts";

const queues = 10_000;
const calls = 1000;
const events = 1000;
const notes = 50_000;
const rounds = 3;
const aloneMs = 6000;
const besideMs = 10_000;
const p99Max = 3;

const Note = entity("note", { schema: z.object({ id: z.string(), text: z.string() }), key: "id" });
const quick = job("quick", { run: () => undefined });
const hear = listener("hear", { on: "said.*", tenants: "all", run: () => undefined });

export const neighbour: Benchmark = {
  name: "neighbour",
  title: `a tenant beside one with ${queues} queues, slow queries, replays and ${calls} calls to a dead host`,
  async run(report) {
    const server = fork(fileURLToPath(import.meta.resolve("./calls/server.ts")), { execArgv: [] });
    const postgres = await durablePostgres();
    try {
      const [{ port }] = (await once(server, "message")) as [{ port: number }];
      const dead = `http://127.0.0.1:${port}/hang`;
      await measure(report, { name: "SQLite", book: scratch("neighbour.db"), dead });
      await measure(report, { name: "PostgreSQL", book: postgres.url, dead });
    } finally {
      server.kill();
      await postgres.stop();
    }
  },
};

type Place = { readonly name: string; readonly book: string; readonly dead: string };

async function measure(report: Report, { name, book: url, dead }: Place): Promise<void> {
  const started = new Map<number, (at: number) => void>();
  const noted = job<{ n: number }>("noted", { run: ({ n }) => started.get(n)?.(performance.now()) });
  await using book = await open(url, { use: [Note, quick, noted, hear], calls: { allow: ["127.0.0.1"] } });
  const [noisy, quiet] = [book.tenant("noisy"), book.tenant("quiet")];
  await fill(noisy);
  const before = new Date();
  const worker = await book.startWorker({ concurrency: 20 });
  await feel(quiet, { noted, started, forMs: 1000 });
  const found: { readonly alone: Felt; readonly beside: Felt }[] = [];
  let workedMs = 0;
  for (let round = 0; round < rounds; round++) {
    const alone = await feel(quiet, { noted, started, forMs: aloneMs });
    const noise = makeNoise(noisy, dead, before);
    const loop = watchLoop();
    const beside = await feel(quiet, { noted, started, forMs: besideMs });
    workedMs = Math.max(workedMs, loop.stop().workedMs);
    const done = await noise.stop();
    if (round === 0) report.note(`${name}: within ${besideMs / 1000} s the other made ${done}`);
    await worker.idle();
    found.push({ alone, beside });
  }
  for (const verb of ["enqueue", "start", "list"] as const) {
    const pick = (of: (ms: readonly number[]) => number): { ours: number[]; reference: number[] } => ({
      ours: found.map(({ beside }) => of(beside[verb])),
      reference: found.map(({ alone }) => of(alone[verb])),
    });
    const samples = found.reduce((sum, { beside }) => sum + beside[verb].length, 0);
    const what = verb === "start" ? "enqueue to start" : verb;
    report.waits(`${name}: ${what}, p50 ÷ alone`, pick(median));
    report.waits(`${name}: ${what}, p99 ÷ alone (${samples} samples)`, {
      ...pick((ms) => quantile(ms, 0.99)),
      goalMax: p99Max,
    });
  }
  report.note(`${name}: the most processor time between two looks at the loop: ${workedMs.toFixed(0)} ms`);
  report.note(`${name}: the load average at its end: ${loadavg()[0]?.toFixed(1)}`);
  await worker.stop();
}

async function fill(book: Book): Promise<void> {
  for (let from = 0; from < notes; from += 5000) {
    await book.write(async (tx) => {
      for (let n = from; n < from + 5000; n++) await tx.records.put(Note, { id: `${n}`, text: `note ${n}` });
    });
  }
  await book.write(async (tx) => {
    for (let n = 0; n < events; n++) await tx.events.publish("said.once", { n });
  });
}

type Felt = { readonly enqueue: number[]; readonly start: number[]; readonly list: number[] };
type Feeling = {
  readonly noted: Job<{ n: number }>;
  readonly started: Map<number, (at: number) => void>;
  readonly forMs: number;
};

let last = 0;

/** What a tenant that enqueues a job every few milliseconds, waits for its start and looks at its list has to wait. */
async function feel(book: Book, { noted, started, forMs }: Feeling): Promise<Felt> {
  const felt: Felt = { enqueue: [], start: [], list: [] };
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const n = ++last;
    const start = Promise.withResolvers<number>();
    started.set(n, start.resolve);
    const begun = performance.now();
    await book.jobs.enqueue(noted, { n });
    felt.enqueue.push(performance.now() - begun);
    felt.start.push((await start.promise) - begun);
    started.delete(n);
    const asked = performance.now();
    // One that meets its deadline has waited for so long.
    await book.jobs.list({ limit: 50 }).catch(() => undefined);
    felt.list.push(performance.now() - asked);
    await sleep(2);
  }
  return felt;
}

/** The other tenant, until it is stopped; says what it has done. */
function makeNoise(book: Book, dead: string, before: Date): { stop(): Promise<string> } {
  let going = true;
  const counts = { jobs: 0, queries: 0, replays: 0 };
  const again = async (work: () => Promise<unknown>, restMs: number): Promise<void> => {
    while (going) {
      await work().catch(() => undefined); // a read may meet its deadline, a tenant its share
      await sleep(restMs);
    }
  };
  const submit = async (): Promise<void> => {
    for (let from = 0; from < calls && going; from += 50) {
      await Promise.all(Array.from({ length: 50 }, () => book.calls.submit({ url: dead })));
    }
  };
  const params = Array.from({ length: 1000 }, () => ({}));
  const noise = [
    submit(),
    again(async () => {
      await book.jobs.enqueueMany(quick, params, () => ({ queue: `queue-${counts.jobs++ % queues}` }));
    }, 100),
    again(async () => {
      await book.records
        .query(Note)
        .where((note) => note("text").contains("49999"))
        .count();
      counts.queries++;
    }, 1),
    again(async () => {
      await book.records
        .query(Note)
        .orderBy((note) => note("text"), "desc")
        .limit(500)
        .list();
      counts.queries++;
    }, 1),
    again(async () => {
      await book.events.replay({ topic: "said.once", until: before });
      counts.replays++;
    }, 500),
  ];
  return {
    async stop() {
      going = false;
      await Promise.all(noise);
      for (;;) {
        const { items } = await book.calls.list({ status: ["scheduled", "running"], limit: 500 });
        if (items.length === 0) break;
        await Promise.all(items.map(({ id }) => book.calls.cancel(id).catch(() => undefined)));
        await sleep(50);
      }
      return `${counts.jobs} jobs, ${counts.queries} queries and ${counts.replays} replays of ${events} events`;
    },
  };
}
