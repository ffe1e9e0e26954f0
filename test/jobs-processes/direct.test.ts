// Direct work whose owner is killed, by a real SIGKILL: the queue goes on in its order, and nothing runs twice.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { open, type Book } from "../../src/index.ts";
import { ofOthers } from "../support/job-kinds.ts";
import { readLedgers } from "../support/job-ledger.ts";
import { startJobProcess, type JobProcess } from "../support/job-process.ts";
import type { Start } from "../support/job-program.ts";
import { untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, testFolder, bookUrl, type Backend } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

type Scene = {
  readonly book: Book;
  readonly folder: string;
  start(more?: Partial<Start>, env?: Record<string, string>): JobProcess;
};

async function prepare(t: TestContext, backend: Backend): Promise<Scene> {
  const [url, folder] = [await bookUrl(t, backend), testFolder(t)];
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
  return { book, folder, start: (more = {}, env = {}) => startJobProcess(t, { url, folder, ...more }, { env }) };
}

const line = ["first", "second", "third"];

async function standInLine(book: Book, queue: string): Promise<void> {
  for (const key of line) await book.jobs.enqueue(ofOthers("neighbour"), { key: `${queue}/${key}` }, { queue });
}

/** What the handlers of this queue's line noted, in the order in which they began. */
function begunIn(folder: string, queue: string): string[] {
  const starts = readLedgers(folder).filter(({ deed, key }) => deed === "start" && key.startsWith(`${queue}/`));
  return starts.map(({ key }) => key.slice(queue.length + 1));
}

async function statusesIn(book: Book, queue: string): Promise<string[]> {
  const { items } = await book.jobs.list({ queue, name: "neighbour" });
  return items.map(({ status }) => status);
}

async function assertFreed(book: Book): Promise<void> {
  const all = await book.reservations.list({ all: true });
  assert.deepEqual([...new Set(all.map(({ status }) => status))], ["expired"]);
  assert.deepEqual(await book.doctor(), []);
}

for (const backend of backends) {
  describe(backend, () => {
    test("an owner killed while its direct work runs: the queue goes on in its order, nothing runs twice", async (t) => {
      const { book, folder, start } = await prepare(t, backend);
      const owner = start();
      owner.tell({ do: "runNow", name: "held", queue: "q" });
      const { jobId } = await owner.hear("began");
      await standInLine(book, "q");
      const worker = start({ work: { concurrency: 1 } });
      await worker.hear("working");
      // It claims what it may claim, and that is nothing of the held queue.
      const elsewhere = await book.jobs.enqueue("noop", {}, { queue: "elsewhere" });
      await until("the worker works", async () => (await book.jobs.get(elsewhere.id)).finishedAt ?? undefined);
      const [held] = await book.reservations.list();
      assert.deepEqual([held?.queue, await statusesIn(book, "q")], ["q", ["queued", "queued", "queued"]]);

      await owner.kill();
      await untilAllEnded(book);

      assert.deepEqual(begunIn(folder, "q"), line);
      const direct = await book.jobs.get(jobId);
      assert.deepEqual([direct.status, direct.run?.status, direct.retriedBy], ["failed", "lost", null]);
      assert.equal(readLedgers(folder).filter((each) => each.jobId === jobId).length, 1);
      await assertFreed(book);
    });

    test("an owner killed while it waits for its turn: its work never runs, and the queue is as it was", async (t) => {
      const { book, folder, start } = await prepare(t, backend);
      await book.jobs.enqueue("held", {}, { queue: "q" });
      const worker = start({ work: { concurrency: 1 } });
      await worker.hear("began");
      await standInLine(book, "q");
      const owner = start();
      owner.tell({ do: "runNow", name: "neighbour", params: { key: "q/direct" }, queue: "q" });
      await until("the queue is held", async () => (await book.reservations.list())[0]);

      await owner.kill();
      await until("it is free again", async () => {
        await book.sessions.look();
        return (await book.reservations.list()).length === 0 ? true : undefined;
      });
      worker.tell({ do: "go" });
      await untilAllEnded(book);

      assert.deepEqual(begunIn(folder, "q"), line);
      const { items } = await book.jobs.list({ queue: "q", status: "cancelled" });
      assert.deepEqual(
        items.map(({ origin, run }) => [origin, run]),
        [["direct", null]],
      );
      await assertFreed(book);
    });

    test("an owner killed at any point of its direct work leaves its effect with its completion, or neither", async (t) => {
      const { book, folder, start } = await prepare(t, backend);
      const points = ["jobs.claimed:1", "jobs.step.kept:1", "jobs.finish.worked:1", "jobs.finish.settled:1"];
      // From before there is a reservation until after its end.
      points.push("jobs.finish.committed:1", ...[3, 4, 5, 6, 7, 8].map((pass) => `storage.committed:${pass}`));
      for (const point of points) await standInLine(book, point);

      const left = [...points];
      const kill = async (): Promise<void> => {
        for (let point = left.shift(); point !== undefined; point = left.shift()) {
          const owner = start({}, { DAYBOOK_CRASH_AT: point });
          owner.tell({ do: "runNow", name: "effect", params: { name: point }, queue: point });
          const killed = owner.ended.then(({ signal, stderr }) => signal ?? stderr);
          const how = await Promise.race([
            killed,
            owner.hear("ran").then(
              ({ refused }) => refused ?? "it ran",
              () => killed,
            ),
          ]);
          // How many commits there are is a matter of who shares one; with the last of them it is simply done.
          const done = point.startsWith("storage.") && how === "it ran";
          assert.ok(done || how === "SIGKILL", `${point}: ${how}`);
          await owner.kill();
        }
      };
      await Promise.all([kill(), kill(), kill()]);
      const worker = start({ work: { concurrency: 1 } });
      await worker.hear("working");
      await untilAllEnded(book);

      for (const point of points) {
        const { items } = await book.jobs.list({ queue: point, name: "effect" });
        const effects = await book.read((tx) => tx.sql`select name from effect where name = ${point}`);
        assert.ok(items.length <= 1, `${point}: it was made again`);
        assert.equal(effects.length, items.filter(({ status }) => status === "completed").length, point);
        assert.deepEqual(begunIn(folder, point), line, point);
      }
      assert.deepEqual(await book.reservations.list(), []);
      assert.deepEqual(await book.doctor(), []);
    });

    test("of twenty who reserve at once in four processes one is granted", async (t) => {
      const { book, start } = await prepare(t, backend);
      const processes = Array.from({ length: 4 }, () => start());
      await Promise.all(processes.map((each) => each.hear("open")));

      for (const each of processes) each.tell({ do: "reserve", queue: "q", times: 5 });
      const answers = await Promise.all(processes.map((each) => each.hear("reserved")));

      assert.equal(
        answers.reduce((sum, { granted }) => sum + granted, 0),
        1,
      );
      const refused = answers.flatMap((each) => each.refused);
      assert.equal(refused.length, 19);
      for (const each of refused) assert.match(each, /queue "q" is reserved by session/);
      assert.equal((await book.reservations.list({ all: true })).length, 1);
    });
  });
}
