// Direct work waits for its lane to be empty and for its limits, and somebody must tell it: whoever ends a run there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import { settle } from "../../src/jobs/settle/settle.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { backends } from "../support/open-test.ts";
import { askForTurn, takeDirect, work } from "./direct.ts";
import { openEngine } from "./open-engine.ts";

const rated = job("rated", { rate: { max: 1, per: "1m" }, run: () => undefined });

test("postgres: direct work looks again when a run of its lane is ended by one that did not see it come", async (t) => {
  const at = await openEngine(t, "postgres", { use: [work] });
  await at.jobs.enqueue(work, {});
  const { seq, run_id: runId } = (await at.claim(1))[0] as ClaimedJob;
  const [settled, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ends = at.store.write(async (tx) => {
    await settle(tx, { kinds: {} }, [{ seq, runId, status: "success", durationMs: 1 }]);
    settled.resolve();
    await gate.promise;
  });
  await settled.promise;

  const turn = await askForTurn(at);
  const early = await takeDirect(at, turn);
  gate.resolve();
  await ends;

  assert.deepEqual([early.jobs.length, early.contended, early.more], [0, true, true]);
  assert.equal((await takeDirect(at, turn)).jobs.length, 1);
});

for (const backend of backends) {
  test(`${backend}: direct work rests while a run of its lane goes on`, async (t) => {
    const at = await openEngine(t, backend, { use: [work] });
    await at.jobs.enqueue(work, {});
    await at.claim(1);

    const { jobs, contended, more } = await takeDirect(at, await askForTurn(at));
    assert.deepEqual([jobs.length, contended, more], [0, false, false]);
  });

  test(`${backend}: direct work that its rate holds back says when to look again`, async (t) => {
    const at = await openEngine(t, backend, { use: [rated] });
    await at.jobs.enqueue(rated, {}, { queue: "other" });
    await at.claim(1);

    const turn = await askForTurn(at, { does: rated });
    const { jobs, opensAt } = await takeDirect(at, turn);
    assert.deepEqual([jobs.length, opensAt], [0, at.clock.now() + 60_000]);

    await at.clock.advance(60_000);
    assert.equal((await takeDirect(at, turn)).jobs.length, 1);
  });
}
