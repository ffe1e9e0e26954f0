// The life of an event that three durable listeners hear: published, delivered, acknowledged; against as many plain jobs.
import { event, job, listener, open, type Book } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { inFlight, type Load, type Slice } from "./harness/load.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";

const Said = event<{ n: number }>("talk.said");
const listeners = ["one", "two", "three"].map((name) => listener(name, { on: Said, run: () => undefined }));
const nothing = job("nothing", { run: (_params: { n: number }) => undefined });

const roundEvents = 1000;
const finishedDeliveries = 1_000_000;

export const events: Benchmark = {
  name: "events",
  title: "one event, three durable listeners: published, delivered, acknowledged, on disk",
  async run(report) {
    const book = await open(scratch("events.db"), { use: [...listeners, nothing] });
    report.note("SQLite, durability full");
    await compareCycle(report, book, 0.8);
    await growth(report, book);
    await book.close();
    const server = await durablePostgres();
    const remote = await open(server.url, { use: [...listeners, nothing] });
    report.note("PostgreSQL");
    await compareCycle(report, remote);
    await remote.close();
    await server.stop();
  },
};

async function compareCycle(report: Report, book: Book, goalMin?: number): Promise<void> {
  const publish = inFlight(100, () => book.events.publish(Said, { n: 1 }));
  const enqueue = inFlight(100, () => book.jobs.enqueue(nothing, { n: 1 }));
  const deliveries = cycle(book, async () => 3 * (await publish(upTo(roundEvents))));
  const jobs = cycle(book, () => enqueue(upTo(3 * roundEvents)));
  await report.compare("publish, 100 in flight, and three deliveries each", deliveries, [
    { what: "as many jobs, enqueued and run", load: jobs, ...(goalMin === undefined ? {} : { goalMin }) },
  ]);
}

/** Makes a round, works until it is done, and again until the time is up. Counts what was run. */
function cycle(book: Book, make: () => number | Promise<number>): Load {
  return async (slice) => {
    let done = 0;
    while (!slice.over()) {
      done += await make();
      await workOff(book);
    }
    return done;
  };
}

async function workOff(book: Book): Promise<void> {
  const worker = await book.startWorker({ concurrency: 100 });
  await worker.idle();
  await worker.stop();
}

/** A slice that is over after so many operations. */
function upTo(count: number): Slice {
  let left = count;
  return { over: () => --left < 0 };
}

/** What a round costs with few, and with a million, finished deliveries in the book. */
async function growth(report: Report, book: Book): Promise<void> {
  const few = await rounds(book);
  const [had] = await book.read(
    (tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_job where kind = 'delivery'`,
  );
  await book.write(
    (
      tx,
    ) => tx.sql`with recursive more (n) as (select 1 union all select n + 1 from more where n < ${finishedDeliveries})
      insert into daybook_job (tenant_id, id, lane_seq, name, status, priority, position, created_at, available_at, params,
        origin, attempt, attempts, losses, losses_max, alone, run_id, finished_at, kind, kind_seq)
      select 'default', 'old-' || n, (select min(seq) from daybook_lane), 'listener:one', 'completed', 100, n, 0, 0, '{}',
        'enqueued', 1, 10, 0, 3, 0, 'old-' || n, 1, 'delivery', -n from more`,
  );
  report.note(`with ${had?.n} finished deliveries, and then with ${finishedDeliveries} more`);
  report.times(`${roundEvents} events to three listeners`, await rounds(book), { referenceMs: few });
}

async function rounds(book: Book): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const begun = performance.now();
    await inFlight(100, () => book.events.publish(Said, { n: 1 }))(upTo(roundEvents));
    await workOff(book);
    times.push(performance.now() - begun);
  }
  return times;
}
