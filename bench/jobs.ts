// The life of a job that does nothing: enqueued, claimed, run, settled, with a run kept for it.
import { job, open, type Book } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import { openBare, settleWal } from "./harness/bare-sqlite.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { inFlight, measure, oneByOne, type Load } from "./harness/load.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { bareCycle, bareEnqueue, prepareBareBook } from "./jobs/bare-jobs.ts";

let ran = 0;
const nothing = job("nothing", {
  run: (params: { n: number }) => {
    ran++;
    return params.n;
  },
});
const backlog = 150_000;

export const jobs: Benchmark = {
  name: "jobs",
  title: "jobs that do nothing, each with its run, on disk",
  async run(report) {
    await compareSqlite(report);
    await measurePostgres(report);
  },
};

async function compareSqlite(report: Report): Promise<void> {
  report.note("SQLite, durability full");
  const db = openBare(scratch("bare-jobs.db"), "full");
  for (const text of settleWal) db.exec(text);
  prepareBareBook(db);
  const book = await open(scratch("jobs.db"), { use: [nothing] });
  const enqueue = (): Promise<unknown> => book.jobs.enqueue(nothing, { n: 1 });
  await report.compare("enqueue, 100 in flight", inFlight(100, enqueue), [
    { what: "bare batches of 100", load: bareEnqueue(db, 100), goalMin: 0.7 },
  ]);
  await report.compare("enqueue, one by one", oneByOne(enqueue), [{ what: "bare", load: bareEnqueue(db, 1) }]);
  await report.compare("enqueueMany of 1,000", bulk(book), [
    { what: "bare batches of 1,000", load: bareEnqueue(db, 1000) },
  ]);
  await fill(book, bareEnqueue(db, 1000));
  for (const concurrency of [1, 10, 100]) {
    await report.compare(`full cycle, concurrency ${concurrency}`, cycle(book, concurrency), [
      { what: "bare, the same statements", load: bareCycle(db), ...(concurrency === 10 ? { goalMin: 0.7 } : {}) },
    ]);
  }
  report.note(`RSS after this: ${Math.round(process.memoryUsage().rss / 1e6)} MB`);
  db.close();
  await book.close();
  await measureStart(report, scratch("start.db"), "SQLite", { goalMsMax: 1 });
}

function bulk(book: Book): Load {
  const many = Array.from({ length: 1000 }, (_, n) => ({ n }));
  return async (slice) => {
    let done = 0;
    while (!slice.over()) done += (await book.jobs.enqueueMany(nothing, many)).length;
    return done;
  };
}

async function fill(book: Book, bare: Load): Promise<void> {
  const many = Array.from({ length: 1000 }, (_, n) => ({ n }));
  for (let made = 0; made < backlog; made += many.length) await book.jobs.enqueueMany(nothing, many);
  let rows = 0;
  while (rows < backlog) rows += await bare({ over: once() });
}

function once(): () => boolean {
  let asked = false;
  return () => asked || !(asked = true);
}

/** Counts what has run once stop() says that all of it is settled and on disk. */
function cycle(book: Book, concurrency: number): Load {
  return async (slice) => {
    const before = ran;
    const worker = await book.startWorker({ concurrency });
    while (!slice.over()) await new Promise((resolve) => setTimeout(resolve, 5));
    await worker.stop();
    return ran - before;
  };
}

async function measureStart(
  report: Report,
  url: string,
  where: string,
  options: { goalMsMax?: number },
): Promise<void> {
  const waits: number[] = [];
  const ping = job("ping", { run: ({ at }: { at: number }) => void waits.push(performance.now() - at) });
  const book = await open(url, { use: [ping] });
  if (!url.startsWith("postgres")) growWal(url);
  const worker = await book.startWorker();
  for (let n = 0; n < 500; n++) {
    await book.jobs.enqueue(ping, { at: performance.now() });
    await worker.idle();
  }
  await book.close();
  report.times(`enqueue → handler start, idle, ${where}`, waits.slice(50), options);
}

/** A book that has been in use writes over its WAL; on a fresh file each sync is dearer. */
function growWal(path: string): void {
  const db = openBare(path, "full");
  for (const text of settleWal) db.exec(text);
  db.close();
}

async function measurePostgres(report: Report): Promise<void> {
  const server = await durablePostgres();
  try {
    report.note("PostgreSQL, fsync on (per second)");
    const book = await open(server.url, { use: [nothing] });
    const rate = async (what: string, load: Load): Promise<void> =>
      report.note(`  ${what}: ${Math.round(await measure(load, 2000))}/s`);
    await rate(
      "enqueue, 100 in flight",
      inFlight(100, () => book.jobs.enqueue(nothing, { n: 1 })),
    );
    await rate("enqueueMany of 1,000", bulk(book));
    await rate("full cycle, concurrency 10", cycle(book, 10));
    await rate("full cycle, concurrency 100", cycle(book, 100));
    await book.close();
    await measureStart(report, server.url, "PostgreSQL", {});
  } finally {
    await server.stop();
  }
}
