// Many processes do everything at once on one PostgreSQL book. Some are killed and started anew, and connections are ended
// under all of them.
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/id.ts";
import { open, seededRandom, type Book } from "../../src/index.ts";
import { readLedgers } from "./job-ledger.ts";
import { untilAllEnded } from "./job-story.ts";
import type { StressSaid, StressStart } from "./job-stress-program.ts";
import { cleanup, testFolder, bookUrl } from "./open-test.ts";
import { until } from "./session-row.ts";

export type StressSize = { readonly processes: number; readonly ms: number; readonly killEveryMs: number };

export async function stress(t: TestContext, { processes, ms, killEveryMs }: StressSize): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const url = await bookUrl(t, "postgres");
  const folder = testFolder(t);
  const operator = new Client({ connectionString: url });
  await operator.connect();
  cleanup(t, () => operator.end());
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  await book.write((tx) => tx.sql`create table effect (job_id text not null)`);
  const startOne = (): Promise<Stressed> =>
    startStressed(t, { url, folder, seed: Math.floor(random() * 2 ** 32), callers: 4 });
  const running = await Promise.all(Array.from({ length: processes }, startOne));

  const untilMs = systemClock.monotonic() + ms;
  let [kills, ended, nextKillMs] = [0, 0, systemClock.monotonic() + killEveryMs];
  while (systemClock.monotonic() < untilMs) {
    await systemClock.sleep(random() * 400);
    ended += await endBackend(operator, random);
    if (systemClock.monotonic() < nextKillMs) continue;
    nextKillMs += killEveryMs;
    const index = Math.floor(random() * running.length);
    await running[index]?.kill();
    kills++;
    running[index] = await startOne();
  }
  const rested = await Promise.all(running.map((child) => child.rest()));
  // Whoever was killed may have left a queue closed.
  for (const queue of ["a", "b", "c"]) {
    await book.queues.resume(queue);
    await book.queues.limit(queue, { concurrency: null, rate: null });
  }
  await book.jobs.resume("plain");
  await untilAllEnded(book, { ms: 60_000 });
  await Promise.all(running.map((child) => child.kill()));

  const acknowledged = await assertEachEndedOnce(book, folder);
  assert.deepEqual(await book.doctor(), []);
  for (const what of ["done", "refused"] as const)
    t.diagnostic(`${what}: ${JSON.stringify(sum(rested.map((r) => r[what])))}`);
  const deadlocks = await countDeadlocks(operator, book);
  t.diagnostic(`${acknowledged} acknowledged jobs, ${kills} kills, ${ended} backends ended, ${deadlocks} deadlocks`);
  assert.ok(acknowledged > 0, "nothing was under load");
  assert.equal(deadlocks, 0, "transactions waited for each other");
}

type Rested = Extract<StressSaid, { said: "rested" }>;
type Stressed = { kill(): Promise<void>; rest(): Promise<Rested> };

async function startStressed(t: TestContext, start: StressStart): Promise<Stressed> {
  t.signal.throwIfAborted(); // nobody would end it
  const program = fileURLToPath(import.meta.resolve("./job-stress-program.ts"));
  const child = fork(program, [JSON.stringify(start)], {
    execArgv: [], // Not --test.
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] },
  });
  const exited = once(child, "exit");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  cleanup(t, kill);
  await hear(child, exited, "open");
  return {
    kill,
    async rest() {
      child.send("rest");
      return hear(child, exited, "rested");
    },
  };
}

async function hear<Kind extends StressSaid["said"]>(
  child: ChildProcess,
  exited: Promise<unknown>,
  kind: Kind,
): Promise<Extract<StressSaid, { said: Kind }>> {
  const said = once(child, "message") as Promise<[StressSaid]>;
  const first = await Promise.race([said, exited.then(() => undefined)]);
  assert.equal(first?.[0].said, kind, "the process ended by itself");
  return first?.[0] as Extract<StressSaid, { said: Kind }>;
}

async function endBackend(operator: Client, random: () => number): Promise<number> {
  const { rows } = await operator.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and application_name = 'daybook' order by pid",
  );
  const pid = rows[Math.floor(random() * rows.length)]?.pid ?? 0;
  const { rowCount } = await operator.query("select from pg_terminate_backend($1) ended where ended", [pid]);
  return rowCount ?? 0;
}

/** Everything that was acknowledged is in the book and has ended, whatever became of it, and no job ran twice. */
async function assertEachEndedOnce(book: Book, folder: string): Promise<number> {
  const acknowledged = new Set(readLedgers(folder).map(({ jobId }) => jobId));
  const ended = await book.read(
    (tx) => tx.sql<{ id: string }>`select id from daybook_job_now
    where status in ('completed', 'failed', 'cancelled', 'skipped')`,
  );
  const known = new Set(ended.map(({ id }) => id));
  assert.deepEqual([...acknowledged.difference(known)], [], "acknowledged, and neither ended nor in line");
  assert.equal(known.size, ended.length, "a job is in the book twice");
  const twice = await book.read(
    (tx) => tx.sql`select job_seq from daybook_run where job_seq is not null
    group by job_seq having count(*) > 1`,
  );
  assert.deepEqual(twice, [], "a job has two runs");
  const effects = await book.read((tx) => tx.sql`select job_id from effect group by job_id having count(*) > 1`);
  assert.deepEqual(effects, [], "an effect happened twice");
  return acknowledged.size;
}

/** Backends say what they met when they end, so it is asked once they are gone. */
async function countDeadlocks(operator: Client, book: Book): Promise<number> {
  await book.close();
  await until("all backends are gone", async () => {
    const { rows } = await operator.query(
      "select 1 from pg_stat_activity where datname = current_database() and application_name = 'daybook'",
    );
    return rows.length === 0 || undefined;
  });
  const { rows } = await operator.query<{ deadlocks: string }>(
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return Number(rows[0]?.deadlocks);
}

function sum(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const each of counts) for (const [name, n] of Object.entries(each)) total[name] = (total[name] ?? 0) + n;
  return total;
}
