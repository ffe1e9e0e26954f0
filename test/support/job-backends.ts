// PostgreSQL ends connections of living processes at random: a failover, an operator, a proxy that restarts.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/id.ts";
import { open, seededRandom } from "../../src/index.ts";
import { startJobProcess, type End } from "./job-process.ts";
import { assertNothingLost, assertOneAtATime, assertRecorded, readStory, untilAllEnded } from "./job-story.ts";
import { cleanup, testFolder, bookUrl } from "./open-test.ts";

export async function endBackendsUnderLoad(t: TestContext, size: { readonly ended: number }): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const url = await bookUrl(t, "postgres");
  const folder = testFolder(t);
  const operator = new Client({ connectionString: url });
  await operator.connect();
  cleanup(t, () => operator.end());
  const workers = [1, 2].map(() => startJobProcess(t, { url, folder, work: { concurrency: 4 } }));
  const producers = [1, 2].map(() => startJobProcess(t, { url, folder }));
  // A process that ends says why, which is more than its session can tell.
  const gone: End[] = [];
  for (const child of [...workers, ...producers]) void child.ended.then((end) => gone.push(end));
  const sessions = await Promise.all(
    [...workers, ...producers].map(async (child) => (await child.hear("open")).sessionId),
  );
  // Who loses its connection while it starts a worker is told so, and it is its program that ends or tries again.
  await Promise.all(workers.map((child) => child.hear("working")));
  for (const child of producers) child.tell({ do: "produce", callers: 4, keys: 2 });

  for (let ended = 0; ended < size.ended;) {
    await systemClock.sleep(random() * 60);
    const { rows } = await operator.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = current_database() and application_name = 'daybook' order by pid",
    );
    const pid = rows[Math.floor(random() * rows.length)]?.pid;
    if (pid === undefined) continue;
    const { rowCount } = await operator.query("select from pg_terminate_backend($1) ended where ended", [pid]);
    ended += rowCount ?? 0;
  }
  const rested = await Promise.all(producers.map(async (child) => (child.tell({ do: "rest" }), child.hear("rested"))));
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  await untilAllEnded(book);

  assert.deepEqual(gone, []);
  const story = await readStory(book, folder);
  const acknowledged = assertNothingLost(story);
  assertRecorded(story, new Set());
  assertOneAtATime(story, workers);
  assert.deepEqual(await book.doctor(), []);
  const alive = await book.sessions.list();
  for (const id of sessions) assert.equal(alive.items.find((each) => each.id === id)?.status, "running");
  const said = workers.flatMap((child) =>
    child.said.filter((each) => each.said === "superseded" || each.said === "lost"),
  );
  assert.deepEqual(said, []);
  const unknown = rested.flatMap(({ refused }) => refused);
  t.diagnostic(`${size.ended} backends ended, ${acknowledged} acknowledged jobs, ${unknown.length} refused or unknown`);
}
