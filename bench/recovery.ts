// What a kill costs: a process with ten jobs under way is ended by SIGKILL, and the next one works off all hundred. Beside it a
// process that finds a hundred jobs of a book in which nothing happened.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { open } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { withDatabase, withFile } from "./harness/place.ts";
import type { Report } from "./harness/report.ts";
import { jobMs, places, work, type Told } from "./recovery/work.ts";

const jobs = 100;
const rounds = 3;

type Place = <T>(task: (place: string) => Promise<T>) => Promise<T>;

export const recovery: Benchmark = {
  name: "recovery",
  title: `${jobs} jobs of ${jobMs} ms at concurrency ${places}, after a kill and without one`,
  async run(report) {
    await measure(report, "SQLite", withFile);
    const server = await durablePostgres();
    try {
      await measure(report, "PostgreSQL", (task) => withDatabase(server.url, task));
    } finally {
      await server.stop();
    }
  },
};

async function measure(report: Report, backend: string, place: Place): Promise<void> {
  const ours: number[] = [];
  const reference: number[] = [];
  const sides = [
    async () => ours.push(await place((at) => timeWork(at, true))),
    async () => reference.push(await place((at) => timeWork(at, false))),
  ];
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side();
  }
  report.waits(`${backend}: after a kill ÷ without`, { ours, reference, goalMax: 1.3 });
}

/** Milliseconds from the open of the book until all jobs are on disk as done. */
async function timeWork(place: string, killed: boolean): Promise<number> {
  const book = await open(place, { use: [work] });
  await book.jobs.enqueueMany(
    work,
    Array.from({ length: jobs }, () => ({})),
  );
  await book.close();
  if (killed) await killAtWork(place);
  const { ms } = await told(start(place), "done");
  await assertAllDone(place, killed ? places : 0);
  return ms;
}

/** Ends a process that has begun as many jobs as it has places. */
async function killAtWork(place: string): Promise<void> {
  const child = start(place);
  await told(child, "full");
  child.kill("SIGKILL");
  await once(child, "exit");
}

function start(place: string): ChildProcess {
  return fork(fileURLToPath(import.meta.resolve("./recovery/work.ts")), [place]);
}

function told<Said extends Told["said"]>(child: ChildProcess, said: Said): Promise<Extract<Told, { said: Said }>> {
  return new Promise((resolve, reject) => {
    child.on("message", (message) => {
      if ((message as Told).said === said) resolve(message as Extract<Told, { said: Said }>);
    });
    child.once("exit", (code) => reject(new Error(`the process ended with ${code} before it said "${said}"`)));
  });
}

async function assertAllDone(place: string, lost: number): Promise<void> {
  const book = await open(place, { worker: false });
  const { items } = await book.runs.list({ kind: "job", limit: 500 });
  await book.close();
  const count = (status: string): number => items.filter((run) => run.status === status).length;
  const seen = `${count("success")} done, ${count("lost")} lost`;
  if (seen !== `${jobs} done, ${lost} lost`) throw new Error(`the book tells of another story: ${seen}`);
}
