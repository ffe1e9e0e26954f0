// What a plain job costs: write transactions, statements, waits for the server, and rows. A path that quietly falls back to a
// slower one is still right, and only these counts show it. Where a cost falls, lower its number here.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { Client } from "pg";
import { job, manualClock, type Book, type Worker } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { countRows, createMeter, type Meter, type Rows, type Spent } from "../jobs/cost.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const plain = job("plain", { run: () => undefined });

type Cost = { readonly statements: number; readonly roundTrips: number };

/** The most that each transaction may cost. SQLite answers at once, so there nobody waits. */
const most: Readonly<Record<Backend, Readonly<Record<"enqueue" | "claim" | "turn" | "lastTurn", Cost>>>> = {
  sqlite: {
    enqueue: { statements: 3, roundTrips: 0 },
    claim: { statements: 7, roundTrips: 0 },
    turn: { statements: 11, roundTrips: 0 },
    lastTurn: { statements: 7, roundTrips: 0 },
  },
  postgres: {
    enqueue: { statements: 1, roundTrips: 2 },
    // All from begin to claim in one flush, the commit in the second.
    claim: { statements: 5, roundTrips: 2 },
    turn: { statements: 9, roundTrips: 2 },
    lastTurn: { statements: 9, roundTrips: 2 },
  },
};

type Parts = {
  readonly book: Book;
  readonly rows: { take(): Promise<Rows> };
  readonly meter: Meter;
};

// A book hears its own notices, too. One that comes late makes it look once more, and whether that happens is chance.
function beDeaf(t: TestContext): void {
  const query = Client.prototype.query as (this: Client, ...given: unknown[]) => unknown;
  t.mock.method(Client.prototype, "query", function (this: Client, ...given: unknown[]): unknown {
    const listens = typeof given[0] === "string" && given[0].startsWith("listen ");
    return listens ? Promise.reject(new Error("deaf")) : query.apply(this, given);
  });
}

/** A book that has run a job before: its lane is known, and so is that nobody listens. */
async function openWarm(t: TestContext, backend: Backend, concurrency?: number): Promise<Parts & { worker: Worker }> {
  beDeaf(t);
  const meter = createMeter(backend);
  let isWarm = false;
  // Nor does it try to listen again, or look by itself: that it would do in real time.
  const clock = manualClock();
  const { book } = await openTest(t, backend, {
    use: [plain],
    clock,
    waitClock: clock,
    // The first looks of the worker and of the schedules overlap, which the meter cannot tell apart.
    fault: (...statement) => void (isWarm && meter.fault(...statement)),
  });
  const rows = await countRows(roomsOf(book).store);
  const worker = await book.startWorker(concurrency === undefined ? {} : { concurrency });
  await roomsOf(book).ticker?.tick();
  await book.jobs.enqueue(plain, {});
  await worker.idle();
  if (concurrency === undefined) await worker.stop();
  await rows.take();
  isWarm = true;
  return { book, rows, meter, worker };
}

function assertWithin(spent: readonly Spent[], most: readonly Cost[]): void {
  assert.equal(spent.length, most.length, `transactions: ${JSON.stringify(spent)}`);
  for (const [index, { statements, roundTrips }] of spent.entries()) {
    const allowed = most[index] as Cost;
    const cost = { statements: statements.length, roundTrips };
    const fits = cost.statements <= allowed.statements && cost.roundTrips <= allowed.roundTrips;
    assert.ok(
      fits,
      `transaction ${index + 1} of ${spent.length} may cost ${JSON.stringify(allowed)} and cost
      ${JSON.stringify(cost)}:\n${statements.join("\n")}`,
    );
  }
}

function times<T>(count: number, value: T): T[] {
  return Array.from({ length: count }, () => value);
}

const wholeLife = (jobs: number): Rows => ({
  "insert job": jobs,
  "insert line": jobs,
  "update line": jobs,
  "delete line": jobs,
  "insert run": jobs,
});

for (const backend of backends) {
  const { enqueue, claim, turn, lastTurn } = most[backend];

  describe(backend, () => {
    test("an enqueue is one write transaction with one row of job and one of the line", async (t) => {
      const { book, meter, rows } = await openWarm(t, backend);

      await book.jobs.enqueue(plain, {});

      assertWithin(meter.take(), [enqueue]);
      assert.deepEqual(await rows.take(), { "insert job": 1, "insert line": 1 });
    });

    test("100 enqueues in flight cost the statements and the waits of one", async (t) => {
      const { book, meter, rows } = await openWarm(t, backend);

      await Promise.all(times(100, {}).map((params) => book.jobs.enqueue(plain, params)));

      assertWithin(meter.take(), [enqueue]);
      assert.deepEqual(await rows.take(), { "insert job": 100, "insert line": 100 });
    });

    test("jobs in 300 queues that were never used cost the statements and the waits of one", async (t) => {
      const { book, meter } = await openWarm(t, backend);

      await book.jobs.enqueueMany(plain, [{}], { queue: "new" });
      const [one] = meter.take();
      await book.jobs.enqueueMany(plain, times(300, {}), (_, n) => ({ queue: `new-${n}` }));
      const [many] = meter.take();

      assert.deepEqual(many, one);
    });

    for (const places of [100, 10, 1]) {
      test(`200 jobs at ${places} places are claimed in ${200 / places} turns, each of which settles those before`, async (t) => {
        const { book, meter, rows, worker } = await openWarm(t, backend, places);

        await book.jobs.enqueueMany(plain, times(200, {}));
        await worker.idle();

        assertWithin(meter.take(), [enqueue, claim, ...times(200 / places - 1, turn), lastTurn]);
        assert.deepEqual(await rows.take(), wholeLife(200));
      });
    }

    test("on a quiet book a job is three write transactions: its enqueue, its claim, and its end with a look for the next", async (t) => {
      const { book, meter, rows, worker } = await openWarm(t, backend, 10);

      for (let made = 0; made < 20; made++) {
        await book.jobs.enqueue(plain, {});
        await worker.idle();
      }

      assertWithin(meter.take(), times(20, [enqueue, claim, lastTurn]).flat());
      assert.deepEqual(await rows.take(), wholeLife(20));
    });
  });
}
