// What cannot succeed is not tried again, and a time that cannot be meant is refused.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { event, giveUp, job } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a handler that gives up fails its job at once, whatever attempts are left, and says why", async (t) => {
      const cause = new Error("declined");
      const charge = job("charge", {
        attempts: 5,
        run() {
          throw giveUp("card 7 has expired", { cause });
        },
      });
      const { book } = await openTest(t, backend, { use: [charge] });
      const { id } = await book.jobs.enqueue(charge, {});

      await (await book.startWorker()).idle();

      const { status, attempt, retriedBy, run } = await book.jobs.get(id);
      assert.deepEqual([status, attempt, retriedBy, run?.status], ["failed", 1, null, "error"]);
      assert.deepEqual([run?.error?.type, run?.error?.message], ["GivenUp", "card 7 has expired"]);
      assert.match(run?.error?.trace ?? "", /declined/);
    });

    test("a failure before one that gives up is tried again, and the chain ends with the latter", async (t) => {
      let tries = 0;
      const charge = job("charge", {
        attempts: 5,
        backoff: ["0ms"],
        run() {
          if (++tries === 2) throw giveUp("no");
          throw new Error("not yet");
        },
      });
      const { book } = await openTest(t, backend, { use: [charge] });
      const { id } = await book.jobs.enqueue(charge, {});

      await (await book.startWorker()).idle();

      assert.deepEqual(
        (await book.jobs.chain(id)).map(({ attempt, run }) => [attempt, run?.error?.message]),
        [
          [1, "not yet"],
          [2, "no"],
        ],
      );
      assert.equal(tries, 2);
    });

    test("params that no longer fit their schema fail without a retry", async (t) => {
      let strict = false;
      let runs = 0;
      const params: StandardSchemaV1<{ n: number }> = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: (value) =>
            strict ? { issues: [{ message: "n is too small" }] } : { value: value as { n: number } },
        },
      };
      const checked = job("checked", { params, attempts: 4, run: () => void runs++ });
      const { book } = await openTest(t, backend, { use: [checked] });
      const { id } = await book.jobs.enqueue(checked, { n: 1 });
      strict = true;

      await (await book.startWorker()).idle();

      const { status, retriedBy, run } = await book.jobs.get(id);
      assert.deepEqual([status, retriedBy, run?.error?.type, runs], ["failed", null, "DependencyError", 0]);
      assert.match(run?.error?.message ?? "", /n is too small/);
    });

    test("Unix seconds where milliseconds are meant are refused, by whatever is asked for at a time", async (t) => {
      const work = job("work", { run: () => undefined });
      const happened = event("happened");
      const { book } = await openTest(t, backend, { use: [work, happened] });
      const at = 1_767_225_600;
      const asked: Record<string, () => Promise<unknown>> = {
        job: () => book.jobs.enqueue(work, {}, { at }),
        jobs: () => book.jobs.enqueueMany(work, [{}], { at }),
        event: () => book.events.publish(happened, {}, { at }),
        call: () => book.calls.submit({ url: "https://example.com", at }),
        schedule: () => book.schedules.create("once", { at, job: work }),
      };
      const message = /at is 1767225600, which looks like seconds: give milliseconds \(1767225600000 for 2026-01-01T/;

      for (const [what, ask] of Object.entries(asked)) {
        await assert.rejects(async () => ask(), { code: "invalid", message }, what);
      }
      assert.deepEqual((await book.jobs.list()).items, []);
      const { id } = await book.jobs.enqueue(work, {}, { at: at * 1000 });
      assert.equal((await book.jobs.get(id)).availableAt >= at * 1000, true);
    });
  });
}
