import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

type Account = { readonly account: string };
const params = z.object({ account: z.string(), copies: z.number().default(1) });
const checked = job("checked", { params, attempts: 2, backoff: ["1h"], run: () => undefined });
const limited = job("limited", {
  params,
  attempts: 1,
  limit: { key: ({ account }: Account) => account, concurrency: 1 },
  run: () => undefined,
});
const rated = job("rated", {
  params,
  rate: { max: 1, per: "1h", key: ({ account }: Account) => account },
  run: () => undefined,
});
const use = [checked, limited, rated];

for (const backend of backends) {
  describe(backend, () => {
    test("the params of a job that has not started are replaced, and it keeps its place", async (t) => {
      const at = await openEngine(t, backend, { use });
      const queued = await at.jobs.enqueue(checked, { account: "a" });
      const waiting = await at.jobs.enqueue(checked, { account: "a" }, { in: "1h" });
      const before = await at.jobs.get(queued.id);

      const edited = await at.jobs.edit(queued.id, { account: "b" });
      await at.jobs.edit(waiting.id, { account: "c", copies: 3 });

      assert.deepEqual(edited, { id: queued.id, name: "checked", status: "queued" });
      assert.deepEqual(await at.jobs.get(queued.id), { ...before, params: { account: "b" } });
      const { status, waitsFor, params: now } = await at.jobs.get(waiting.id);
      assert.deepEqual([status, waitsFor, now], ["waiting", "time", { account: "c", copies: 3 }]);
    });

    test("what does not fit the definition is refused, and so is what is not there, another's, running or ended", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id: done } = await at.jobs.enqueue(checked, { account: "a" });
      await at.end((await at.claim(1))[0] as ClaimedJob, { status: "success" });
      const { id: running } = await at.jobs.enqueue(checked, { account: "a" });
      await at.claim(1);
      const { id } = await at.jobs.enqueue(checked, { account: "a" });
      const before = await at.dump();

      const next = { account: "b" };
      await assert.rejects(at.jobs.edit(id, { account: 5 }), { code: "invalid", message: /do not fit its schema/ });
      await assert.rejects(at.jobs.edit("nope", next), { code: "not_found", message: "there is no job nope" });
      await assert.rejects(at.tenant("acme").jobs.edit(id, next), { code: "not_found" });
      await assert.rejects(at.jobs.edit(running, next), { code: "conflict", message: /running and cannot be edited/ });
      await assert.rejects(at.jobs.edit(done, next), { code: "conflict", message: /completed and cannot be edited/ });
      assert.deepEqual(await at.dump(), before);
    });

    test("a retry goes on with the params of its chain", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(checked, { account: "a" });
      await at.end((await at.claim(1))[0] as ClaimedJob, { status: "error" });
      const { retriedBy } = await at.jobs.get(id);

      await assert.rejects(at.jobs.edit(retriedBy ?? "", { account: "b" }), {
        code: "conflict",
        message: /is a retry \(attempt 2\).*cancel it and enqueue a new job/,
      });
      await assertInvariants(at);
    });

    test("a job that waited for the limit of its old params runs with the new ones", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueue(limited, { account: "a" });
      const parked = await at.jobs.enqueue(limited, { account: "a" });
      await at.claim(2);
      assert.equal((await at.jobs.get(parked.id)).waitsFor, "key");

      const edited = await at.jobs.edit(parked.id, { account: "b" });

      assert.equal(edited.status, "queued");
      const [claimed] = await at.claim(1);
      assert.equal(claimed?.id, parked.id);
    });

    test("a job that waited for the rate of its old params runs with the new ones", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueue(rated, { account: "a" });
      const parked = await at.jobs.enqueue(rated, { account: "a" });
      await at.claim(2);
      assert.equal((await at.jobs.get(parked.id)).waitsFor, "time");

      await at.jobs.edit(parked.id, { account: "b" });

      assert.equal((await at.claim(1))[0]?.id, parked.id);
    });

    test("a job in line for a free slot that no longer needs it lets the next one in", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueue(limited, { account: "a" });
      const second = await at.jobs.enqueue(limited, { account: "a" });
      const third = await at.jobs.enqueue(limited, { account: "a" });
      const [first] = await at.claim(3);
      await at.end(first as ClaimedJob, { status: "success" });
      assert.deepEqual(
        [(await at.jobs.get(second.id)).status, (await at.jobs.get(third.id)).status],
        ["queued", "waiting"],
      );

      await at.jobs.edit(second.id, { account: "b" });

      const claimed = await at.claim(3);
      assert.deepEqual(
        claimed.map((each) => each.id),
        [second.id, third.id],
      );
    });

    test("a book that does not know the name takes the params on trust, unless limits follow from them", async (t) => {
      const { book, url } = await openTest(t, backend, { use });
      const plain = await book.jobs.enqueue(checked, { account: "a" });
      const bound = await book.jobs.enqueue(limited, { account: "a" });
      const { book: other } = await openTest(t, backend, { url, worker: false });

      await other.jobs.edit(plain.id, { anything: true });

      assert.deepEqual((await book.jobs.get(plain.id)).params, { anything: true });
      await assert.rejects(other.jobs.edit(bound.id, { account: "b" }), {
        code: "invalid",
        message: /follow from its params, and this book does not know limited: edit it in a program/,
      });
      await assert.rejects(
        book.write((tx) => tx.jobs.edit(bound.id, { account: 1 })),
        { code: "invalid" },
      );
      await book.write((tx) => tx.jobs.edit(bound.id, { account: "b" }));
      assert.deepEqual((await book.jobs.get(bound.id)).params, { account: "b" });
    });
  });
}
