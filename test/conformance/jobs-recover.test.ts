import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { jobSuperseded, sessionRecovered } from "../../src/jobs/kind.ts";
import { recoverSession, sweep } from "../../src/jobs/settle/rescue.ts";
import { sql } from "../../src/storage/sql.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { startSession } from "../../src/telemetry/session.ts";
import { heldJob } from "../jobs/handlers.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, cleanup, openTest, openTestStore } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

const run = (): void => undefined;
const plain = job("plain", { attempts: 2, run });
const single = job("single", { concurrency: 1, run });
const use = [plain, single];

for (const backend of backends) {
  describe(backend, () => {
    test("the runs of a session that has ended are lost, and their jobs are made again", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made = await at.jobs.enqueueMany(plain, [{ n: 1 }, { n: 2 }, { n: 3 }], { priority: 2 });
      const dead = await loseAfter(at, 2);
      const heard: unknown[] = [];
      cleanup(
        t,
        sessionRecovered.subscribe((fact) => void heard.push({ ...fact })),
      );

      const found = await sweep(at.engine);

      assert.equal(found, 2);
      assert.deepEqual(heard, [{ sessionSeq: dead, jobs: 2, retried: 2 }]);
      const chains = await Promise.all(made.map(({ id }) => at.jobs.chain(id)));
      assert.deepEqual(
        chains.map((chain) =>
          chain.map(({ status, attempt, losses, run: ended }) => [status, attempt, losses, ended?.status]),
        ),
        [
          [
            ["failed", 1, 0, "lost"],
            ["queued", 1, 0, undefined],
          ],
          [
            ["failed", 1, 0, "lost"],
            ["queued", 1, 0, undefined],
          ],
          [["queued", 1, 0, undefined]],
        ],
      );
      assert.deepEqual(chains[0]?.[0]?.run?.error, {
        type: "SessionLost",
        message: "session lost: the process that ran it ended or fell silent",
        trace: null,
      });
      await assertInvariants(at);
    });

    test("recovery twice leaves the book as recovery once, and never touches the living", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(plain, [{}, {}, {}, {}]);
      await at.jobs.enqueueMany(single, [{}, {}]);
      const living = await at.claim(1);
      const dead = await loseAfter(at, 4);
      await sweep(at.engine);
      const once = await at.dump();

      const again = [
        await sweep(at.engine),
        await at.store.write((tx) => recoverSession(tx, { kinds: {} }, dead)),
        await at.store.write((tx) => recoverSession(tx, { kinds: {} }, dead)),
        await sweep(at.engine),
      ];

      assert.deepEqual(again, [0, 0, 0, 0]);
      assert.deepEqual(await at.dump(), once);
      assert.equal((await at.jobs.get(living[0]?.id ?? "")).status, "running");
    });

    test("two recoveries at the same time are one", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { store } = await openTestStore(t, backend, { url: at.url, clock: at.clock });
      await at.jobs.enqueueMany(plain, [{}, {}, {}, {}]);
      const dead = await loseAfter(at, 4);

      const all = [at.store, store, at.store].map((each) =>
        each.write((tx) => recoverSession(tx, { kinds: {} }, dead)),
      );
      const found = await whileTimePasses(at.clock, Promise.all(all));

      assert.deepEqual(
        found.toSorted((a, b) => a - b),
        [0, 0, 4],
      );
      assert.equal((await at.jobs.list()).items.length, 8);
      assert.equal((await at.rows("select id from daybook_run")).length, 4);
      await assertInvariants(at);
    });

    for (const losses of [0, 1, 3]) {
      test(`a job that is lost whenever it runs ends failed after exactly ${losses} losses of its own`, async (t) => {
        const at = await openEngine(t, backend, { use: [job("poison", { losses, run })] });
        const { id } = await at.jobs.enqueue("poison", {});

        let starts = 0;
        for (let round = 0; round < 10; round++) {
          const dead = await at.newSession();
          const { jobs, leftAlone } = await at.claimFully(1, at.claimer(dead.seq));
          const [claimed] = leftAlone ? (await at.claimAlone(at.claimer(dead.seq))).jobs : jobs;
          if (claimed === undefined) break;
          starts++;
          await end(at, dead.seq);
          await sweep(at.engine);
        }

        // The first two may have been a neighbour's doing; from then on it runs alone and each loss is its own.
        const chain = await at.jobs.chain(id);
        assert.equal(starts, losses === 0 ? 1 : losses + 2);
        assert.deepEqual(
          chain.map((each) => [each.status, each.run?.status]),
          chain.map(() => ["failed", "lost"]),
        );
        assert.deepEqual([chain.at(-1)?.losses, chain.at(-1)?.attempt, chain.at(-1)?.retriedBy], [losses, 1, null]);
        await assertInvariants(at);
      });
    }

    test("a job that is lost among others is charged nothing, and after the second time waits to run alone", async (t) => {
      const at = await openEngine(t, backend, { use: [job("unlucky", { losses: 1, run })] });
      const { id } = await at.jobs.enqueue("unlucky", {});

      for (let time = 0; time < 2; time++) {
        await loseAfter(at, 1);
        await sweep(at.engine);
      }
      assert.deepEqual(await at.claim(1), []);

      const last = (await at.jobs.chain(id)).at(-1);
      assert.deepEqual([last?.status, last?.waitsFor, last?.losses, last?.attempt], ["waiting", "alone", 0, 1]);
    });

    test("a failure after a loss is counted as a failure, and what came through alone runs among others again", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(plain, {});
      await loseAfter(at, 1);
      await sweep(at.engine);
      await loseAfter(at, 1);
      await sweep(at.engine);
      assert.deepEqual(await at.claim(1), []);
      const [alone] = (await at.claimAlone()).jobs;

      await at.end(alone as ClaimedJob, { status: "error" });

      const chain = await at.jobs.chain(id);
      assert.deepEqual(
        chain.map(({ attempt, status, losses }) => [attempt, status, losses]),
        [
          [1, "failed", 0],
          [1, "failed", 0],
          [1, "failed", 0],
          [2, "waiting", 0],
        ],
      );
      assert.deepEqual(
        (await at.rows<{ alone: number }>("select alone from daybook_job_now order by seq")).map((row) => row.alone),
        [0, 1, 2, 0],
      );
    });

    test("the slots of a lost run go to those who wait for them", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.queues.limit("narrow", { concurrency: 1 });
      await at.jobs.enqueueMany(single, [{}, {}]);
      await at.jobs.enqueueMany(plain, [{}, {}], { queue: "narrow" });
      await loseAfter(at, 5);
      assert.deepEqual(await at.claim(5), []);

      await sweep(at.engine);

      const claimed = [...(await at.claim(5)), ...(await at.claim(5))];
      assert.deepEqual(claimed.map((each) => each.queue).toSorted(), ["default", "narrow"]);
    });

    test("a job that runs alone shares its session with nothing, and the others go on before and after", async (t) => {
      const live = new Set<string>();
      const together: string[] = [];
      const order: string[] = [];
      const work = job("work", {
        async run({ n }: { n: number }, context) {
          const name = context.job.id === lonely ? "alone" : String(n);
          live.add(name);
          order.push(name);
          if (live.has("alone") && live.size > 1) together.push([...live].join());
          for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
          live.delete(name);
        },
      });
      const at = await openEngine(t, backend, { use: [work] });
      await at.jobs.enqueue(work, { n: -1 });
      for (let time = 0; time < 2; time++) {
        await loseAfter(at, 1);
        await sweep(at.engine);
      }
      const lonely = (await at.jobs.list({ status: "queued" })).items[0]?.id;
      await at.jobs.enqueueMany(
        work,
        Array.from({ length: 20 }, (_, n) => ({ n })),
        { priority: 1 },
      );
      await at.jobs.enqueueMany(
        work,
        Array.from({ length: 20 }, (_, n) => ({ n: n + 20 })),
        { priority: -1 },
      );

      const { book } = await openTest(t, backend, { url: at.url, use: [work] });
      const worker = await book.startWorker({ concurrency: 5 });
      await worker.idle();

      assert.deepEqual(together, []);
      assert.equal(order.length, 41);
      assert.ok(order.indexOf("alone") >= 15, `${order.indexOf("alone")} ran before it`);
      assert.equal((await book.jobs.get(lonely ?? "")).status, "completed");
    });

    test("a job that must run alone does not keep those behind it from running beside others", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made = await at.jobs.enqueueMany(plain, [{}, {}, {}, {}]);
      await at.run(`update daybook_job set alone = 2 where id in ('${made[0]?.id}', '${made[2]?.id}')`);
      const by = at.claimer();

      const beside = [await at.claimFully(1, by), await at.claimFully(5, by)];
      const parked = await at.rows("select waits_for, waits_key from daybook_job_now where status = 'waiting'");
      const alone = [await at.claimAlone(by), await at.claimAlone(by), await at.claimAlone(by)];

      const ids = made.map(({ id }) => id);
      assert.deepEqual(
        [...beside, ...alone].map(({ jobs }) => jobs.map((each) => each.id)),
        [[ids[1]], [ids[3]], [ids[0]], [ids[2]], []],
      );
      assert.deepEqual(
        [...beside, ...alone].map(({ leftAlone }) => leftAlone),
        [true, true, false, false, false],
      );
      assert.deepEqual(parked, [
        { waits_for: "alone", waits_key: "plain" },
        { waits_for: "alone", waits_key: "plain" },
      ]);
    });

    test("a run past its timeout is ended even in a live session, and its late result is refused", async (t) => {
      const at = await openEngine(t, backend, {
        use: [job("stuck", { timeout: "10s", attempts: 2, backoff: ["0ms"], run })],
      });
      const { id } = await at.jobs.enqueue("stuck", {});
      const [claimed] = await at.claim(1);
      const heard: unknown[] = [];
      cleanup(
        t,
        jobSuperseded.subscribe((fact) => void heard.push(fact)),
      );
      const beat = (): Promise<number> => at.run(`update daybook_session set last_heartbeat_at = ${at.clock.now()}`);
      // Its owner has 10 s of grace to end it by itself.
      await at.clock.advance(20_000);
      await beat();
      const early = await sweep(at.engine);
      await at.clock.advance(1);
      await beat();

      const found = [await sweep(at.engine), await sweep(at.engine)];

      assert.deepEqual([early, found], [0, [1, 0]]);
      const [ended, next] = await at.jobs.chain(id);
      assert.deepEqual([ended?.status, ended?.run?.status, next?.attempt], ["failed", "timed_out", 2]);
      assert.match(
        ended?.run?.error?.message ?? "",
        /took longer than its timeout of 10000 ms and its process did not end it/,
      );
      const before = await at.dump();
      const { late } = await at.end(claimed as ClaimedJob, { status: "success", result: "5" });
      assert.equal(late.size, 1);
      assert.deepEqual(await at.dump(), before);
    });

    test("a result that comes too late is a fact and not a run", async (t) => {
      const held = heldJob("held");
      const { book, url } = await openTest(t, backend, { use: [held.job] });
      const { id } = await book.jobs.enqueue(held.job, {});
      const worker = await book.startWorker({ concurrency: 1 });
      const { succeed, context } = await held.whenBegun(1);
      const heard: unknown[] = [];
      cleanup(
        t,
        jobSuperseded.subscribe((fact) => void heard.push({ ...fact })),
      );
      const { store } = await openTestStore(t, backend, { url });
      const [row] = await book.read(
        (tx) => tx.sql<{ session_seq: number }>`select session_seq from daybook_job_now where id = ${id}`,
      );
      await store.write((tx) => recoverSession(tx, { kinds: {} }, row?.session_seq ?? 0));

      succeed("too late");
      (await held.whenBegun(2)).succeed("in time");
      await worker.idle();

      assert.deepEqual(heard, [{ id, name: "held", runId: context.job.runId, status: "success" }]);
      const chain = await book.jobs.chain(id);
      assert.deepEqual(
        chain.map(({ run: ended }) => [ended?.status, ended?.result]),
        [
          ["lost", null],
          ["success", "in time"],
        ],
      );
      assert.equal((await book.runs.list()).items.length, 2);
    });

    test("opening a book recovers the sessions whose processes are gone", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(plain, {});
      const gone = await at.store.write((tx) => startSession(tx, { ...thisProcess(), pid: 2 ** 22 + 1 }, "{}"));
      await at.claim(1, at.claimer(gone.seq));
      const recovered = new Promise((resolve) => cleanup(t, sessionRecovered.subscribe(resolve)));

      await openTest(t, backend, { url: at.url, use });
      await recovered;

      assert.deepEqual(
        (await at.jobs.chain(id)).map(({ status }) => status),
        ["failed", "queued"],
      );
    });
  });
}

// SQLite's only writer cannot be overtaken.
test("postgres: a step whose run is ended while its transaction is open leaves nothing", async (t) => {
  // A transaction waits for something else for a second at most, and the recovery may take longer.
  const clock = manualClock();
  const held = heldJob("held", { attempts: 1 });
  const { book, url } = await openTest(t, "postgres", { use: [held.job], clock });
  await book.write((tx) => tx.sql`create table effect (n integer)`);
  const { id } = await book.jobs.enqueue(held.job, {});
  const worker = await book.startWorker({ concurrency: 1 });
  const { context, succeed } = await held.whenBegun(1);
  const { store } = await openTestStore(t, "postgres", { url, clock });
  const [row] = await store.read<{ seq: number }>(sql`select session_seq as seq from daybook_job_now where id = ${id}`);

  const recovered = Promise.withResolvers<void>();
  const overtaken = context.step.write("a", async (tx) => {
    await tx.sql`insert into effect (n) values (1)`;
    await store.write((theirs) => recoverSession(theirs, { kinds: {} }, row?.seq ?? 0));
    recovered.resolve();
  });
  const refused = assert.rejects(overtaken, { code: "conflict" });
  await recovered.promise;
  await whileTimePasses(clock, refused); // it is run again

  succeed();
  (await held.whenBegun(2)).succeed();
  await worker.idle();
  assert.deepEqual(await book.read((tx) => tx.sql`select n from effect`), []);
});

/** A session claims so many jobs and ends without a word. */
async function loseAfter(at: TestEngine, want: number): Promise<number> {
  const dead = await at.newSession();
  await at.claim(want, at.claimer(dead.seq));
  await end(at, dead.seq);
  return dead.seq;
}

async function end(at: TestEngine, seq: number): Promise<void> {
  await at.run(`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${seq}`);
}
