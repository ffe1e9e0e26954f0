// The life of an event that three durable listeners hear: published, delivered, acknowledged; against as many plain jobs.
import { event, job, listener, open, type Book } from "../src/index.ts";
import { roomsOf } from "../src/open/rooms.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import { tamper } from "../test/support/tamper.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { inFlight, type Load, type Slice } from "./harness/load.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";

const Said = event<{ n: number }>("talk.said");
const listeners = ["one", "two", "three"].map((name) => listener(name, { on: Said, run: () => undefined }));
const nothing = job("nothing", { run: (_params: { n: number }) => undefined });

const roundEvents = 1000;
const finishedDeliveries = Number(process.env["DAYBOOK_BENCH_ROWS"] ?? 1_000_000);

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
  await addFinished(book, Math.ceil(finishedDeliveries / 3));
  report.note(`with ${had?.n} finished deliveries, and then with ${finishedDeliveries} more`);
  report.times(`${roundEvents} events to three listeners`, await rounds(book), { referenceMs: few });
}

/** Events that each of the three listeners has heard, as publishing and settling leave them. */
async function addFinished(book: Book, events: number): Promise<void> {
  await tamper(book, async (tx) => {
    const [last] = await tx.sql<{ event: number; job: number }>`select (select max(seq) from daybook_event) as event,
      (select max(seq) from daybook_job) as job`;
    const { event = 0, job: made = 0 } = last ?? {};
    await tx.sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${events})
      insert into daybook_event (seq, tenant_id, id, topic, payload, priority, published_at, available_at, root_event_id,
        chain_depth, deliveries)
      select ${event} + i, 'default', 'old-' || i, 'talk.said', '{"n":1}', 0, ${tx.now}, ${tx.now}, 'old-' || i, 0, 3 from n`;
    await tx.sql`with recursive n (i) as (select 0 union all select i + 1 from n where i < ${3 * events - 1})
      insert into daybook_job (seq, tenant_id, id, lane_seq, name, priority, created_at, params, attempts, losses_max, kind,
        kind_seq)
      select ${made} + 1 + i, 'default', 'old-' || i, (select min(seq) from daybook_lane),
        'listener:' || case i % 3 when 0 then 'one' when 1 then 'two' else 'three' end, 0, ${tx.now},
        '{"event":"old-' || (i / 3 + 1) || '"}', 10, 3, 'delivery', ${event} + 1 + i / 3 from n`;
    await tx.sql`insert into daybook_run (tenant_id, id, kind, name, job_seq, session_seq, attempt, started_at, ended_at,
        duration_ms, status)
      select tenant_id, 'run-' || seq, kind, name, seq, (select max(seq) from daybook_session), 1, created_at, created_at, 1,
        'success' from daybook_job where seq > ${made}`;
  });
  // By the time that a book has so many it has counted them, so that is not measured.
  await roomsOf(book).rollUp.fold();
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
