import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open, type Book } from "../../src/index.ts";
import { dies, queueOf, type KillPoint } from "../support/job-kill-points.ts";
import { jobKinds } from "../support/job-kinds.ts";
import { openLedger, readLedgers } from "../support/job-ledger.ts";
import { startJobProcess } from "../support/job-process.ts";
import { untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, testFolder, bookUrl } from "../support/open-test.ts";

const kindsIn = (folder: string): ReturnType<typeof jobKinds> =>
  jobKinds({
    ledger: openLedger(folder),
    began: () => undefined,
    aborted: () => undefined,
    gate: () => Promise.resolve(),
  });

for (const backend of backends) {
  describe(backend, () => {
    test("killed between any two of its steps, a job goes on behind the last one it kept", async (t) => {
      const url = await bookUrl(t, backend);
      const folder = testFolder(t);
      const kinds = kindsIn(folder);
      const book = await open(url, { use: Object.values(kinds) });
      cleanup(t, () => book.close());
      await createEffects(book);
      // Before its result is on disk, and after.
      const points = (["jobs.step.ran", "jobs.step.kept"] as const).flatMap((name) =>
        [1, 2, 3, 4, 5].map((pass) => ({ name, pass })),
      );
      for (const point of points) {
        await book.jobs.enqueue(kinds.stepped, { name: queueOf(point) }, { queue: queueOf(point) });
      }

      const left = [...points];
      const kill = async (): Promise<void> => {
        for (let point = left.shift(); point !== undefined; point = left.shift()) {
          assert.ok(await dies(t, { url, folder, point, book }), queueOf(point));
        }
      };
      await Promise.all([kill(), kill(), kill()]);
      await book.startWorker();
      await untilAllEnded(book);

      for (const point of points) {
        assert.deepEqual(await effectsOf(book, point), ["1", "3", "end"], queueOf(point));
        await assertKept(book, point);
        // What ran and was not kept runs again, and nothing else does.
        const again = point.name === "jobs.step.ran" ? point.pass - 1 : undefined;
        const ran = [0, 2, 4].flatMap((place) => (place === again ? [place, place] : [place]));
        assert.deepEqual(ranOutside(folder, point), ran, queueOf(point));
      }
      assert.deepEqual(await book.doctor(), []);
    });

    test("a result is awaited in another process, also when the one that worked on it is killed", async (t) => {
      const url = await bookUrl(t, backend);
      const folder = testFolder(t);
      const kinds = kindsIn(folder);
      const book = await open(url, { use: Object.values(kinds), worker: false });
      cleanup(t, () => book.close());
      await createEffects(book);
      const held = await book.jobs.enqueue(kinds.held, {});
      const stepped = await book.jobs.enqueue(kinds.stepped, { name: "five" }, { queue: "later" });
      const results = Promise.all([held.result(), book.jobs.result(stepped)]);

      const first = startJobProcess(t, { url, folder, work: {} });
      await first.hear("began");
      await first.kill();
      const second = startJobProcess(t, { url, folder, work: {} });
      assert.notEqual((await second.hear("began")).jobId, held.id);
      second.tell({ do: "go" });

      const [nothing, five] = await results;
      assert.equal(nothing, undefined);
      assert.deepEqual(
        five.map(({ place }) => place),
        [0, 1, 2, 3, 4],
      );
    });
  });
}

async function createEffects(book: Book): Promise<void> {
  await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
}

async function effectsOf(book: Book, point: KillPoint): Promise<string[]> {
  const rows = await book.read((tx) => tx.sql<{ name: string }>`select name from effect order by name`);
  const prefix = `${queueOf(point)}/`;
  return rows.filter(({ name }) => name.startsWith(prefix)).map(({ name }) => name.slice(prefix.length));
}

function ranOutside(folder: string, point: KillPoint): number[] {
  const prefix = `${queueOf(point)}/`;
  return readLedgers(folder)
    .filter(({ key }) => key.startsWith(prefix))
    .map(({ key }) => Number(key.slice(prefix.length)))
    .toSorted((one, other) => one - other);
}

// The job's result is made of what its steps kept, each from the run that kept it.
async function assertKept(book: Book, point: KillPoint): Promise<void> {
  const { items } = await book.jobs.list({ name: "stepped", queue: queueOf(point) });
  const [last, first] = items;
  assert.deepEqual([items.length, first?.run?.status, last?.status], [2, "lost", "completed"]);
  const [row] = await book.read(
    (tx) => tx.sql<{ seq: number }>`select seq from daybook_job_now where id = ${first?.id ?? ""}`,
  );
  const kept = await book.read(
    (tx) => tx.sql<{ run_id: string; result: string }>`
      select run_id, result from daybook_job_step where chain_seq = ${row?.seq ?? 0} order by place`,
  );
  const before = point.name === "jobs.step.ran" ? point.pass - 1 : point.pass;
  const expected = [0, 1, 2, 3, 4].map((place) => ({ runId: (place < before ? first : last)?.runId, place }));
  assert.deepEqual(last?.run?.result, expected, queueOf(point));
  assert.deepEqual(
    kept.map(({ run_id: runId }, place) => ({ runId, place })),
    expected,
  );
  assert.deepEqual(
    kept.map(({ result }) => JSON.parse(result) as unknown),
    expected,
  );
}
