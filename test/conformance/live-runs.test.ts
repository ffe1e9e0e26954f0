// How the runs of live listeners get into the book: beside the work, in batches, and counted when they do not.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { DaybookError } from "../../src/core/error.ts";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { limits } from "../../src/core/limits.ts";
import { rawSql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { openRuns } from "../../src/telemetry/runs.ts";
import { type RunWriter, openRunWriter } from "../../src/telemetry/run-writer.ts";
import type { EndedRun } from "../../src/telemetry/run-batch.ts";
import { type SessionKey, type Session, startSession, openSessions } from "../../src/telemetry/session.ts";
import { setLimit } from "../support/limit.ts";
import { backends, openTestStore, type Backend } from "../support/open-test.ts";

type Write = Store["write"];

type Desk = {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly writer: RunWriter;
  /** Stands between the writer and the store: what a test puts here is done instead of the next writes. */
  readonly instead: ((write: () => Promise<unknown>) => Promise<unknown>)[];
  /** How many transactions the writer has begun. */
  readonly writes: () => number;
  session: SessionKey;
  newSession(): Promise<SessionKey>;
  dropped(session?: SessionKey): Promise<Session["dropped"] | undefined>;
};

async function openDesk(t: TestContext, backend: Backend): Promise<Desk> {
  const clock = manualClock();
  const { store } = await openTestStore(t, backend, { clock });
  const newSession = (): Promise<SessionKey> => store.write((tx) => startSession(tx, thisProcess(), "{}"));
  const instead: Desk["instead"] = [];
  let writes = 0;
  const write: Write = async (unit, options) => {
    writes += 1;
    const does = instead.shift() ?? ((go) => go());
    return (await does(() => store.write(unit, options))) as never;
  };
  const desk: Desk = {
    store,
    clock,
    instead,
    newSession,
    writes: () => writes,
    session: await newSession(),
    writer: openRunWriter({ ...store, write }, () => desk.session),
    async dropped(session = desk.session) {
      const { items } = await openSessions(store, undefined).list();
      return items.find(({ id }) => id === session.id)?.dropped;
    },
  };
  return desk;
}

const failing = (code: "internal" | "busy"): Desk["instead"][number] => {
  return () => Promise.reject(new DaybookError(code, "the disk is tired"));
};

/** Timers fire when the clock moves; what they write takes turns of the loop, on PostgreSQL many. */
async function until(clock: ManualClock, holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await clock.nextTurn();
}

function endedRun(desk: Desk, more: Partial<EndedRun> = {}): EndedRun {
  return {
    tenant_id: "default",
    id: desk.store.ids(),
    kind: "listener",
    name: "lamp",
    session_seq: desk.session.seq,
    attempt: 1,
    started_at: desk.clock.now(),
    ended_at: desk.clock.now() + 5,
    duration_ms: 4.75,
    status: "success",
    error_type: null,
    error_message: null,
    error_trace: null,
    cause_run_id: null,
    root_run_id: null,
    event_id: null,
    topic: "light.hall",
    ...more,
  };
}

function line(run: EndedRun, message: string): Parameters<RunWriter["log"]>[0] {
  return { tenant_id: run.tenant_id, run_id: run.id, logged_at: 1, level: "info", message, fields: null };
}

const count = async (store: Store, table: "run" | "run_log"): Promise<number> =>
  Number((await store.read<{ n: number }>(rawSql(`select count(*) as n from daybook_${table}`)))[0]?.n);

for (const backend of backends) {
  describe(`runs of live listeners on ${backend}`, () => {
    test("a run is in the book a moment after it ended, with its lines, for its own tenant", async (t) => {
      const desk = await openDesk(t, backend);
      const mine = endedRun(desk, { event_id: desk.store.ids(), cause_run_id: "a", root_run_id: "b" });
      const error = { error_type: "TypeError", error_message: "no lamp", error_trace: "at home" };
      const theirs = endedRun(desk, { tenant_id: "acme", status: "error", ...error });

      desk.writer.log(line(mine, "first"));
      desk.writer.ended(mine);
      desk.writer.log(line(mine, "second"));
      desk.writer.ended(theirs);
      assert.equal(desk.writes(), 0, "nothing is written in the handler's own turn");
      await desk.clock.advance(limits.runFlushMs);
      await desk.writer.drain();

      const runs = openRuns(desk.store, "default");
      const acme = openRuns(desk.store, "acme");
      assert.deepEqual(await runs.get(mine.id), {
        id: mine.id,
        kind: "listener",
        name: "lamp",
        jobId: null,
        sessionId: desk.session.id,
        attempt: 1,
        event: { id: mine.event_id, topic: "light.hall" },
        app: null,
        registration: null,
        startedAt: mine.started_at,
        endedAt: mine.ended_at,
        durationMs: 4.75,
        status: "success",
        error: null,
        result: null,
        cause: { runId: "a", rootRunId: "b" },
      });
      assert.deepEqual(
        (await runs.logs(mine.id)).map(({ message }) => message),
        ["first", "second"],
      );
      const { error: told, event } = await acme.get(theirs.id);
      assert.deepEqual(
        [told, event],
        [
          { type: "TypeError", message: "no lamp", trace: "at home" },
          { id: null, topic: "light.hall" },
        ],
      );
      await assert.rejects(runs.get(theirs.id), { code: "not_found" });
      assert.deepEqual([desk.writes(), await desk.dropped()], [1, { runs: 0, logs: 0, events: 0 }]);
    });

    test("many go into few transactions, in their order, and draining waits for all of them", async (t) => {
      const desk = await openDesk(t, backend);
      const ended = Array.from({ length: 1200 }, () => endedRun(desk));

      for (const run of ended) desk.writer.ended(run);
      await desk.writer.drain();

      const rows = await desk.store.readHeavy<{ id: string }>(rawSql("select id from daybook_run order by seq"));
      assert.deepEqual(
        rows.map(({ id }) => id),
        ended.map(({ id }) => id),
      );
      assert.ok(desk.writes() <= 4, `${desk.writes()} transactions`);
    });

    test("runs that do not fit the queue and dropped events are counted on the session", async (t) => {
      const desk = await openDesk(t, backend);
      const blocked = Promise.withResolvers<void>();
      desk.instead.push((write) => blocked.promise.then(write));
      const run = endedRun(desk);

      // The first batch is under way and does not end; the queue fills behind it.
      for (let n = 0; n < limits.runBatchMax + limits.runQueueMax + 3; n++) desk.writer.ended(endedRun(desk));
      for (let n = 0; n < limits.runLogQueueMax + 2; n++) desk.writer.log(line(run, "line"));
      desk.writer.tooBusy(4);
      assert.deepEqual(desk.writer.dropped, { runs: 3, logs: 2, events: 4 });
      blocked.resolve();
      await desk.writer.drain();

      assert.deepEqual(await desk.dropped(), { runs: 3, logs: 2, events: 4 });
      assert.equal(await count(desk.store, "run"), limits.runBatchMax + limits.runQueueMax);
      assert.equal(await count(desk.store, "run_log"), limits.runLogQueueMax);
    });

    test("runs are written later when the book cannot be written for a while", async (t) => {
      const desk = await openDesk(t, backend);
      desk.instead.push(...Array.from({ length: 10 }, () => failing("busy")));

      desk.writer.ended(endedRun(desk));
      for (let n = 0; n < 11; n++) {
        await desk.clock.advance(5000);
        await until(desk.clock, () => desk.writes() > n);
        desk.writer.ended(endedRun(desk));
      }
      await desk.writer.drain();

      assert.deepEqual([await count(desk.store, "run"), await desk.dropped()], [12, { runs: 0, logs: 0, events: 0 }]);
    });

    test("a batch of runs that the book keeps refusing is dropped and counted, and the next batch is written", async (t) => {
      const desk = await openDesk(t, backend);
      desk.instead.push(failing("internal"), failing("internal"), failing("internal"));
      const lost = endedRun(desk);

      desk.writer.ended(lost);
      desk.writer.log(line(lost, "lost too"));
      for (let n = 0; n < 3; n++) {
        await desk.clock.advance(1000);
        await until(desk.clock, () => desk.writes() > n);
      }
      desk.writer.ended(endedRun(desk));
      await desk.clock.advance(1000);
      await desk.writer.drain();

      assert.deepEqual([await count(desk.store, "run"), await desk.dropped()], [1, { runs: 1, logs: 1, events: 0 }]);
    });

    test("a commit whose answer was lost is not written twice", async (t) => {
      const desk = await openDesk(t, backend);
      let written = false;
      desk.instead.push(async (write) => {
        await write();
        written = true;
        throw new DaybookError("unknown_outcome", "the connection broke");
      });
      const run = endedRun(desk);

      desk.writer.ended(run);
      desk.writer.log(line(run, "once"));
      desk.writer.tooBusy(2);
      await desk.clock.advance(limits.runFlushMs);
      await until(desk.clock, () => written);
      await desk.clock.advance(5000);
      await desk.writer.drain();

      assert.deepEqual([await count(desk.store, "run"), await count(desk.store, "run_log")], [1, 1]);
      assert.deepEqual(await desk.dropped(), { runs: 0, logs: 0, events: 2 });
    });

    test("draining ends in bounded time, and counts what is left", async (t) => {
      setLimit(t, "runDrainMs", 50);
      const desk = await openDesk(t, backend);
      desk.instead.push(() => new Promise(() => undefined));
      for (let n = 0; n < 5; n++) desk.writer.ended(endedRun(desk));

      await desk.writer.drain();

      assert.deepEqual(desk.writer.dropped, { runs: 5, logs: 0, events: 0 });
    });

    test("a session that was replaced keeps its own numbers", async (t) => {
      const desk = await openDesk(t, backend);
      const first = desk.session;
      desk.writer.tooBusy(2);
      await desk.writer.drain();
      desk.session = await desk.newSession();

      desk.writer.tooBusy(3);
      await desk.writer.drain();

      assert.deepEqual([(await desk.dropped(first))?.events, (await desk.dropped())?.events], [2, 3]);
    });
  });
}
