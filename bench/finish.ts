// What `finish` costs: the effects of a job and its end in one commit, on PostgreSQL in one serializable transaction each. The
// reference is the same on SQLite, where many finishes share a commit. What a server and its driver cost anybody is measured
// beside it: transactions that insert the row and end the run, and do nothing else.
import { Client } from "pg";
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
      const ours: number[] = [];
      const reference: number[] = [];
      for (let round = 0; round < rounds; round++) {
        reference.push(await withDatabase(server.url, bareMicroseconds));
        ours.push(await withDatabase(server.url, (url) => microseconds(url, {})));
      }
      report.costs("finish ÷ bare transactions that do nothing but this, on PostgreSQL", { ours, reference });
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

const bareConnections = 8;

const bareEnd = `with v as (delete from daybook_line where seq = $1 and run_id = $2 and started_at is not null
    returning seq, run_id, session_seq, started_at)
  insert into daybook_run (tenant_id, kind, name, job_seq, attempt, id, session_seq, started_at, ended_at, duration_ms, status)
  select job.tenant_id, 'job', job.name, job.seq, job.attempt, v.run_id, v.session_seq, v.started_at, v.started_at, 1, 'success'
  from v join daybook_job job on job.seq = v.seq`;

/** The same by hand, on as many connections as a book has. The jobs have been claimed beforehand, all at once. */
async function bareMicroseconds(url: string): Promise<number> {
  await using book = await open(url, { use: [job("charge", { run: () => undefined })] });
  await book.write((tx) => tx.sql`create table charge (job_id text not null)`);
  await book.jobs.enqueueMany(
    "charge",
    Array.from({ length: finishes }, () => ({})),
  );
  const clients = Array.from({ length: bareConnections }, () => new Client({ connectionString: url, pipeline: true }));
  for (const client of clients) {
    await client.connect();
    await client.query(
      "set search_path to daybook; set plan_cache_mode = force_generic_plan; set enable_seqscan = off",
    );
  }
  const { rows } = await clients[0]!.query<{ seq: string; run_id: string }>(`update daybook_line
    set status = 'running', run_id = gen_random_uuid()::text, started_at = 1,
      session_seq = (select max(seq) from daybook_session) returning seq, run_id`);
  const begun = performance.now();
  const left = rows.values();
  await Promise.all(
    clients.map(async (client) => {
      for (const { seq, run_id } of left) {
        await Promise.all([
          client.query("begin isolation level serializable, read write"),
          client.query({ name: "insert", text: "insert into charge (job_id) values ($1)", values: [run_id] }),
        ]);
        await client.query({ name: "end", text: bareEnd, values: [seq, run_id] });
        await client.query("commit");
      }
    }),
  );
  const microseconds = ((performance.now() - begun) * 1000) / finishes;
  for (const client of clients) await client.end();
  return microseconds;
}
