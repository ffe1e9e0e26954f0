import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const plain = job("plain", { attempts: 2, backoff: ["1h"], run: () => undefined });
const once = job("once", { attempts: 1, run: () => undefined });
const use = [plain, once];

for (const backend of backends) {
  describe(backend, () => {
    test("a failed job is tried again by hand, at once and beyond its attempts", async (t) => {
      const at = await openEngine(t, backend, { use });
      const first = await at.jobs.enqueue(once, { n: 1 }, { tags: ["x"], priority: 3, queue: "q" });
      await fail(at);

      const second = await at.jobs.retry(first.id);
      await fail(at);
      const third = await at.jobs.retry(second.id);

      const chain = await at.jobs.chain(first.id);
      assert.deepEqual(second, { id: chain[1]?.id, name: "once", status: "queued", created: true });
      assert.deepEqual(
        chain.map(({ id, status, attempt, attempts, origin }) => [id, status, attempt, attempts, origin]),
        [
          [first.id, "failed", 1, 1, "enqueued"],
          [second.id, "failed", 2, 2, "manual"],
          [third.id, "queued", 3, 3, "manual"],
        ],
      );
      for (const { params, tags, priority, queue } of chain) {
        assert.deepEqual([params, tags, priority, queue], [{ n: 1 }, ["x"], 3, "q"]);
      }
      await assertInvariants(at);
    });

    test("what failed for good is told from what was tried again", async (t) => {
      const at = await openEngine(t, backend, { use });
      const retried = await at.jobs.enqueue(plain, {});
      const given = await at.jobs.enqueue(once, {});
      await fail(at);
      await fail(at);

      const list = async (retriedToo?: boolean): Promise<string[]> => {
        const filter = retriedToo === undefined ? {} : { retried: retriedToo };
        return (await at.jobs.list({ status: "failed", ...filter })).items.map(({ id }) => id);
      };

      assert.deepEqual(await list(), [given.id, retried.id]);
      assert.deepEqual(await list(false), [given.id]);
      assert.deepEqual(await list(true), [retried.id]);
    });

    test("a retry by hand continues the last job of the chain, whichever of it is named", async (t) => {
      const at = await openEngine(t, backend, { use });
      const first = await at.jobs.enqueue(once, {});
      await fail(at);
      const second = await at.jobs.retry(first.id);
      await fail(at);

      const third = await at.jobs.retry(first.id);

      assert.equal((await at.jobs.get(third.id)).retryOf, second.id);
    });

    test("a retry by hand is refused while one is waiting, queued or running, and so is a second one", async (t) => {
      const at = await openEngine(t, backend, { use });
      const first = await at.jobs.enqueue(plain, {});
      await fail(at);
      const { retriedBy } = await at.jobs.get(first.id);

      const taken = {
        code: "conflict",
        message: new RegExp(`job ${retriedBy} is waiting and already continues ${first.id}`),
      };
      await assert.rejects(at.jobs.retry(first.id), taken);
      await assert.rejects(at.jobs.retry(retriedBy ?? ""), {
        code: "conflict",
        message: /is waiting: wait for it, or cancel it first/,
      });
      await at.jobs.cancel(retriedBy ?? "");
      const manual = await at.jobs.retry(first.id);
      await assert.rejects(at.jobs.retry(first.id), {
        code: "conflict",
        message: new RegExp(`job ${manual.id} is queued`),
      });
      await at.claim(1);
      await assert.rejects(at.jobs.retry(first.id), {
        code: "conflict",
        message: new RegExp(`job ${manual.id} is running`),
      });
    });

    test("of two retries by hand at the same time one is refused", async (t) => {
      const { book } = await openTest(t, backend, { use: [once] });
      const { id } = await book.jobs.enqueue(once, {});
      await book.jobs.cancel(id);

      const both = await Promise.allSettled([
        book.jobs.retry(id),
        book.jobs.retry(id),
        book.write((tx) => tx.jobs.retry(id)),
      ]);

      assert.equal(both.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal((await book.jobs.chain(id)).length, 2);
    });

    test("a cancelled job can be tried again, a completed one cannot", async (t) => {
      const at = await openEngine(t, backend, { use });
      const cancelled = await at.jobs.enqueue(plain, {});
      await at.jobs.cancel(cancelled.id);
      const done = await at.jobs.enqueue(plain, {}, { queue: "done" });
      await at.end((await at.claimFrom("done")) as ClaimedJob, { status: "success" });

      const again = await at.jobs.retry(cancelled.id);

      assert.equal((await at.jobs.get(again.id)).status, "queued");
      const message = `job ${done.id} is completed: enqueue a new job to do it again`;
      await assert.rejects(at.jobs.retry(done.id), { code: "conflict", message });
      await assert.rejects(at.jobs.retry("nope"), { code: "not_found" });
    });

    test("a retry by hand takes the key back, and says who has it when it is gone", async (t) => {
      const at = await openEngine(t, backend, { use });
      const first = await at.jobs.enqueue(once, {}, { key: "k" });
      await fail(at);
      const rival = await at.jobs.enqueue(once, {}, { key: "k" });
      assert.equal(rival.created, true);

      const message = new RegExp(`key "k" of once is taken by job ${rival.id}, which is queued`);
      await assert.rejects(at.jobs.retry(first.id), { code: "conflict", message });
      await at.jobs.cancel(rival.id);
      await at.jobs.retry(first.id);

      const kept = await at.jobs.enqueue(once, {}, { key: "k" });
      assert.deepEqual([kept.created, (await at.jobs.get(first.id)).retriedBy], [false, kept.id]);
    });

    test("a retry keeps the key through its wait, so that the work stays one", async (t) => {
      const at = await openEngine(t, backend, { use });
      const first = await at.jobs.enqueue(plain, {}, { key: "k" });
      await fail(at);

      const again = await at.jobs.enqueue(plain, {}, { key: "k" });

      assert.deepEqual([again.created, again.id], [false, (await at.jobs.get(first.id)).retriedBy]);
    });
  });
}

async function fail(at: TestEngine): Promise<void> {
  const [claimed] = await at.claim(1);
  await at.end(claimed as ClaimedJob, { status: "error", error: { type: "Error", message: "no", trace: null } });
}
