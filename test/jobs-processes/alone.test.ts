// A job that was lost twice runs alone in its process, so that only the guilty one is blamed.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { quarantineOf, type Member } from "../../src/jobs/worker/runs.ts";
import { backends, cleanup, openTest } from "../support/open-test.ts";
import { until, whileTimePasses } from "../support/session-row.ts";
import { tamper } from "../support/tamper.ts";

async function makeAlone(book: Book, id: string): Promise<void> {
  await tamper(book, (tx) => tx.sql`update daybook_job set alone = 2 where id = ${id}`);
}

async function countRunning(book: Book): Promise<number> {
  return (await book.jobs.list({ status: "running" })).items.length;
}

function gated(name: string): { run: ReturnType<typeof job>; began: () => number; open: () => void } {
  const gate = Promise.withResolvers<void>();
  let began = 0;
  const run = job(name, {
    run() {
      began++;
      return gate.promise;
    },
  });
  return { run, began: () => began, open: gate.resolve };
}

function member(): Member & { inHand: number; woken: number } {
  const self = { inHand: 0, woken: 0, wake: () => void self.woken++ };
  return self;
}

test("what must run alone is claimed by one worker of an empty process, and then nothing else is", () => {
  const quarantine = quarantineOf({ clock: manualClock() });
  const [one, other] = [member(), member()];
  for (const each of [one, other]) quarantine.join(each);
  const enters = (): boolean[] => [quarantine.enter(one), quarantine.enter(other)];

  other.inHand = 1;
  const besideAny = [...enters(), quarantine.closed];
  other.inHand = 0;
  const empty = [...enters(), quarantine.closed];
  quarantine.aloneStarted();
  quarantine.leave(one);
  const besideAlone = [...enters(), quarantine.closed];
  quarantine.aloneEnded();

  assert.deepEqual(
    { besideAny, empty, besideAlone, after: quarantine.closed },
    { besideAny: [false, false, false], empty: [true, false, true], besideAlone: [false, false, true], after: false },
  );
});

test("what keeps a process from becoming empty is waited for longer each time, and as long as at first once it was", async () => {
  const clock = manualClock();
  const quarantine = quarantineOf({ clock });
  const worker = member();
  quarantine.join(worker);
  const waited = async (): Promise<number> => {
    const from = clock.monotonic();
    quarantine.drain();
    while (quarantine.mustDrain()) await clock.advance(1000);
    const until = clock.monotonic();
    while (!quarantine.mayDrain()) await clock.advance(1000);
    return until - from;
  };

  worker.inHand = 1;
  const inVain = [await waited(), await waited(), await waited()];
  worker.inHand = 0;
  const empty = await waited();
  worker.inHand = 1;
  const again = await waited();

  assert.deepEqual([inVain, empty, again], [[10_000, 20_000, 40_000], 0, 10_000]);
});

test("a drain that ends in vain wakes every worker, because none of them claimed meanwhile", async () => {
  const clock = manualClock();
  const quarantine = quarantineOf({ clock });
  const workers = [member(), member()];
  for (const each of workers) quarantine.join(Object.assign(each, { inHand: 1 }));

  quarantine.drain();
  await clock.advance(9999);
  const before = workers.map(({ woken }) => woken);
  await clock.advance(1);

  assert.deepEqual(
    [before, workers.map(({ woken }) => woken)],
    [
      [0, 0],
      [1, 1],
    ],
  );
});

for (const backend of backends) {
  describe(backend, () => {
    test("jobs that must run alone follow each other, also when each ends by finish", async (t) => {
      let running = 0;
      let most = 0;
      const lonely = job("lonely", {
        async run(_params, { finish }) {
          most = Math.max(most, ++running);
          await finish(() => undefined);
          running--;
        },
      });
      // Nothing else wakes the worker: the clock stands still, so nobody's heart beats.
      const { book } = await openTest(t, backend, { use: [lonely], clock: manualClock() });
      const made = await book.jobs.enqueueMany(lonely, [{}, {}, {}, {}]);
      for (const { id } of made) await makeAlone(book, id);

      const worker = await book.startWorker();
      await worker.idle();

      assert.equal(most, 1);
      assert.equal((await book.jobs.list({ status: "completed" })).items.length, 4);
    });

    test("of two workers in one process, one waits while the other runs a job alone", async (t) => {
      const lonely = gated("lonely");
      const other = gated("other");
      const { book } = await openTest(t, backend, { use: [lonely.run, other.run] });
      const { id } = await book.jobs.enqueue(lonely.run, {}, { queue: "a" });
      await makeAlone(book, id);
      await book.startWorker({ queues: ["a"] });
      const idle = await book.startWorker({ queues: ["b"] });
      await until("it runs alone", async () => (lonely.began() === 1 ? true : undefined));
      await until("no claim of the other is still under way", async () => (idle.running === 0 ? true : undefined));

      const waiting = await book.jobs.enqueue(other.run, {}, { queue: "b" });
      // A process of its own is free to run it, so it was offered.
      const { book: elsewhere } = await openTest(t, backend, {
        use: [job("free", { run: () => undefined })],
        url: book.location,
      });
      await elsewhere.startWorker({ queues: ["c"] });
      const free = await elsewhere.jobs.enqueue("free", {}, { queue: "c" });
      await until("others run", async () => ((await book.jobs.get(free.id)).status === "completed" ? true : undefined));
      const meanwhile = [(await book.jobs.get(waiting.id)).status, other.began()];
      lonely.open();
      await until("then it runs", async () => (other.began() === 1 ? true : undefined));
      other.open();

      assert.deepEqual(meanwhile, ["queued", 0]);
    });

    test("a job that must run alone gets its turn where others always run for longer than it is waited for", async (t) => {
      const clock = manualClock();
      let lonelyRuns = 0;
      const lonely = job("lonely", { run: () => void lonelyRuns++ });
      // As soon as one ends the next is there, and the other has half a minute left: one queue's end with the minute,
      // the other's between two, however late a busy machine begins them.
      const long = job("long", {
        async run(_params, { book, signal, job: { queue } }) {
          await book.jobs.enqueue(long, {}, { queue });
          const intoMinute = (clock.monotonic() + (queue === "one" ? 0 : 30_000)) % 60_000;
          await clock.sleep(60_000 - intoMinute, signal);
        },
      });
      const { book } = await openTest(t, backend, { use: [lonely, long], clock });
      cleanup(t, () => whileTimePasses(clock, book.close()));
      await book.jobs.enqueue(long, {}, { queue: "one" });
      await book.jobs.enqueue(long, {}, { queue: "other", in: "30s" });
      await book.startWorker({ concurrency: 2, grace: 0 });
      await clock.advance(30_000);
      const both = until("both run", async () => ((await countRunning(book)) === 2 ? true : undefined));
      await whileTimePasses(clock, both);
      const { id } = await book.jobs.enqueue(lonely, {});
      await makeAlone(book, id);

      const turn = until("it has its turn", async () => (lonelyRuns === 1 ? true : undefined), { ms: 120_000 });
      await whileTimePasses(clock, turn, 1000);
    });
  });
}
