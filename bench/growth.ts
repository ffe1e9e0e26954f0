// What is in a book but cannot run costs nothing: claiming and settling a job beside a million others, against the same in a
// small book.
import { job, open, type Book } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import { blocked, delayed, fill, finished, keyed, lanes, unhosted, type Fill } from "./growth/fill.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { withDatabase, withFile } from "./harness/place.ts";
import { sampleParams, type Params } from "./harness/queue.ts";
import type { Report } from "./harness/report.ts";
import { timeDrain } from "./harness/time-queue.ts";

const many = Number(process.env["DAYBOOK_BENCH_ROWS"] ?? 1_000_000);
const few = 10_000;
// A part of the name of those that are measured; all unless it is said.
const only = process.env["DAYBOOK_BENCH_GROWTH"] ?? "";
const manyTenants = 1000;
// As many lanes as one claim looks at, so that both sides take from as many and only the number of those that wait differs.
const fewTenants = 20;

type Place = <T>(work: (place: string) => Promise<T>) => Promise<T>;
type Enqueue = (book: Book, jobs: number) => Promise<void>;
type Growth = {
  readonly what: string;
  readonly fills: readonly Fill[];
  /** How the measured jobs get into both books; plain jobs of one tenant unless it is said. */
  readonly enqueue?: Enqueue;
  readonly enqueueFew?: Enqueue;
  /** How many jobs more than the others get, so that no lane is empty at the first look. */
  readonly factor?: number;
  readonly goalMax: number;
};

const growths: readonly Growth[] = [
  { what: `${inWords(many)} finished`, fills: [finished(many)], goalMax: 1.2 },
  { what: `${inWords(many)} delayed in front`, fills: [finished(few), delayed(many)], goalMax: 1.5 },
  { what: `${inWords(many)} blocked by one key in front`, fills: [finished(few), ...blocked(many)], goalMax: 1.5 },
  { what: `${inWords(many)} unhosted in front`, fills: [finished(few), unhosted(many)], goalMax: 1.5 },
  { what: `${inWords(10_000)} empty lanes`, fills: [finished(few), lanes(10_000)], goalMax: 1.2 },
  {
    what: `of ${inWords(manyTenants)} tenants ÷ of ${fewTenants}`,
    fills: [finished(few)],
    goalMax: 1.2,
    enqueue: enqueueFor(manyTenants),
    enqueueFew: enqueueFor(fewTenants),
    factor: 5,
  },
  {
    what: `keyed, beside ${inWords(many)} keyed`,
    fills: [finished(few), keyed(many)],
    goalMax: 1.2,
    enqueue: enqueueKeyed,
    enqueueFew: enqueueKeyed,
  },
];

export const growth: Benchmark = {
  name: "growth",
  title: "claim and settle of a job beside many others, against a book with 10,000 finished ones",
  async run(report) {
    report.note("SQLite, durability full");
    await measureAll(report, withFile);
    if (process.env["DAYBOOK_BENCH_POSTGRES"] === undefined) {
      return report.note("PostgreSQL is measured too when DAYBOOK_BENCH_POSTGRES is set: filling it takes minutes");
    }
    const server = await durablePostgres();
    try {
      report.note("PostgreSQL, fsync on");
      await measureAll(report, (work) => withDatabase(server.url, work));
    } finally {
      await server.stop();
    }
  },
};

async function measureAll(report: Report, place: Place): Promise<void> {
  for (const each of growths.filter(({ what }) => what.includes(only))) {
    // Both are new each time: a book in which much has been measured has dead rows that the other one has not.
    await place((small) =>
      place(async (big) => {
        const reference = await openFilled(small, [finished(few)]);
        const book = await openFilled(big, each.fills);
        await compareBooks(report, each, { book, reference });
        await book.close();
        await reference.close();
      }),
    );
  }
}

let begin: () => void = () => {};
const noop = job("noop", { run: async (_params: Params) => begin() });
const limited = job("keyed", {
  limit: { key: ({ n }: Params) => `measured-${n}`, concurrency: 1 },
  run: async (_params: Params) => begin(),
});

async function openFilled(place: string, fills: readonly Fill[]): Promise<Book> {
  const book = await open(place, { use: [noop, limited] });
  await book.jobs.enqueue(noop, sampleParams(0));
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
  await fill(place, fills);
  const findings = await book.doctor();
  if (findings.length > 0) throw new Error(`no engine leaves a book like this: ${JSON.stringify(findings)}`);
  return book;
}

const sizes = [
  { places: 100, jobs: 2000 },
  { places: 1, jobs: 200 },
];
const rounds = 9;
const warmUpRounds = 1;

async function compareBooks(
  report: Report,
  { what, enqueue = enqueuePlain, enqueueFew = enqueuePlain, factor = 1, goalMax }: Growth,
  { book, reference }: { readonly book: Book; readonly reference: Book },
): Promise<void> {
  for (const { places, jobs: most } of sizes) {
    const jobs = most * factor;
    const ours: number[] = [];
    const other: number[] = [];
    const sides = [
      async () => ours.push(await costOf(book, enqueue, places, jobs)),
      async () => other.push(await costOf(reference, enqueueFew, places, jobs)),
    ];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side();
    }
    report.costs(`${what}, concurrency ${places}`, {
      ours: ours.slice(warmUpRounds),
      reference: other.slice(warmUpRounds),
      goalMax,
    });
  }
}

/** Microseconds for each job, from the first that begins until all are on disk as done. */
async function costOf(book: Book, enqueue: Enqueue, places: number, jobs: number): Promise<number> {
  await enqueue(book, jobs);
  const queue = {
    async work(concurrency: number, handler: () => void) {
      begin = handler;
      const worker = await book.startWorker({ concurrency });
      return { settled: () => worker.idle(), stop: () => worker.stop() };
    },
  };
  return 1e6 / (await timeDrain(queue, places, jobs));
}

async function enqueuePlain(book: Book, jobs: number): Promise<void> {
  await book.jobs.enqueueMany(noop, paramsOf(jobs));
}

function enqueueFor(tenants: number): Enqueue {
  return async (book, jobs) => {
    const enqueue = (n: number): Promise<unknown> =>
      book.tenant(`tenant-${n}`).jobs.enqueueMany(noop, paramsOf(jobs / tenants));
    await Promise.all(Array.from({ length: tenants }, (_, n) => enqueue(n)));
  };
}

async function enqueueKeyed(book: Book, jobs: number): Promise<void> {
  await book.jobs.enqueueMany(limited, paramsOf(jobs), ({ n }) => ({ key: `measured-${n}` }));
}

function paramsOf(jobs: number): Params[] {
  return Array.from({ length: jobs }, (_, n) => sampleParams(n));
}

function inWords(count: number): string {
  return count.toLocaleString("en");
}
