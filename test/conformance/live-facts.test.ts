// What the engine states about itself, as listeners hear it, and chains of events that go through jobs and processes.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, listener, manualClock, type Book, type ManualClock } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import * as session from "../support/session-row.ts";
import { tamper } from "../support/tamper.ts";

/** Moves the clock until it holds, but not far ahead of the book: a session whose beats are late claims nothing. */
async function until(clock: ManualClock, holds: () => boolean | Promise<boolean>, stepMs = 50): Promise<void> {
  const asked = session.until("what the test waits for", async () => (await holds()) || undefined);
  await session.whileTimePasses(clock, asked, stepMs);
}

const count = async (book: Book): Promise<number> => (await book.events.list()).items.length;

for (const backend of backends) {
  describe(`what the engine states on ${backend}`, () => {
    test("a live listener hears about failed jobs of its own tenant, and nothing is stored", async (t) => {
      const heard: string[] = [];
      const clock = manualClock();
      const work = job("work", {
        attempts: 1,
        run: ({ fails }: { fails: boolean }) => {
          if (fails) throw new Error("no");
        },
      });
      const onFail = listener("on-fail", {
        on: "job.failed",
        live: true,
        run: (payload, { event: { id, causeRunId }, tenant, book }) => {
          const { name, status } = payload as { name: string; status: string };
          heard.push(`${tenant} ${book.tenantId} ${name} ${status} ${id} ${causeRunId !== null}`);
        },
      });
      const { book } = await openTest(t, backend, { clock, use: [work, onFail] });
      const worker = await book.startWorker();

      await book.jobs.enqueue(work, { fails: false });
      await book.jobs.enqueue(work, { fails: true });
      await book.tenant("acme").jobs.enqueue(work, { fails: true });
      await worker.idle();
      await until(clock, () => heard.length > 0);

      assert.deepEqual([heard, await count(book)], [["default default work failed null true"], 0]);
    });

    test("when a durable listener hears it too it is stored, and heard once by each", async (t) => {
      const heard: string[] = [];
      const clock = manualClock();
      const work = job("work", { run: () => undefined });
      const use = [
        listener("live", {
          on: "job.completed",
          live: true,
          run: (_, { event }) => void heard.push(`live ${event.id}`),
        }),
        listener("kept", { on: "job.>", run: (_, { event }) => void heard.push(`kept ${event.id}`) }),
      ];
      const { book } = await openTest(t, backend, { clock, use: [work, ...use] });
      const worker = await book.startWorker();
      await book.jobs.enqueue(work, {});
      await worker.idle();
      await until(clock, () => heard.length > 1);

      const [said] = (await book.events.list()).items;
      assert.deepEqual(heard.toSorted(), [`kept ${said?.id}`, `live ${said?.id}`]);
    });

    test("a circle between jobs and a live listener to them ends at the depth limit", async (t) => {
      const clock = manualClock();
      const work = job("work", { run: () => undefined });
      const step = job("step", { run: (_: unknown, { book }) => book.jobs.enqueue(work, {}) });
      let runs = 0;
      const again = listener("again", {
        on: "job.completed",
        live: true,
        run(payload, { book }) {
          if ((payload as { name: string }).name !== "work") return undefined;
          runs++;
          return book.jobs.enqueue(step, {});
        },
      });
      const { book } = await openTest(t, backend, { clock, use: [work, step, again] });
      const worker = await book.startWorker();
      await book.jobs.enqueue(work, {});
      await until(clock, () => runs >= 21);
      for (let turns = 0; turns < 10; turns++) {
        await worker.idle();
        await clock.advance(50);
      }

      assert.equal(runs, 21);
      assert.equal(await count(book), 0);
    });

    test("an emitted circle through jobs ends at the depth limit too", async (t) => {
      const clock = manualClock();
      let emitted = 0;
      const relay = job("relay", {
        attempts: 1,
        run(_: unknown, { book }) {
          emitted++;
          book.events.emit("go");
        },
      });
      const again = listener("again", { on: "go", live: true, run: (_, { book }) => book.jobs.enqueue(relay, {}) });
      const { book } = await openTest(t, backend, { clock, use: [relay, again] });
      await book.startWorker();
      book.events.emit("go");
      await until(clock, async () => emitted > 40 || (await book.jobs.list({ status: "failed" })).items.length > 0);

      assert.equal(emitted, 21);
    });

    test("a job made by a live run continues its chain in any process, even before that run is written", async (t) => {
      const clock = manualClock();
      const inner = job("inner", { run: (_: unknown, { book }) => book.events.publish("done", null) });
      const outer = job("outer", { run: (_: unknown, { book }) => book.jobs.enqueue(inner, {}) });
      const make = listener("make", { on: "go", live: true, run: (_, { book }) => book.jobs.enqueue(outer, {}) });
      // The clock stands still: the row of the live run is not in the book when its job runs.
      const { book, url } = await openTest(t, backend, { clock, use: [make, outer, inner] });
      const { id } = await book.events.publish("go", null);
      while ((await book.jobs.list()).items.length === 0) await clock.nextTurn();

      // Not before: it has a heart of its own, and who waits for a file that is busy waits by a clock that stands still.
      const { book: other } = await openTest(t, backend, { url, use: [outer, inner] });
      const worker = await other.startWorker();
      await worker.idle();

      assert.deepEqual(
        (await other.runs.list()).items.filter(({ kind }) => kind === "listener"),
        [],
      );
      const done = (await other.events.list({ topic: "done" })).items[0];
      assert.deepEqual([done?.parentEventId, done?.rootEventId, done?.chainDepth], [id, id, 1]);
    });

    test("durable and live listeners of every tenant hear about a lost session", async (t) => {
      const heard: string[] = [];
      const clock = manualClock();
      const says = (who: string) => (payload: unknown) =>
        void heard.push(`${who} ${(payload as { id: string; host: string }).id}`);
      const use = [listener("live", { on: "session.*", live: true, run: says("live") })];
      const kept = listener("kept", { on: "session.lost", run: says("kept") });
      const { book: first, url } = await openTest(t, backend, { tenant: "acme", use: [kept] });
      await first.close();
      const { book } = await openTest(t, backend, { url, clock, use: [...use, kept], tenant: "zeta" });
      await tamper(
        book,
        (tx) => tx.sql`insert into daybook_session (id, host, pid, started_at, last_heartbeat_at, status)
          values ('gone', 'elsewhere', 7, ${tx.now}, ${tx.now}, 'running')`,
      );
      await book.startWorker();
      await until(clock, () => heard.length >= 3, 500);

      assert.deepEqual(heard.toSorted(), ["kept gone", "kept gone", "live gone"]);
      for (const tenant of ["acme", "zeta"]) {
        const [said] = (await book.tenant(tenant).events.list()).items;
        const { lastHeartbeatAt, ...rest } = (said?.payload ?? {}) as { lastHeartbeatAt?: number };
        assert.equal(typeof lastHeartbeatAt, "number");
        assert.deepEqual([said?.topic, rest], ["session.lost", { id: "gone", host: "elsewhere", pid: 7 }]);
      }
      assert.equal(await count(book.tenant("default")), 0);
    });
  });
}
