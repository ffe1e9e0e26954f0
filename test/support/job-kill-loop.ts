// Producers and workers under load, killed at random moments and started again.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/id.ts";
import { open, seededRandom, type Book } from "../../src/index.ts";
import { readLedgers } from "./job-ledger.ts";
import type { JobProcess } from "./job-process.ts";
import { assertNothingLost, assertOneAtATime, assertRecorded, readStory, untilAllEnded } from "./job-story.ts";
import { supervise } from "./job-supervisor.ts";
import { cleanup, testFolder, bookUrl, type Backend } from "./open-test.ts";

export async function killUnderLoad(
  t: TestContext,
  backend: Backend,
  size: { readonly kills: number; readonly workers: number; readonly producers: number },
): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const url = await bookUrl(t, backend);
  const folder = testFolder(t);
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  const producing = new Set<JobProcess>();
  const supervisor = supervise(t, [
    { count: size.workers, start: { url, folder, work: { concurrency: 4 } } },
    {
      count: size.producers,
      start: { url, folder },
      ready(child) {
        child.tell({ do: "produce", callers: 3, keys: 2, mixed: true });
        producing.add(child);
        void child.ended.then(() => producing.delete(child));
      },
    },
  ]);

  let kills = 0;
  while (kills < size.kills) {
    await systemClock.sleep(random() * 300);
    const { running } = supervisor;
    const victim = running[Math.floor(random() * running.length)];
    // One that is only just starting would be killed before it did anything; now and then that is worth a kill.
    if (victim === undefined || (!isUnderWay(victim, producing) && random() < 0.9)) continue;
    kills++;
    await victim.kill();
  }
  // And on until one of them hit a handler at work, else nothing would have been proved: on a busy machine a moment that is
  // chosen blindly rarely does.
  for (let working = atWork(folder); supervisor.gone.isDisjointFrom(working); working = atWork(folder)) {
    const victim = supervisor.running.find(({ pid }) => working.has(pid));
    if (victim === undefined) await systemClock.sleep(2);
    else await victim.kill();
    if (victim !== undefined) kills++;
  }
  await Promise.all([...producing].map(async (child) => (child.tell({ do: "rest" }), child.hear("rested"))));
  const restedMs = systemClock.monotonic();
  await untilAllEnded(book);
  const drainedMs = systemClock.monotonic() - restedMs;

  assert.deepEqual(supervisor.failures, []);
  const story = await readStory(book, folder);
  const acknowledged = assertNothingLost(story);
  assertRecorded(story, supervisor.gone);
  const keyed = assertOneAtATime(story, supervisor.all);
  const around = await assertAround(book);
  assert.deepEqual(await book.doctor(), []);
  const superseded = supervisor.all.flatMap(({ said }) => said.filter((each) => each.said === "superseded"));
  assert.deepEqual(superseded, []);
  const lost = story.runs.filter(({ status }) => status === "lost").length;
  t.diagnostic(
    `${kills} kills, ${acknowledged} acknowledged jobs (${keyed} starts with a key), ` +
      `${story.runs.length} runs, ${lost} of them lost; the rest was done ${drainedMs.toFixed(0)} ms after the last`,
  );
  t.diagnostic(JSON.stringify(around));
  assert.ok(acknowledged > 0 && keyed > 0, "nothing was under load");
}

/** The processes that began something and have not ended it, whether they live or not. */
function atWork(folder: string): Set<number> {
  const entries = readLedgers(folder);
  const ended = new Set(entries.filter(({ deed }) => deed === "end").map(({ runId }) => runId));
  return new Set(entries.filter(({ deed, runId }) => deed === "start" && !ended.has(runId)).map(({ pid }) => pid));
}

function isUnderWay(child: JobProcess, producing: ReadonlySet<JobProcess>): boolean {
  const sign = producing.has(child) ? "open" : "began";
  return child.said.some(({ said }) => said === sign);
}

/** What was built around the jobs has ended as well: the groups as completed, and nobody holds a queue who is gone. */
async function assertAround(book: Book): Promise<{ groups: number; steps: number; direct: number }> {
  const [row] = await book.read(
    (tx) => tx.sql<{ groups: number; completed: number; steps: number; direct: number; held: number }>`select
      (select count(*) from daybook_job_group) as groups,
      (select count(*) from daybook_job_group where status = 'completed') as completed,
      (select count(*) from daybook_job_step) as steps,
      (select count(*) from daybook_job_now where origin = 'direct') as direct,
      (select count(*) from daybook_reservation reservation join daybook_session session on session.seq = reservation.session_seq
        where reservation.status = 'active' and session.status <> 'running') as held`,
  );
  const { groups, completed, steps, direct, held } = row ?? { groups: 0, completed: 0, steps: 0, direct: 0, held: 0 };
  assert.deepEqual([completed, held], [groups, 0]);
  const wrong = await book.read(
    (tx) => tx.sql`select job.id from daybook_job_now job join daybook_run run on run.id = job.run_id
      where job.name = 'staged' and job.status = 'completed' and run.result <> '3'`,
  );
  assert.deepEqual(wrong, []);
  return { groups, steps, direct };
}
