// A claim whose commit nobody confirmed: what it took is started, once, and what it did not take stays in line. And a claim
// that is under way when its worker is told to stop.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DaybookError } from "../../src/core/error.ts";
import type { Engine } from "../../src/jobs/engine.ts";
import { startWorker } from "../../src/jobs/worker/start-worker.ts";
import type { Store, Tx } from "../../src/storage/store.ts";
import { backends } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";
import { heldJob } from "./handlers.ts";
import { assertInvariants } from "./model.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

/** `work` is the claim; what it is given happens just before its commit. */
type Around = <T>(work: (last?: () => Promise<void>) => Promise<T>) => Promise<T>;

/** The engine, whose first claim that takes something goes through `around`. */
function firstClaim(at: TestEngine, around: Around): Engine {
  let seen = false;
  const write = (<T>(unit: (tx: Tx) => Promise<T>, options: Parameters<Store["write"]>[1]): Promise<T> => {
    const isTurn = options?.beat === false;
    if (!isTurn || seen) return at.store.write(unit, options);
    return at.rows("select seq from daybook_line where status = 'queued'").then((queued) => {
      if (queued.length === 0) return at.store.write(unit, options);
      seen = true;
      return around((last) =>
        at.store.write(async (tx) => {
          const done = await unit(tx);
          await last?.();
          return done;
        }, options),
      );
    });
  }) as Store["write"];
  return { ...at.engine, store: { ...at.store, write } };
}

const unknown = (): DaybookError => new DaybookError("unknown_outcome", "the connection was lost while committing");
const params = [{ n: 0 }, { n: 1 }, { n: 2 }];

for (const backend of backends) {
  describe(backend, () => {
    const fates: Record<string, Around> = {
      kept: async (work) => {
        await work();
        throw unknown();
      },
      "not kept": async () => {
        throw unknown();
      },
    };
    for (const [fate, around] of Object.entries(fates)) {
      test(`of a claim that was ${fate}, though nobody knows, each job runs once and none is lost`, async (t) => {
        const held = heldJob("held");
        const at = await openEngine(t, backend, { use: [held.job] });
        const made = await at.jobs.enqueueMany(held.job, params);
        const worker = await startWorker(firstClaim(at, around), { concurrency: 2 });
        await whileTimePasses(at.clock, held.whenBegun(2), 50);
        const running = await at.rows("select seq from daybook_line where status = 'running'");
        held.begun.forEach(({ succeed }) => succeed());
        (await held.whenBegun(3)).succeed();

        await worker.idle();

        assert.equal(running.length, 2, "no more than there are places");
        assert.deepEqual(
          held.begun.map((run) => (run.params as { n: number }).n),
          [0, 1, 2],
        );
        const found = await Promise.all(made.map(({ id }) => at.jobs.get(id)));
        assert.deepEqual(
          found.map(({ status, retriedBy, attempt }) => [status, retriedBy, attempt]),
          made.map(() => ["completed", null, 1]),
        );
        await assertInvariants(at);
        await worker.stop();
      });
    }

    test("a worker that stops while a claim is under way lets what it took run to its end", async (t) => {
      const held = heldJob("held");
      const at = await openEngine(t, backend, { use: [held.job] });
      const [claiming, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const engine = firstClaim(at, async (work) => {
        const done = await work();
        claiming.resolve();
        await gate.promise;
        return done;
      });
      const made = await at.jobs.enqueueMany(held.job, params);
      const starting = startWorker(engine, { concurrency: 2 });
      await claiming.promise;
      const worker = await starting;

      let stopped = false;
      const stopping = worker.stop().then(() => (stopped = true));
      gate.resolve();
      const { context, succeed } = await held.whenBegun(2);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([stopped, context.signal.aborted], [false, false]);
      held.begun[0]?.succeed();
      succeed();
      await stopping;

      const found = await Promise.all(made.map(({ id }) => at.jobs.get(id)));
      assert.deepEqual(
        found.map(({ status }) => status),
        ["completed", "completed", "queued"],
      );
      assert.equal(held.begun.length, 2);
    });

    test("a worker that stops before it knows what its claim took lets that run to its end, too", async (t) => {
      const held = heldJob("held");
      const at = await openEngine(t, backend, { use: [held.job] });
      const lost = Promise.withResolvers<void>();
      const engine = firstClaim(at, async (work) => {
        await work();
        lost.resolve();
        throw unknown();
      });
      await at.jobs.enqueueMany(held.job, params.slice(0, 1));
      const worker = await startWorker(engine, { concurrency: 1 });
      await lost.promise;

      let stopped = false;
      const stopping = worker.stop().then(() => (stopped = true));
      const { context, succeed } = await whileTimePasses(at.clock, held.whenBegun(1), 50);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([stopped, context.signal.aborted], [false, false]);
      succeed("in time");
      await stopping;

      const [found] = (await at.jobs.list()).items;
      assert.deepEqual([found?.status, found?.run?.result], ["completed", "in time"]);
    });
  });
}

// SQLite's only writer has answered when it is asked again.
test("postgres: a claim whose commit is still under way when its worker looks is waited for", async (t) => {
  const held = heldJob("held");
  const at = await openEngine(t, "postgres", { use: [held.job] });
  const [taken, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let claiming: Promise<unknown> | undefined;
  const engine = firstClaim(at, async (work) => {
    claiming = work(() => (taken.resolve(), gate.promise));
    await taken.promise;
    throw unknown();
  });
  await at.jobs.enqueue(held.job, {});
  const worker = await startWorker(engine, { concurrency: 1 });
  await whileTimePasses(at.clock, untilItWaits(at), 50);

  gate.resolve();
  await claiming;
  const { succeed } = await whileTimePasses(at.clock, held.whenBegun(1), 50);
  succeed();
  await worker.idle();

  assert.deepEqual(
    (await at.jobs.list()).items.map(({ status }) => status),
    ["completed"],
  );
  assert.equal(held.begun.length, 1);
  await worker.stop();
});

async function untilItWaits(at: TestEngine): Promise<void> {
  for (;;) {
    const rows = await at.rows(
      "select 1 as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (rows.length > 0) return;
  }
}
