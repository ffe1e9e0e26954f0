// Daybook on SQLite beside a bare script, both of them in this process and with the same durability.
import { open, job, type Book } from "../../src/index.ts";
import { openBare, settleWal } from "../harness/bare-sqlite.ts";
import { inFlight, oneByOne, type Load } from "../harness/load.ts";
import { sampleParams, type Params } from "../harness/queue.ts";
import type { Report } from "../harness/report.ts";
import { scratch } from "../harness/scratch.ts";
import { enqueueAll, timeDrain } from "../harness/time-queue.ts";
import { openBareBook, type BareBook } from "./bare-jobs.ts";
import { openQueue } from "./book.ts";

const noop = job("noop", { run: (_params: Params) => {} });

export async function compareWithBare(report: Report): Promise<void> {
  await compareEnqueue(report);
  await compareCycles(report);
}

async function compareEnqueue(report: Report): Promise<void> {
  const { bare, close } = prepare("bare-enqueue.db");
  const book = await open(scratch("enqueue.db"), { use: [noop] });
  const enqueue = (): Promise<unknown> => book.jobs.enqueue(noop, sampleParams(1));
  await report.compare("enqueue, 100 in flight", inFlight(100, enqueue), [
    { what: "bare batches of 100", load: bare.enqueue(100), goalMin: 0.75 },
  ]);
  await report.compare("enqueue, one by one", oneByOne(enqueue), [{ what: "bare", load: bare.enqueue(1) }]);
  await report.compare("enqueueMany of 1,000", bulk(book), [
    { what: "bare batches of 1,000", load: bare.enqueue(1000) },
  ]);
  await book.close();
  close();
}

function bulk(book: Book): Load {
  const many = Array.from({ length: 1000 }, (_, n) => sampleParams(n));
  return async (slice) => {
    let done = 0;
    while (!slice.over()) done += (await book.jobs.enqueueMany(noop, many)).length;
    return done;
  };
}

/** About a fifth of a second each. */
const cycles = [
  { places: 100, jobs: 8000, goalMin: 0.75 },
  { places: 10, jobs: 4000, goalMin: 0.7 },
  { places: 1, jobs: 800, goalMin: 0.6 },
];
const rounds = 9;
const warmUpRounds = 2;

async function compareCycles(report: Report): Promise<void> {
  const { bare, close } = prepare("bare-cycle.db");
  const queue = await openQueue(scratch("cycle.db"));
  for (const { places, jobs, goalMin } of cycles) {
    const ours: number[] = [];
    const reference: number[] = [];
    const sides = [
      async () => {
        await enqueueAll(queue, jobs);
        ours.push(await timeDrain(queue, places, jobs));
      },
      async () => {
        bare.fill(jobs);
        reference.push(bare.drain(places));
      },
    ];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side();
    }
    report.rates(`full cycle, concurrency ${places} ÷ bare batches of ${places}`, {
      ours: ours.slice(warmUpRounds),
      reference: reference.slice(warmUpRounds),
      goalMin,
    });
  }
  await queue.close();
  close();
}

function prepare(name: string): { bare: BareBook; close(): void } {
  const db = openBare(scratch(name), "full");
  for (const text of settleWal) db.exec(text);
  return { bare: openBareBook(db), close: () => db.close() };
}
