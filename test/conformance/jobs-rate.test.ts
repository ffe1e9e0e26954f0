import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

type Account = { readonly account: string };
const run = (_params: Account): void => undefined;
const plain = job("plain", { run });
const rated = job("rated", { rate: { max: 3, per: "1m" }, run });
const perKey = job("per-key", { rate: { max: 2, per: "1m", key: ({ account }) => account }, run });
const use = [plain, rated, perKey];
const many = (count: number, accounts = 1): Account[] =>
  Array.from({ length: count }, (_, n) => ({ account: `a${n % accounts}` }));

for (const backend of backends) {
  describe(backend, () => {
    test("a rate releases its allowance in each window and no more, in one batch and in several", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(rated, many(10));
      await at.clock.advance(59_999);

      const first = [await started(at, 2), await started(at, 100), await started(at, 100)];
      await at.clock.advance(1);
      const second = [await started(at, 100), await started(at, 100)];
      await at.clock.advance(59_999);
      const stillSecond = await started(at, 100);
      await at.clock.advance(1);
      const third = await started(at, 100);
      await at.clock.advance(600_000);
      const last = await started(at, 100);

      assert.deepEqual([first, second, stillSecond, third, last], [[2, 1, 0], [3, 0], 0, 3, 1]);
    });

    test("a rate per key counts each key apart, and each tenant apart", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(perKey, many(12, 3));
      await at.tenant("acme").jobs.enqueueMany(perKey, many(5));

      const counts = [await started(at, 100), await started(at, 100)];

      assert.deepEqual(counts, [3 * 2 + 2, 0]);
    });

    test("who parks a job until its rate opens tells the others when that is", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(rated, many(4));
      const heard = Promise.withResolvers<void>();
      t.after(at.store.onWake((channel) => void (channel === "jobs" && heard.resolve())));

      await at.claim(100);

      await heard.promise;
    });

    test("a rate of a lane is a gate: its jobs stay in line, and other lanes are not held up", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.queues.limit("narrow", { rate: { max: 4, per: "10s" } });
      await at.jobs.enqueueMany(plain, many(10), { queue: "narrow" });
      await at.jobs.enqueueMany(plain, many(3));

      const first = await at.claimFully(100);
      const second = await at.claimFully(100);

      assert.deepEqual([first.jobs.length, second.jobs.length], [4 + 3, 0]);
      assert.equal(
        first.opensAt,
        at.clock.now() + 10_000,
        "who takes the last of a window knows when the next one opens",
      );
      assert.equal(second.opensAt, at.clock.now() + 10_000);
      const waiting = await at.jobs.list({ status: "waiting" });
      assert.deepEqual(waiting.items, []);
      await at.clock.advance(10_000);
      assert.equal((await at.claim(100)).length, 4);
    });

    test("a worker goes on by itself when the rate of a lane opens", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      await book.queues.limit("a", { rate: { max: 2, per: "5s" } });
      await book.queues.limit("b", { rate: { max: 1, per: "7s" } });
      await book.jobs.enqueueMany(plain, many(5), { queue: "a" });
      await book.jobs.enqueueMany(plain, many(2), { queue: "b" });
      const worker = await book.startWorker();
      const done = async (): Promise<number> => {
        // A turn that met another at a limit too often rests for a moment of its clock.
        await whileTimePasses(clock, worker.idle());
        return (await book.jobs.list({ status: "completed" })).items.length;
      };
      const counts = [await done()];
      // The windows begin at multiples of their length; the clock at neither.
      const opens = [5000, 7000, 10_000].map((ms) => ms - (clock.now() % ms)).toSorted((x, y) => x - y);

      let passed = 0;
      for (const at of opens) {
        await clock.advance(at + 1 - passed);
        passed = at + 1;
        counts.push(await done());
      }

      assert.equal(counts[0], 3);
      assert.equal(counts.at(-1), 7);
    });

    test("a clock that steps back neither opens a window again nor closes it for as long as the step", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(rated, many(12));
      const first = await started(at, 100);

      // A process of another machine, whose clock is an hour behind.
      const clock = manualClock();
      clock.step(at.clock.now() - clock.now() - 3_600_000);
      const behind = await openEngine(t, backend, { use, url: at.url, clock });
      await at.run(
        "update daybook_line set status = 'queued', waits_for = null, waits_key = null where status = 'waiting'",
      );
      const again = await started(behind, 100);
      await at.run(
        "update daybook_line set status = 'queued', waits_for = null, waits_key = null where status = 'waiting'",
      );
      await behind.clock.advance(60_000);
      const next = await started(behind, 100);

      assert.deepEqual([first, again, next], [3, 0, 3]);
    });

    for (const whose of ["a name", "a queue"]) {
      test(`two machines whose clocks differ across the edge of a window share the allowance of ${whose}`, async (t) => {
        const ahead = await openEngine(t, backend, { use });
        const behind = await openEngine(t, backend, { use, url: ahead.url });
        await ahead.queues.limit("narrow", { rate: { max: 3, per: "1m" } });
        await (whose === "a name"
          ? ahead.jobs.enqueueMany(rated, many(40))
          : ahead.jobs.enqueueMany(plain, many(40), { queue: "narrow" }));
        const edge = 60_000 - (ahead.clock.now() % 60_000);
        ahead.clock.step(edge + 100);
        behind.clock.step(ahead.clock.now() - behind.clock.now() - 200);

        const counts: number[] = [];
        for (let minute = 0; minute < 2; minute++) {
          let count = 0;
          for (let look = 0; look < 4; look++) for (const at of [ahead, behind]) count += await started(at, 2);
          counts.push(count);
          for (const { clock } of [ahead, behind]) clock.step(60_000);
        }

        assert.deepEqual(counts, [3, 3]);
      });
    }

    test("many workers together start no more than a rate allows", async (t) => {
      const clock = manualClock();
      let count = 0;
      const counted = job("counted", { rate: { max: 7, per: "1m" }, run: () => void count++ });
      const { book } = await openTest(t, backend, { use: [counted], clock });
      await book.jobs.enqueueMany(counted, many(40));

      const workers = await Promise.all(
        Array.from({ length: backend === "postgres" ? 8 : 4 }, () => book.startWorker({ concurrency: 2 })),
      );
      const idle = async (): Promise<number> => {
        for (let round = 0; round < 3; round++) {
          await whileTimePasses(clock, Promise.all(workers.map((worker) => worker.idle())));
        }
        return count;
      };

      const counts = [await idle()];
      for (let window = 0; window < 2; window++) {
        for (let step = 0; step < 12; step++) {
          await clock.advance(5000);
          await idle();
        }
        await clock.advance(1); // timers with jitter leave fractions
        counts.push(await idle());
      }
      assert.deepEqual(counts, [7, 14, 21]);
    });
  });
}

/** How many a turn of a worker starts. */
async function started(at: TestEngine, want: number): Promise<number> {
  return (await at.turn(want, at.claimer(), { lookForDue: true })).claim.jobs.length;
}
