import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const work = job("work", { attempts: 2, backoff: ["1h"], run: (_params: { n: number }) => undefined });
const use = [work];

for (const backend of backends) {
  describe(backend, () => {
    test("a job is moved before or after another, first or last, and runs in that order", async (t) => {
      const ran: number[] = [];
      const noting = job("noting", { run: ({ n }: { n: number }) => void ran.push(n) });
      const { book } = await openTest(t, backend, { use: [noting] });
      const made = await book.jobs.enqueueMany(
        noting,
        [1, 2, 3, 4, 5, 6].map((n) => ({ n })),
      );
      const [one = "", two = "", three = "", four = "", five = ""] = made.map((each) => each.id);

      await book.jobs.move(five, { before: two }); // 1 5 2 3 4 6
      await book.jobs.move(one, { after: three }); // 5 2 3 1 4 6
      await book.write(async (tx) => {
        await tx.jobs.move(four, "first"); // 4 5 2 3 1 6
        await tx.jobs.move(two, "last"); // 4 5 3 1 6 2
      });
      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      assert.deepEqual(ran, [4, 5, 3, 1, 6, 2]);
    });

    test("what is made after a job was moved last stands behind it", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [one = "", two = ""] = await fill(at, 2);

      await at.jobs.move(one, "last");
      const [three = ""] = await fill(at, 1);

      assert.deepEqual(await order(at), [two, one, three]);
    });

    test("a job that waits has a place as well, and comes back to it", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [one = "", two = ""] = await fill(at, 2);
      const late = await at.jobs.enqueue(work, { n: 3 }, { in: "1m" });

      await at.jobs.move(late.id, { before: two });
      await at.jobs.move(one, { after: late.id });
      await at.clock.advance(60_000);
      const { claim } = await at.turn(3, at.claimer(), { lookForDue: true });

      assert.deepEqual(
        claim.jobs.map((each) => each.id),
        [late.id, one, two],
      );
    });

    test("a job with another priority goes last among those of it", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [one = "", two = "", three = ""] = await fill(at, 3);
      const [high = ""] = await fill(at, 1, { priority: 5 });

      const moved = await at.jobs.prioritise(one, 5);
      await at.jobs.prioritise(two, 0);

      assert.deepEqual([moved.id, moved.priority], [one, 5]);
      assert.deepEqual(await order(at), [high, one, two, three]);
      await assert.rejects(at.jobs.prioritise(one, 1001), { code: "invalid", message: /priority 1001/ });
    });

    test("a job that is moved to where it stands keeps its number", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [one = "", two = "", three = ""] = await fill(at, 3);
      const before = await at.dump();

      await at.jobs.move(one, "first");
      await at.jobs.move(two, { after: one });
      await at.jobs.move(two, { before: three });
      await at.jobs.move(three, "last");

      assert.deepEqual(await at.dump(), before);
    });

    test("a bad move is refused with what to do, and changes nothing", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [running = ""] = await fill(at, 1);
      await at.claim(1);
      const [one = "", two = ""] = await fill(at, 2);
      const [elsewhere = ""] = await fill(at, 1, { queue: "other" });
      const [high = ""] = await fill(at, 1, { priority: 7 });
      const [gone = ""] = await fill(at, 1);
      await at.jobs.cancel(gone);
      const theirs = await at.tenant("acme").jobs.enqueue(work, { n: 1 });
      const before = await at.dump();

      const refused: readonly [string, unknown, string, RegExp][] = [
        [one, { before: elsewhere }, "invalid", /in queue "default" and job .* in queue "other".*its own queue/],
        [one, { after: high }, "conflict", /has priority 0 and job .* 7: prioritise it to 7 first/],
        [one, { before: running }, "conflict", /is running and no longer stands in line/],
        [one, { before: gone }, "conflict", /is cancelled and no longer stands in line/],
        [one, { before: theirs.id }, "not_found", /there is no job/],
        [theirs.id, "first", "not_found", /there is no job/],
        ["nope", "first", "not_found", /there is no job nope/],
        [running, "first", "conflict", /is running and cannot be moved/],
        [gone, "first", "conflict", /is cancelled and cannot be moved/],
        [one, { before: one }, "invalid", /cannot be moved before itself/],
        [one, { before: two, after: two }, "invalid", /one place/],
        [one, {}, "invalid", /one place/],
        [one, { befor: two }, "invalid", /did you mean "before"/],
        [one, { before: 5 }, "invalid", /before 5 is not the id/],
        [one, "middle", "invalid", /cannot be moved to "middle": give "first"/],
        [one, undefined, "invalid", /cannot be moved to undefined/],
      ];
      for (const [id, to, code, message] of refused) {
        await assert.rejects(at.jobs.move(id, to as never), { code, message }, `${id} ${JSON.stringify(to)}`);
      }
      await assert.rejects(at.jobs.prioritise(running, 1), { code: "conflict", message: /cannot be prioritised/ });
      await assert.rejects(at.jobs.prioritise(theirs.id, 1), { code: "not_found" });
      assert.deepEqual(await at.dump(), before);
    });

    test("a job whose process was lost or shut down is made again where it stood, just before one that was moved onto its number", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [one = "", two = "", three = "", four = ""] = await fill(at, 4);
      await at.jobs.move(three, { before: two }); // 1 3 2 4
      const [first, second] = (await at.claim(2)) as [ClaimedJob, ClaimedJob];
      await at.jobs.move(four, { before: two });
      const numbers = await Promise.all([three, four].map(async (id) => (await at.jobs.get(id)).position));
      assert.equal(numbers[0], numbers[1]);

      await at.end(first, { status: "lost" });
      await at.end(second, { status: "cancelled", shutdown: true });

      const again = await Promise.all([one, three].map(async (id) => (await at.jobs.get(id)).retriedBy));
      assert.deepEqual(await order(at), [...again, four, two]);
      await assertInvariants(at);
    });

    test("a job that is replaced with another priority finds a number of its own", async (t) => {
      const at = await openEngine(t, backend, { use });
      const keyed = await at.jobs.enqueue(work, { n: 1 }, { key: "k" });
      const [two = ""] = await fill(at, 1);
      const [high = "", higher = ""] = await fill(at, 2, { priority: 5 });
      await at.jobs.move(keyed.id, { after: two });
      await at.jobs.move(higher, "first");
      const numbers = await Promise.all([keyed.id, higher].map(async (id) => (await at.jobs.get(id)).position));
      assert.equal(numbers[0], numbers[1]);

      await at.jobs.enqueue(work, { n: 1 }, { key: "k", priority: 5, onConflict: "replace" });

      assert.deepEqual(await order(at), [keyed.id, higher, high, two]);
      await assertInvariants(at);
    });

    test("normalise renumbers one queue of one tenant in unchanged order, and a dry run only counts", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [one = "", two = "", three = ""] = await fill(at, 3);
      await at.jobs.enqueue(work, { n: 4 }, { in: "1h" });
      const [high = ""] = await fill(at, 1, { priority: 5 });
      const acme = at.tenant("acme");
      const theirs = await acme.jobs.enqueue(work, { n: 1 });
      await at.jobs.move(one, "last");
      await at.jobs.move(three, { before: two });
      const before = await order(at);

      const dry = await at.queues.normalise("default", { dryRun: true });
      const kept = await at.dump();
      const done = await at.queues.normalise("default");
      const again = await at.queues.normalise("default");

      assert.deepEqual([dry.jobs, again], [5, { jobs: 5, changed: 0 }]);
      assert.deepEqual(done, dry);
      assert.notDeepEqual(await at.dump(), kept);
      assert.deepEqual(await order(at), before);
      const rows = await at.rows<{ position: number }>(
        "select position from daybook_job_now where tenant_id = 'default' order by priority desc, position",
      );
      assert.deepEqual(
        rows.map((row) => row.position),
        [50, 50, 150, 250, 350],
      );
      assert.equal(((await acme.jobs.get(theirs.id)).position ?? Number.NaN) % 100, 0);
      assert.equal((await at.jobs.place(high))?.place, 1);
      await assert.rejects(at.queues.normalise("nope"), { code: "not_found", message: 'there is no queue "nope"' });
      await assert.rejects(at.queues.normalise("default", { dry: true } as never), { code: "invalid" });
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

/** The order in which one worker would get them. */
async function order(at: TestEngine): Promise<string[]> {
  const rows = await at.rows<Pick<ClaimedJob, "id">>(
    `select id from daybook_job_now where tenant_id = 'default' and status in ('queued', 'waiting')
      order by priority desc, position, seq`,
  );
  return rows.map((row) => row.id);
}
