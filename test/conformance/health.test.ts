import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, listener, manualClock, sink, type Book, type BookHealth } from "../../src/index.ts";
import { limits } from "../../src/core/limits.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { plansOf, wholeReads } from "../support/explain.ts";
import { backends, openTest } from "../support/open-test.ts";

const work = job("work", {
  attempts: 1,
  run({ fails }: { fails?: boolean }) {
    if (fails === true) throw new RangeError("no room");
  },
});
const waits = job("waits", { attempts: 1, run: () => undefined });
const deaf = listener("deaf", {
  on: "said.>",
  attempts: 1,
  run() {
    throw new RangeError("deaf");
  },
});
const give = sink("give", { on: "given.>", to: () => undefined });

function reasonsOf({ reasons }: BookHealth): string[] {
  return reasons.map(({ verdict, about }) => `${verdict} ${about}`);
}

async function workOff(book: Book): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
  await foldRuns(roomsOf(book).store);
}

for (const backend of backends) {
  describe(backend, () => {
    test("a new book is ok, and says so of each of its parts", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work, deaf, give], clock });
      const none = { count: 0, more: false };

      const { at, size, ...found } = await book.health();

      assert.equal(at, clock.now());
      assert.ok(size !== null && size.bytes > 0);
      assert.deepEqual(found, {
        verdict: "ok",
        reasons: [],
        jobs: { waiting: none, queued: none, running: none, oldestDue: null },
        runs: { ended: 0, failed: 0 },
        schedules: { late: none, next: null },
        deadLetters: none,
        calls: { scheduled: none, running: none, failed: none },
        listeners: { count: 0, items: [] },
        sinks: { count: 0, items: [] },
        sessionsRunning: 1,
        paused: { queues: [], names: [] },
        dropped: { runs: 0, logs: 0, events: 0 },
      });
    });

    test("what is open, failed, late, behind and paused is counted, of the tenant that asks alone", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work, deaf, give], clock });
      for (let n = 0; n < 3; n++) await book.jobs.enqueue(work, { fails: n > 0 });
      await book.events.publish("said.one", null);
      await workOff(book);
      const first = await book.jobs.enqueue(work, {});
      await clock.advance("1s");
      await book.jobs.enqueue(work, {}, { priority: 5 });
      await book.jobs.enqueue(work, {}, { in: "1h" });
      await book.jobs.enqueue(work, {}, { queue: "held" });
      await book.queues.pause("held", "a move");
      await book.queues.pause("empty");
      await book.listeners.pause("deaf");
      await book.events.publish("said.two", null);
      await book.events.publish("given.one", null);
      await book.schedules.create("soon", { every: "1h", job: work });
      await book.calls.submit({ url: "https://stock.example/reserve", in: "1d" });
      const cancelled = await book.calls.submit({ url: "https://stock.example/reserve", in: "1d" });
      await book.calls.cancel(cancelled.id);
      await clock.advance("10m");

      const found = await book.health();

      const counts = ({ jobs, deadLetters, calls, schedules }: BookHealth): number[] =>
        [
          jobs.waiting,
          jobs.queued,
          jobs.running,
          deadLetters,
          calls.scheduled,
          calls.running,
          calls.failed,
          schedules.late,
        ].map(({ count }) => count);
      // Waiting: the delayed job and the call.
      assert.deepEqual(counts(found), [2, 5, 0, 1, 1, 0, 0, 0]);
      assert.deepEqual(found.runs, { ended: 4, failed: 3 });
      assert.deepEqual(
        { ...found.jobs.oldestDue, dueAt: 0 },
        { id: first.id, name: "work", queue: "default", dueAt: 0, seconds: 601 },
      );
      assert.equal(found.schedules.next?.name, "soon");
      const behind = { events: 1, more: false, seconds: 600 };
      assert.deepEqual(found.listeners, { count: 1, items: [{ name: "deaf", ...behind, paused: true }] });
      assert.deepEqual(found.sinks, { count: 1, items: [{ name: "give", ...behind, paused: false }] });
      const at = clock.now() - 600_000;
      assert.deepEqual(found.paused, {
        queues: [
          { name: "empty", pausedAt: at, note: null, holds: false },
          { name: "held", pausedAt: at, note: "a move", holds: true },
        ],
        // Nobody has parked its delivery yet.
        names: [{ name: "listener:deaf", pausedAt: at, note: null, holds: false }],
      });
      assert.equal(found.verdict, "trouble");
      assert.deepEqual(reasonsOf(found), [
        "trouble jobs",
        "attention runs",
        "attention dead-letters",
        "attention listeners",
        "attention sinks",
        "attention queues",
      ]);
      assert.match(
        found.reasons[0]?.because ?? "",
        /^work in the queue "default" has been due for 10 minutes .* nothing runs/,
      );

      const other = await book.tenant("acme").health();
      assert.deepEqual([counts(other), other.verdict, other.size, other.dropped], [Array(8).fill(0), "ok", null, null]);
    });

    test("a schedule that nobody has fired for a minute is late, and that is trouble", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work], clock });
      await book.schedules.create("hourly", { every: "1h", job: work });

      await clock.advance("1h");
      const due = await book.health();
      await clock.advance("2m");
      const late = await book.health();

      assert.deepEqual([due.schedules.late.count, due.verdict], [0, "ok"]);
      assert.deepEqual([late.schedules.late.count, reasonsOf(late)], [1, ["trouble schedules"]]);
    });

    test("what is paused, waits for its group or is another tenant's is not due; what waits for somebody to move it into the line is", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work], clock });
      await book.queues.pause("held");
      await book.jobs.enqueue(work, {}, { queue: "held" });
      await book.tenant("acme").jobs.enqueue(work, {});
      await book.groups.create({ mode: "sequential" }, (add) => {
        add.add(work, {}, { queue: "held" });
        add.add(work, {});
      });
      await clock.advance("1h");
      assert.equal((await book.health()).jobs.oldestDue, null);

      const delayed = await book.jobs.enqueue(work, {}, { in: "1m" });
      assert.equal((await book.health()).jobs.oldestDue, null);
      await clock.advance("3m");

      // No process works, so nobody has moved it into the line.
      assert.deepEqual((await book.health()).jobs.oldestDue?.id, delayed.id);
      assert.equal((await book.health()).jobs.oldestDue?.seconds, 120);
    });

    test("nothing is counted beyond ten thousand, and a job of low priority behind them is found all the same", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work, waits], clock });
      const old = await book.jobs.enqueue(waits, {}, { queue: "z", priority: -9 });
      await clock.advance("2h");
      for (let n = 0; n < 2; n++) {
        await book.jobs.enqueueMany(
          work,
          Array.from({ length: limits.bulkRowsMax }, () => ({})),
          { queue: n === 0 ? "a" : "z" },
        );
      }

      const { jobs, verdict } = await book.health();

      assert.deepEqual(jobs.queued, { count: limits.countedMax, more: true });
      assert.deepEqual([jobs.oldestDue?.id, verdict], [old.id, "trouble"]);
    });

    test("beside many jobs it reads no table whole", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [work, deaf], clock: manualClock() });
      await book.jobs.enqueue(work, {}, { in: "1h" });
      await book.events.publish("said.one", null);

      const steps = await plansOf(roomsOf(book).store, url, () => book.health());

      for (const index of [
        "jobs_to_claim",
        "jobs_standing_by",
        "jobs_running",
        "dead_letters_open",
        "calls_of_tenant",
      ]) {
        assert.ok(
          steps.some((step) => step.includes(index)),
          `${index}:\n${steps.join("\n")}`,
        );
      }
      assert.deepEqual(wholeReads(steps), []);
    });
  });
}
