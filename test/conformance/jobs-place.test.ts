import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const work = job("work", { attempts: 1, run: (_params: { n: number }) => undefined });
const use = [work];

for (const backend of backends) {
  describe(backend, () => {
    test("a place counts who would be claimed before, in its own queue and tenant", async (t) => {
      const at = await openEngine(t, backend, { use });
      const acme = at.tenant("acme");
      await acme.jobs.enqueue(work, { n: 0 }, { priority: 9 });
      await fill(at, 3, { queue: "other" });
      const [one = "", two = "", three = ""] = await fill(at, 3);
      const [high = ""] = await fill(at, 1, { priority: 1 });
      await at.jobs.enqueue(work, { n: 0 }, { in: "1h" });

      await at.jobs.move(three, { before: two });

      const places = await Promise.all([high, one, three, two].map(async (id) => at.jobs.place(id)));
      assert.deepEqual(
        places,
        [1, 2, 3, 4].map((place) => ({ place, of: 4, startsAt: null })),
      );
    });

    test("what does not stand in line has no place, and what does not exist is not found", async (t) => {
      const at = await openEngine(t, backend, { use });
      const waits = await at.jobs.enqueue(work, { n: 0 }, { in: "1h" });
      const [runs = ""] = await fill(at, 1);
      await at.claim(1);
      const [gone = ""] = await fill(at, 1);
      await at.jobs.cancel(gone);

      for (const id of [waits.id, runs, gone]) assert.equal(await at.jobs.place(id), null);
      await assert.rejects(at.jobs.place("nope"), { code: "not_found", message: "there is no job nope" });
      await assert.rejects(at.tenant("acme").jobs.place(runs), { code: "not_found" });
    });

    test("while others are claimed and enqueued, every answer is a place that was true at one moment", async (t) => {
      const at = await openEngine(t, backend, { use });
      const ids = await fill(at, 200);
      const last = ids.at(-1) ?? "";
      const seen: { place: number; of: number }[] = [];
      let claiming = true;

      // Nobody comes in behind the last, so its place is always the length of the line.
      const reading = (async () => {
        while (claiming) seen.push((await at.jobs.place(last)) ?? { place: 0, of: 0 });
      })();
      for (let taken = 0; taken < 198; taken += 2) await at.claim(2);
      claiming = false;
      await reading;

      assert.ok(seen.length > 0);
      for (const { place, of } of seen) assert.equal(place, of);
      const places = seen.map(({ place }) => place);
      assert.deepEqual(
        places,
        places.toSorted((a, b) => b - a),
      );
      assert.deepEqual(await at.jobs.place(last), { place: 2, of: 2, startsAt: null });
    });

    test("the start is estimated from the last runs of the queue and how many run there now", async (t) => {
      const at = await openEngine(t, backend, { use });
      await fill(at, 1, { queue: "other" });
      await at.end((await at.claimFrom("other")) as ClaimedJob, { status: "success", durationMs: 9999 });
      await fill(at, 4);
      const claimed = await at.claim(4);
      const [one, two] = claimed as [ClaimedJob, ClaimedJob];
      await at.end(one, { status: "success", durationMs: 100 });
      await at.end(two, { status: "error", durationMs: 300 });
      const [first = "", second = "", third = ""] = await fill(at, 3);

      const now = at.clock.now();
      const estimates = await Promise.all([first, second, third].map(async (id) => at.jobs.place(id)));

      // 200 ms each, two at a time.
      assert.deepEqual(
        estimates.map((each) => (each?.startsAt ?? 0) - now),
        [100, 200, 300],
      );
      for (const each of claimed.slice(2)) await at.end(each, { status: "success", durationMs: 200 });
      assert.deepEqual((await at.jobs.place(second))?.startsAt, now + 200);
      await at.queues.pause("default");
      assert.deepEqual(await at.jobs.place(second), { place: 2, of: 3, startsAt: null });
    });

    test("the runs of another tenant are nothing to go by", async (t) => {
      const at = await openEngine(t, backend, { use });
      await fill(at, 1);
      await at.end((await at.claimFrom("default")) as ClaimedJob, { status: "success", durationMs: 100 });
      const acme = at.tenant("acme");
      const { id } = await acme.jobs.enqueue(work, { n: 1 });

      assert.deepEqual(await acme.jobs.place(id), { place: 1, of: 1, startsAt: null });
    });
  });
}

async function fill(
  at: TestEngine,
  count: number,
  options: { priority?: number; queue?: string } = {},
): Promise<string[]> {
  const params = Array.from({ length: count }, (_, n) => ({ n }));
  return (await at.jobs.enqueueMany(work, params, options)).map((each) => each.id);
}
