// Processes that are killed at a named point of their path, in the middle of jobs that finish with an effect.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { open, type Book } from "../../src/index.ts";
import { jobKinds } from "./job-kinds.ts";
import { openLedger } from "./job-ledger.ts";
import { startJobProcess } from "./job-process.ts";
import { readStory, untilAllEnded } from "./job-story.ts";
import { cleanup, testFolder, bookUrl, type Backend } from "./open-test.ts";

/** Every kill point of the product, in the order in which a job meets them. */
export const killPoints = [
  "storage.commit",
  "storage.committed",
  "jobs.settled",
  "jobs.claimed",
  "jobs.step.ran",
  "jobs.step.kept",
  "jobs.finish.worked",
  "jobs.finish.settled",
  "jobs.finish.committed",
] as const;

/** Those that only a command meets. */
export const commandKillPoints = ["command.begun", "command.started"] as const;

export type KillPoint = { readonly name: (typeof killPoints)[number]; readonly pass: number };

const jobsEach = 3;
const atOnce = 3;

/** Kills one process at each of the points, lets another finish the work, and checks that every effect happened once.
 *  Returns the points that were not reached. */
export async function dieAt(t: TestContext, backend: Backend, points: readonly KillPoint[]): Promise<KillPoint[]> {
  const url = await bookUrl(t, backend);
  const folder = testFolder(t);
  const kinds = jobKinds({
    ledger: openLedger(folder),
    began: () => undefined,
    aborted: () => undefined,
    gate: () => Promise.resolve(),
  });
  const book = await open(url, { use: Object.values(kinds) });
  cleanup(t, () => book.close());
  await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
  for (const point of points) {
    const names = Array.from({ length: jobsEach }, (_, index) => ({ name: `${queueOf(point)}/${index}` }));
    await book.jobs.enqueueMany(kinds.effect, names, { queue: queueOf(point) });
  }

  const missed: KillPoint[] = [];
  const left = [...points];
  const kill = async (): Promise<void> => {
    for (let point = left.shift(); point !== undefined; point = left.shift()) {
      if (!(await dies(t, { url, folder, point, book }))) missed.push(point);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, kill));
  await book.startWorker();
  await untilAllEnded(book);

  const effects = await book.read(
    (tx) => tx.sql<{ name: string; n: number }>`
    select name, count(*) as n from effect group by name`,
  );
  assert.equal(effects.length, points.length * jobsEach);
  assert.deepEqual(
    effects.filter(({ n }) => n !== 1),
    [],
    "an effect happened more than once",
  );
  const { jobs, runs } = await readStory(book, folder);
  assert.equal(jobs.filter(({ name, status }) => name === "effect" && status === "completed").length, effects.length);
  assert.ok(runs.every(({ status }) => status === "success" || status === "lost"));
  assert.deepEqual(await book.doctor(), []);
  return missed;
}

export const queueOf = ({ name, pass }: KillPoint): string => `${name}-${pass}`;

type Victim = { readonly url: string; readonly folder: string; readonly point: KillPoint; readonly book: Book };

/** Starts a process that works on the queue of the point; false when it got by without passing it. */
export async function dies(t: TestContext, { url, folder, point, book }: Victim): Promise<boolean> {
  const queue = queueOf(point);
  // The last of its queue says that the point was passed by: nothing comes after it.
  await book.jobs.enqueue("held", {}, { queue, priority: -1 });
  const child = startJobProcess(
    t,
    { url, folder, work: { queues: [queue], concurrency: 1 } },
    { env: { DAYBOOK_CRASH_AT: `${point.name}:${point.pass}` } },
  );
  const { signal, stderr } = await Promise.race([
    child.ended,
    child.hear("began").then(
      () => ({ signal: "none", stderr: "" }),
      () => child.ended,
    ),
  ]);
  await child.kill();
  assert.ok(signal === "SIGKILL" || signal === "none", stderr);
  return signal === "SIGKILL";
}
