// What `finish` costs: the effects of a job and its end in one commit, on PostgreSQL in one serializable transaction each. The
// reference is the same on SQLite, where many finishes share a commit.
import { job, open } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { describePostgres, withDatabase, withFile } from "./harness/place.ts";

const finishes = 5000;
const concurrency = 100;
const rounds = 3;
const goalMax = 5;

type Settings = { readonly concurrency?: number; readonly key?: boolean; readonly goalMax?: number };

const kinds: Readonly<Record<string, Settings>> = {
  "a job": { goalMax },
  "a job with a key": { key: true, goalMax },
  "a job of which 50 may run at once": { concurrency: 50, goalMax },
};

export const finish: Benchmark = {
  name: "finish",
  title: "finish on PostgreSQL against SQLite",
  async run(report) {
    const server = await durablePostgres();
    try {
      report.note(await describePostgres(server.url));
      report.note(
        `${finishes} finishes that insert a row each, ${concurrency} at a time, SQLite and PostgreSQL in turn`,
      );
      for (const [what, settings] of Object.entries(kinds)) {
        const ours: number[] = [];
        const reference: number[] = [];
        for (let round = 0; round < rounds; round++) {
          reference.push(await withFile((path) => microseconds(path, settings)));
          ours.push(await withDatabase(server.url, (url) => microseconds(url, settings)));
        }
        report.costs(`finish of ${what}`, { ours, reference, goalMax: settings.goalMax ?? goalMax });
      }
    } finally {
      await server.stop();
    }
  },
};

/** For each finish, from the start of a worker until all is done. */
async function microseconds(place: string, settings: Settings): Promise<number> {
  const charge = job("charge", {
    ...(settings.concurrency === undefined ? {} : { concurrency: settings.concurrency }),
    run: (_params, { finish: together, job: { id } }) =>
      together((tx) => tx.sql`insert into charge (job_id) values (${id})`.then(() => undefined)),
  });
  await using book = await open(place, { use: [charge] });
  await book.write((tx) => tx.sql`create table charge (job_id text not null)`);
  const each = Array.from({ length: finishes }, (_, n) => n);
  if (settings.key === true) await Promise.all(each.map((n) => book.jobs.enqueue(charge, {}, { key: `charge ${n}` })));
  else await book.jobs.enqueueMany(charge, each);
  const begun = performance.now();
  const worker = await book.startWorker({ concurrency });
  await worker.idle();
  return ((performance.now() - begun) * 1000) / finishes;
}
