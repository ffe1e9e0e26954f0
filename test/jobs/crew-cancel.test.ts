import assert from "node:assert/strict";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim.ts";
import { createRuns, type RunsInHand } from "../../src/jobs/runs-in-hand.ts";
import { openEngine } from "./open-engine.ts";

test("when a job that was to run alone is cancelled before it began, the other workers hear that they may go on", async (t) => {
  const end = Promise.withResolvers<void>();
  const long = job("long", { run: () => end.promise });
  const at = await openEngine(t, "memory", { use: [long] });
  await at.jobs.enqueueMany(long, [{}, {}]);
  const [runs, waits] = (await at.claim(2)) as [ClaimedJob, ClaimedJob];
  let told = 0;
  const member = (changed: () => void): RunsInHand =>
    createRuns(at.engine, 1, { ended: () => undefined, changed, mayStart: () => true, direct: false });
  const [other, holder] = [member(() => void told++), member(() => undefined)];
  other.start([runs]);
  holder.start([{ ...waits, alone: 1 }]);
  assert.equal(other.crew.holdsAlone, true);

  holder.cancel(waits.run_id);

  assert.deepEqual([other.crew.holdsAlone, told], [false, 1]);
  end.resolve();
  await other.drained(Number.POSITIVE_INFINITY);
});
