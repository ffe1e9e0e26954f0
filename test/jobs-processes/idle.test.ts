// A worker that has nothing to do asks for nothing: it is woken.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../src/core/clock.ts";
import { job, manualClock, open, type Book } from "../../src/index.ts";
import { startWorker } from "../../src/jobs/worker/start-worker.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { startJobProcess, type JobProcess } from "../support/job-process.ts";
import { readStory, untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, testFolder, bookUrl, type Backend } from "../support/open-test.ts";
import { readSession, until, untilBeat } from "../support/session-row.ts";

const lookMs = 1000;
const sweepMsMin = 7500;
const sweepMsMax = 22_500;
const rounds = 10;

async function count(child: JobProcess): Promise<readonly string[]> {
  child.tell({ do: "count" });
  return (await child.hear("counted")).statements;
}

// Most of their time they wait for a heartbeat, so the back ends may do that together.
describe("idle", { concurrency: true }, () => {
  for (const backend of backends) {
    test(`${backend}: an idle worker writes nothing about jobs until its sweep, and reads at most once a second`, async (t) => {
      const clock = manualClock();
      const statements: string[] = [];
      const swept = Promise.withResolvers<void>();
      const fault = (moment: string, text: string): void => {
        if (moment === "after" || !/\bdaybook_(?:job|line)\b/.test(text)) return;
        statements.push(text);
        if (clock.monotonic() >= sweepMsMin && text.includes("timeout_at")) swept.resolve();
      };
      const noop = job("noop", { run: () => undefined });
      const at = await openEngine(t, backend, { clock, waitClock: clock, fault, use: [noop] });
      const worker = await startWorker(at.engine);
      await at.jobs.enqueue(noop, {});
      await worker.idle();
      await untilAllHeard(at, backend);
      await worker.idle();
      assert.ok(statements.splice(0).length > 0);

      await clock.advance(sweepMsMin - 1);
      const idle = statements.splice(0);
      await clock.advance(sweepMsMax - sweepMsMin);
      await swept.promise;
      await worker.stop();

      // On PostgreSQL a notification may get lost, so one read looks; on SQLite the file itself tells.
      const looks = backend === "postgres" ? Math.floor((sweepMsMin - 1) / lookMs) : 0;
      assert.equal(idle.length, looks);
      assert.ok(
        idle.every((text) => look.test(text)),
        idle.join("\n"),
      );
    });

    test(`${backend}: idle processes do not keep each other busy, and wake for what another enqueues`, async (t) => {
      const url = await bookUrl(t, backend);
      const folder = testFolder(t);
      const book = await open(url, { worker: false });
      cleanup(t, () => book.close());
      const [one, other] = [1, 2].map(() => startJobProcess(t, { url, folder, work: {}, counting: true })) as [
        JobProcess,
        JobProcess,
      ];
      const ids = await Promise.all([one, other].map(async (child) => (await child.hear("open")).sessionId));
      await Promise.all([one.hear("working"), other.hear("working")]);
      // In each time both beat: on SQLite those commits are heard by the other. A sweep takes a while, and what remains of
      // one must not be taken for something else.
      const times = [await Promise.all([count(one), count(other)])];
      do {
        await allBeat(book, ids);
        times.push(await Promise.all([count(one), count(other)]));
      } while (times.length < 3 || times.at(-2)?.some(hasSwept));
      const waitsMs: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await book.jobs.enqueue("noop", {});
        const enqueuedMs = systemClock.monotonic();
        await untilAllEnded(book);
        const { entries } = await readStory(book, folder);
        waitsMs.push((entries.findLast(({ deed }) => deed === "start")?.atMs ?? Number.NaN) - enqueuedMs);
      }
      const sweeps = (await Promise.all([count(one), count(other)])).flat().filter((text) => text.startsWith(sweep));

      const idle = times.at(-1)?.filter((statements) => !hasSwept(statements));
      const written = idle?.flat().filter((text) => backend === "sqlite" || !look.test(text));
      assert.deepEqual(written, []);
      // A sweep may have fallen into this time; so many jobs were not found by sweeps.
      assert.ok(sweeps.length < rounds, `${sweeps.length} sweeps`);
      const sorted = waitsMs.toSorted((a, b) => a - b);
      t.diagnostic(
        `woken by another process after ${sorted[rounds / 2]?.toFixed(1)} ms (median), at most ${sorted.at(-1)?.toFixed(1)} ms`,
      );
    });
  }
});

async function allBeat(book: Book, ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map(async (id) => untilBeat(book, id, (await readSession(book, id)).beat)));
}

// What it begins with, on PostgreSQL, and what each of them asks.
const beginsToSweep = "select session.seq";
const look = /^select\s+\(select 1 from daybook_line/;
const sweep = "select line.seq, line.run_id, line.started_at, line.timeout_at";

const hasSwept = (statements: readonly string[]): boolean =>
  statements.some((text) => text.startsWith(beginsToSweep) || text.startsWith(sweep));

/** On PostgreSQL it hears others by now: whoever begins to listen looks once. */
async function untilAllHeard({ store, url }: TestEngine, backend: Backend): Promise<void> {
  if (backend === "sqlite") return;
  const other = new Client({ connectionString: url });
  await other.connect();
  let heard = false;
  const stop = store.onWake((channel) => void (heard ||= channel === "last"));
  await until("what another says is heard", async () => {
    await other.query("select pg_notify($1, 'another last')", [`daybook:${store.schema}`]);
    return heard ? true : undefined;
  });
  stop();
  await other.end();
}
