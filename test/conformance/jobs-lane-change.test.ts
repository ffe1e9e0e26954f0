// On PostgreSQL a queue may be limited or paused while claims and settles are under way in it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import { claim, type ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { pauseLane } from "../../src/jobs/queues.ts";
import { settle } from "../../src/jobs/settle/settle.ts";
import { openEngine } from "../jobs/open-engine.ts";

const work = job("work", { run: () => undefined });

test("a limit that is set while a claim is under way counts what it takes", async (t) => {
  const at = await openEngine(t, "postgres", { use: [work] });
  await at.jobs.enqueueMany(work, [{}, {}, {}, {}]);
  const gate = Promise.withResolvers<undefined>();
  const claimed = Promise.withResolvers<undefined>();
  const claiming = at.store.write(async (tx) => {
    const taken = await claim(tx, at.claimer(), 3, []);
    claimed.resolve(undefined);
    await gate.promise;
    return taken.jobs.length;
  });
  await claimed.promise;

  const limiting = at.queues.limit("default", { concurrency: 1 });
  gate.resolve(undefined);
  assert.equal(await claiming, 3);
  await limiting;

  assert.equal((await at.jobs.list({ status: "running" })).items.length, 3);
  assert.deepEqual(await at.claim(5), []);
});

test("a limit that is set while a run is being settled counts only what still runs", async (t) => {
  const at = await openEngine(t, "postgres", { use: [work] });
  await at.jobs.enqueueMany(work, [{}, {}, {}, {}]);
  const [first] = await at.claim(2);
  const gate = Promise.withResolvers<undefined>();
  const settled = Promise.withResolvers<undefined>();
  const settling = at.store.write(async (tx) => {
    const { seq, run_id: runId } = first as ClaimedJob;
    await settle(tx, at.engine, [{ seq, runId, status: "success", durationMs: 1 }]);
    settled.resolve(undefined);
    await gate.promise;
  });
  await settled.promise;

  const limiting = at.queues.limit("default", { concurrency: 2 });
  gate.resolve(undefined);
  await Promise.all([settling, limiting]);

  assert.deepEqual(await at.rows("select status from daybook_job_now order by seq"), [
    { status: "completed" },
    { status: "running" },
    { status: "queued" },
    { status: "queued" },
  ]);
  assert.equal((await at.claim(5)).length, 1);
});

test("a queue that somebody is changing is left for the next look", async (t) => {
  const at = await openEngine(t, "postgres", { use: [work] });
  await at.jobs.enqueue(work, {});
  const gate = Promise.withResolvers<undefined>();
  const paused = Promise.withResolvers<undefined>();
  const pausing = at.store.write(async (tx) => {
    await pauseLane(tx, "default", null);
    paused.resolve(undefined);
    await gate.promise;
  });
  await paused.promise;

  const { jobs, more } = await at.claimFully(5);
  gate.resolve(undefined);
  await pausing;

  assert.deepEqual([jobs, more], [[], true]);
  assert.deepEqual(await at.claim(5), []);
});
