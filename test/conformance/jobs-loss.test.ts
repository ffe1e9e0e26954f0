// What becomes of a job whose process is gone: it stands where it stood, its run ended when it was last heard, and what its
// user had asked for is done.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { recoverSession, sweep } from "../../src/jobs/settle/rescue.ts";
import { endSilentSession } from "../../src/telemetry/session.ts";
import { heldJob, reasonOf } from "../jobs/handlers.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, bookUrl, openTest, openTestStore, type Backend } from "../support/open-test.ts";
import { openBeside, readSession, whileTimePasses } from "../support/session-row.ts";

const work = job("work", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("of jobs in line only those that ran are lost, and all stand as they stood", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const made = await at.jobs.enqueueMany(work, params(100));
      await at.jobs.prioritise(made[99]?.id ?? "", 5);
      const before = await line(at);

      await loseWhile(at, 3);
      assert.equal(await sweep(at.engine), 3);

      assert.deepEqual(await line(at), before);
      assert.equal((await at.rows("select id from daybook_run")).length, 3);
      assert.equal((await at.rows("select id from daybook_job_now where status = 'failed'")).length, 3);
      const [first, second] = await at.claim(2);
      assert.deepEqual([numberOf(first), numberOf(second)], [99, 0]);
      await assertInvariants(at);
    });

    test("a lost job keeps its place however often it is lost, also behind one that was moved before it", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const made = await at.jobs.enqueueMany(work, params(4));

      await loseWhile(at, 1);
      await sweep(at.engine);
      await at.jobs.move(made[3]?.id ?? "", "first");
      await loseWhile(at, 2);
      await sweep(at.engine);

      assert.deepEqual(await line(at), [3, 0, 1, 2]);
      await assertInvariants(at);
    });

    test("a lost run ended when its session was last heard, not when somebody found out", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.jobs.enqueue(work, {});
      const dead = await at.newSession();
      await at.claim(1, at.claimer(dead.seq));
      const startedAt = at.clock.now();
      await at.clock.advance(4000);
      await at.run(
        `update daybook_session set beat = beat + 1, last_heartbeat_at = ${at.clock.now()} where seq = ${dead.seq}`,
      );
      await at.clock.advance(50_000);

      await declareDead(at, dead.seq);
      await sweep(at.engine);

      const { run, finishedAt, retriedBy } = await at.jobs.get(id);
      assert.deepEqual(
        [run?.status, run?.startedAt, run?.endedAt, run?.durationMs, finishedAt],
        ["lost", startedAt, startedAt + 4000, 4000, startedAt + 4000],
      );
      const again = await at.jobs.get(retriedBy ?? "");
      assert.deepEqual([again.createdAt, again.status], [at.clock.now(), "queued"]);
      await assertInvariants(at);
    });

    test("a run that began after its session was last heard took no time that anybody knows of", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.jobs.enqueue(work, {});
      const dead = await at.newSession();
      await at.clock.advance(500);
      await at.claim(1, at.claimer(dead.seq));
      const startedAt = at.clock.now();
      await at.clock.advance(50_000);

      await declareDead(at, dead.seq);
      await sweep(at.engine);

      const { run } = await at.jobs.get(id);
      assert.deepEqual([run?.startedAt, run?.endedAt, run?.durationMs], [startedAt, startedAt, 0]);
    });

    test("a cancel that was asked before the loss wins: the job is cancelled and not made again", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const [plain] = await at.jobs.enqueueMany(work, params(1));
      const group = await at.groups.create({ mode: "parallel" }, (members) => members.add(work, { n: 1 }));
      const dead = await at.newSession();
      assert.equal((await at.claim(2, at.claimer(dead.seq))).length, 2);
      assert.equal((await at.jobs.cancel(plain?.id ?? "")).status, "cancelling");
      await at.groups.cancel(group.id);

      await declareDead(at, dead.seq);
      await sweep(at.engine);

      for (const id of [plain?.id, group.jobs[0]?.id]) {
        const { status, retriedBy, run } = await at.jobs.get(id ?? "");
        assert.deepEqual([status, retriedBy, run?.status], ["cancelled", null, "cancelled"]);
        assert.deepEqual(
          [run?.error?.type, /cancelled.*session lost/.test(run?.error?.message ?? "")],
          ["CancelledError", true],
        );
      }
      assert.equal((await at.groups.get(group.id)).status, "cancelled");
      await assertInvariants(at);
    });

    test("with no losses allowed a lost job has failed at once", async (t) => {
      const once = job("once", { losses: 0, run: () => undefined });
      const at = await openEngine(t, backend, { use: [once] });
      const { id } = await at.jobs.enqueue(once, {});

      await loseWhile(at, 1);
      await sweep(at.engine);

      const { status, retriedBy, run, losses } = await at.jobs.get(id);
      assert.deepEqual([status, retriedBy, run?.status, losses], ["failed", null, "lost", 0]);
    });

    test("what shuts down while it runs is made again where it stood", async (t) => {
      const clock = manualClock();
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job], clock });
      await book.jobs.enqueueMany(held.job, params(4));
      const worker = await book.startWorker({ concurrency: 2, grace: 0 });
      await held.whenBegun(2);
      for (const { context, fail } of held.begun) context.signal.addEventListener("abort", () => fail("stopped"));

      const stopping = worker.stop();
      await clock.advance(0);
      await stopping;

      const { items } = await book.jobs.list({ status: "queued" });
      const inLine = items.toSorted((a, b) => (a.position ?? 0) - (b.position ?? 0));
      assert.deepEqual(
        inLine.map((each) => (each.params as { n: number }).n),
        [0, 1, 2, 3],
      );
      assert.deepEqual(
        inLine.map(({ position }) => position),
        [100, 200, 300, 400],
      );
    });

    test("the handler of a worker whose places are all taken is told at once that its session was given up", async (t) => {
      const clock = manualClock();
      const began = Promise.withResolvers<AbortSignal>();
      const listens = job("listens", {
        run: (_params, { signal }) => {
          began.resolve(signal);
          return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
        },
      });
      const book = await openBeside(t, backend, { url: await bookUrl(t, backend), use: [listens], clock });
      await book.startWorker({ concurrency: 1, grace: 0 });
      await book.jobs.enqueue(listens, {});
      const signal = await began.promise;

      await giveUpSession(t, backend, book);
      // Its next beat finds out. Nothing would make this worker take a turn.
      for (let beats = 0; beats < 3 && !signal.aborted; beats++) await whileTimePasses(clock, clock.sleep(1000), 100);

      assert.deepEqual(signal.aborted && reasonOf(signal), { code: "closed", cause: "lost" });
    });
  });
}

const params = (count: number): { n: number }[] => Array.from({ length: count }, (_, n) => ({ n }));

function numberOf(claimed: ClaimedJob | undefined): number {
  return (JSON.parse(claimed?.params ?? "{}") as { n: number }).n;
}

/** The numbers of those that stand in line, in its order. */
async function line(at: TestEngine): Promise<number[]> {
  const rows = await at.rows<{ params: string }>(
    "select params from daybook_job_now where status in ('queued', 'waiting') order by priority desc, position, seq",
  );
  return rows.map((row) => (JSON.parse(row.params) as { n: number }).n);
}

async function declareDead(at: TestEngine, seq: number): Promise<void> {
  await at.run(`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${seq}`);
}

/** A session ends without a word while it runs so many jobs. */
async function loseWhile(at: TestEngine, running: number): Promise<void> {
  const { seq } = await at.newSession();
  assert.equal((await at.claim(running, at.claimer(seq))).length, running);
  await declareDead(at, seq);
}

/** Another process takes it for dead, and ends what it runs. */
async function giveUpSession(t: TestContext, backend: Backend, book: Book): Promise<void> {
  const { store } = await openTestStore(t, backend, { url: book.location });
  const silent = await readSession(book, book.sessionId);
  await store.write(async (tx) => {
    assert.ok(await endSilentSession(tx, silent));
    await recoverSession(tx, { kinds: {} }, silent.seq);
  });
}
