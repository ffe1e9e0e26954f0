import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const work = job<{ n: number }>("work", { attempts: 1, backoff: ["10ms"], run: () => undefined });

type Options = Parameters<TestEngine["groups"]["create"]>[0];

for (const backend of backends) {
  describe(backend, () => {
    const begin = async (
      t: Parameters<typeof openEngine>[0],
      options: Options,
      count = 3,
      attempts = 1,
    ): Promise<{ at: TestEngine; id: string; status: () => Promise<string> }> => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.groups.create(options, (group) => {
        for (let n = 0; n < count; n++) group.add(work, { n }, { attempts });
      });
      return { at, id, status: async () => (await at.groups.get(id)).status };
    };
    const statuses = async (at: TestEngine, id: string): Promise<string> =>
      (await at.groups.members(id)).map(({ status }) => status).join(" ");
    const one = async (at: TestEngine): Promise<ClaimedJob> => {
      const [claimed, ...more] = await at.claim(10);
      assert.ok(claimed !== undefined && more.length === 0);
      return claimed;
    };

    test("a sequential group runs one after another and completes with the last", async (t) => {
      const { at, id, status } = await begin(t, { name: "nightly", mode: "sequential" });
      assert.equal(await statuses(at, id), "queued waiting waiting");

      for (let n = 0; n < 3; n++) {
        assert.equal(await status(), "open");
        await assertInvariants(at);
        const claimed = await one(at);
        assert.deepEqual(JSON.parse(claimed.params), { n });
        await at.end(claimed, { status: "success" });
      }

      const { progress, finishedAt, ...rest } = await at.groups.get(id);
      assert.deepEqual([progress.total, progress.completed, finishedAt], [3, 3, at.clock.now()]);
      assert.deepEqual(
        [rest.name, rest.mode, rest.onFailure, rest.status],
        ["nightly", "sequential", "stop", "completed"],
      );
      await assertInvariants(at);
    });

    test("a parallel group runs side by side and completes when all have", async (t) => {
      const { at, id, status } = await begin(t, { mode: "parallel" });

      const claimed = await at.claim(10);
      assert.equal(claimed.length, 3);
      for (const each of claimed.toReversed()) {
        assert.equal(await status(), "open");
        await at.end(each, { status: "success" });
      }

      assert.deepEqual([await status(), await statuses(at, id)], ["completed", "completed completed completed"]);
    });

    const policies = [
      ["sequential", "stop", "failed", "completed failed cancelled"],
      ["sequential", "skip", "partial", "completed failed skipped"],
      ["sequential", "continue", "partial", "completed failed completed"],
    ] as const;
    for (const [mode, onFailure, expected, members] of policies) {
      test(`${mode}, ${onFailure}: the group waits for a pending retry, then follows its policy`, async (t) => {
        const { at, id, status } = await begin(t, { mode, onFailure }, 3, 2);
        await at.end(await one(at), { status: "success" });
        await at.end(await one(at), { status: "error" });

        assert.deepEqual([await status(), await statuses(at, id)], ["open", "completed waiting waiting"]);
        await assertInvariants(at);
        await at.clock.advance(10);
        const { claim } = await at.turn(5, at.claimer(), { lookForDue: true });
        assert.equal(claim.jobs.length, 1);
        await at.end(claim.jobs[0] as ClaimedJob, { status: "error" });
        if (onFailure === "continue") await at.end(await one(at), { status: "success" });

        assert.deepEqual([await status(), await statuses(at, id)], [expected, members]);
        const runs = await at.rows<{ status: string }>("select status from daybook_run order by seq");
        const skipped = runs.filter((run) => run.status === "skipped").length;
        assert.equal(skipped, onFailure === "skip" ? 1 : 0);
        await assertInvariants(at);
      });
    }

    test("parallel, stop: what has not begun is cancelled, what runs is asked to end, and the group ends with it", async (t) => {
      const { at, id, status } = await begin(t, { mode: "parallel", onFailure: "stop" }, 3, 2);
      const [first, second] = await at.claim(2);
      await at.end(first as ClaimedJob, { status: "cancelled" });

      assert.deepEqual([await status(), await statuses(at, id)], ["open", "cancelled running cancelled"]);
      await assert.rejects(at.groups.add(id, work, { n: 9 }), { code: "conflict", message: /is ending/ });
      const [asked] = await at.rows<{ at: number }>(
        "select cancel_requested_at as at from daybook_job_now where status = 'running'",
      );
      assert.equal(asked?.at, at.clock.now());
      // It failed before it heard; it is not tried again all the same.
      await at.end(second as ClaimedJob, { status: "error" });

      assert.deepEqual([await status(), await statuses(at, id)], ["failed", "cancelled failed cancelled"]);
      await assertInvariants(at);
    });

    test("parallel, skip: what runs goes on and the rest is skipped; continue: everything runs", async (t) => {
      const skip = await begin(t, { mode: "parallel", onFailure: "skip" });
      const [first, second] = await skip.at.claim(2);
      await skip.at.end(first as ClaimedJob, { status: "error" });
      assert.deepEqual([await skip.status(), await statuses(skip.at, skip.id)], ["open", "failed running skipped"]);
      await skip.at.end(second as ClaimedJob, { status: "success" });
      assert.equal(await skip.status(), "partial");

      const on = await begin(t, { mode: "parallel", onFailure: "continue" });
      for (const claimed of await on.at.claim(3)) await on.at.end(claimed, { status: "error" });
      assert.deepEqual([await on.status(), await statuses(on.at, on.id)], ["partial", "failed failed failed"]);
    });

    test("a job that is added runs behind the others, and a finished group takes none", async (t) => {
      const { at, id, status } = await begin(t, { mode: "sequential" }, 1);
      const first = await one(at);
      const made = await at.groups.add(id, work, { n: 1 });
      assert.equal(made.status, "waiting");
      await at.end(first, { status: "success" });
      assert.equal(await status(), "open");
      const second = await one(at);
      assert.equal(second.id, made.id);
      await at.end(second, { status: "success" });

      assert.equal(await status(), "completed");
      await assert.rejects(at.groups.add(id, work, { n: 2 }), {
        code: "conflict",
        message: `group ${id} is completed and takes no more jobs: make a new group`,
      });
      await assert.rejects(at.groups.cancel(id), { code: "conflict", message: /is completed and cannot be cancelled/ });
    });

    test("cancelling a group ends what has not begun, asks what runs, and says so at the end", async (t) => {
      const { at, id, status } = await begin(t, { mode: "parallel", onFailure: "continue" });
      const [first] = await at.claim(1);

      assert.deepEqual(await at.groups.cancel(id), { id, status: "cancelling" });
      assert.deepEqual(await at.groups.cancel(id), { id, status: "cancelling" });
      assert.equal(await statuses(at, id), "running cancelled cancelled");
      await at.end(first as ClaimedJob, { status: "cancelled" });
      assert.equal(await status(), "cancelled");

      const waiting = await at.groups.create({ mode: "sequential" }, (group) => group.add(work, { n: 1 }));
      assert.deepEqual(await at.groups.cancel(waiting.id), { id: waiting.id, status: "cancelled" });
      await assertInvariants(at);
    });

    test("a job that was lost keeps its slot, and so does one of a shutdown", async (t) => {
      const { at, id, status } = await begin(t, { mode: "sequential" }, 2);
      await at.end(await one(at), { status: "lost" });
      assert.deepEqual([await status(), await statuses(at, id)], ["open", "queued waiting"]);
      await at.end(await one(at), { status: "cancelled", shutdown: true });
      assert.deepEqual([await status(), await statuses(at, id)], ["open", "queued waiting"]);
      await at.end(await one(at), { status: "success" });
      await at.end(await one(at), { status: "success" });

      assert.equal(await status(), "completed");
      await assertInvariants(at);
    });

    test("a retry by hand belongs to a group that is open, and leaves one that has ended alone", async (t) => {
      const { at, id, status } = await begin(t, { mode: "parallel", onFailure: "continue" }, 2);
      const [first, second] = await at.claim(2);
      await at.end(first as ClaimedJob, { status: "error" });
      await at.jobs.retry((first as ClaimedJob).id);
      await at.end(second as ClaimedJob, { status: "error" });
      assert.deepEqual([await status(), await statuses(at, id)], ["open", "queued failed"]);
      await at.end(await one(at), { status: "success" });
      assert.equal(await status(), "partial");

      await at.jobs.retry((second as ClaimedJob).id);
      await at.end(await one(at), { status: "success" });
      assert.deepEqual([await status(), await statuses(at, id)], ["partial", "completed failed"]);
      await assertInvariants(at);
    });

    test("a retry by hand in a row waits until the one whose turn it is has ended", async (t) => {
      const { at, id, status } = await begin(t, { mode: "sequential", onFailure: "continue" }, 4);
      const first = await one(at);
      await at.end(first, { status: "error" });
      const second = await one(at);

      const retried = await at.jobs.retry(first.id);
      assert.deepEqual([retried.status, await statuses(at, id)], ["waiting", "waiting running waiting waiting"]);
      assert.equal((await at.jobs.get(retried.id)).waitsFor, "group");
      assert.match((await at.jobs.explain(retried.id)).because[0] ?? "", /number 2 \(job .*\) is running/);
      // The end of one that has not begun is nobody's turn.
      const [, , , last] = await at.groups.members(id);
      await at.jobs.cancel(last?.id ?? "");
      assert.deepEqual([(await at.claim(10)).length, await statuses(at, id)], [0, "waiting running waiting cancelled"]);
      await assertInvariants(at);

      await at.end(second, { status: "success" });
      const again = await one(at);
      assert.equal(again.id, retried.id);
      await at.end(again, { status: "success" });
      await at.end(await one(at), { status: "success" });
      assert.deepEqual(
        [await status(), await statuses(at, id)],
        ["partial", "completed completed completed cancelled"],
      );
      await assertInvariants(at);
    });

    test("parallel, skip: what ran when another failed was not skipped, so a loss or a shutdown makes it again", async (t) => {
      const { at, id, status } = await begin(t, { mode: "parallel", onFailure: "skip" }, 4, 2);
      const [failing, lost, shut] = (await at.claim(3)) as [ClaimedJob, ClaimedJob, ClaimedJob];
      await at.jobs.cancel(failing.id);
      await at.end(failing, { status: "cancelled" });
      assert.equal(await statuses(at, id), "cancelled running running skipped");

      await at.end(lost, { status: "lost" });
      await at.end(shut, { status: "cancelled", shutdown: true });
      assert.deepEqual([await status(), await statuses(at, id)], ["open", "cancelled queued queued skipped"]);
      await assert.rejects(at.groups.add(id, work, { n: 9 }), { code: "conflict", message: /is ending/ });
      await assertInvariants(at);
      // A failure is one: it is not tried again, though it has an attempt left.
      for (let n = 0; n < 2; n++) await at.end((await at.claim(1))[0] as ClaimedJob, { status: "error" });

      assert.deepEqual([await status(), await statuses(at, id)], ["partial", "cancelled failed failed skipped"]);
      await assertInvariants(at);
    });

    test("a job and its group cancelled at once are both answered", async (t) => {
      const { at, id, status } = await begin(t, { mode: "parallel", onFailure: "continue" });
      const [member] = await at.groups.members(id);

      const [one, all] = await Promise.allSettled([at.jobs.cancel(member?.id ?? ""), at.groups.cancel(id)]);

      assert.equal(all.status, "fulfilled");
      assert.ok(one.status === "fulfilled" || (one.reason as { code: string }).code === "conflict");
      assert.deepEqual([await status(), await statuses(at, id)], ["cancelled", "cancelled cancelled cancelled"]);
    });

    test("a job of a row that has a time of its own waits for it when its turn comes", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.groups.create({ mode: "sequential" }, (group) => {
        group.add(work, { n: 0 });
        group.add(work, { n: 1 }, { in: "1m" });
      });
      await at.end(await one(at), { status: "success" });
      const [last] = (await at.groups.members(id)).slice(-1);
      assert.equal((await at.jobs.get(last?.id ?? "")).waitsFor, "time");
      await at.clock.advance(60_000);
      const { claim } = await at.turn(1, at.claimer(), { lookForDue: true });
      assert.equal(claim.jobs.length, 1);
    });

    test("a group of one tenant does not exist for another", async (t) => {
      const { at, id } = await begin(t, { mode: "parallel" });
      const other = at.tenant("other");
      const missing = { code: "not_found", message: `there is no group ${id}` };

      await assert.rejects(other.groups.get(id), missing);
      await assert.rejects(other.groups.members(id), missing);
      await assert.rejects(other.groups.cancel(id), missing);
      await assert.rejects(other.groups.add(id, work, { n: 1 }), missing);
      assert.deepEqual(await other.groups.list(), { items: [], next: null });
      assert.equal((await at.groups.list({ status: "open" })).items.length, 1);
    });

    test("a list of groups refuses what it does not know", async (t) => {
      const { at, id } = await begin(t, { mode: "parallel" });
      await at.groups.create({ mode: "parallel" }, (group) => group.add(work, { n: 1 }));
      const { next } = await at.groups.list({ limit: 1 });
      assert.equal((await at.groups.list({ after: next ?? "", limit: 1 })).items[0]?.id, id);

      const wrong: [object, RegExp][] = [
        [{ status: "opne" }, /group status "opne" is not known: did you mean "open"\? Known: open, completed/],
        [{ status: 5 }, /group status 5 is not known\. Known/],
        [{ after: "7" }, /"7" is not a cursor: give "next" of the page before/],
        [{ afetr: "x" }, /did you mean "after"\?/],
      ];
      for (const [filter, message] of wrong) {
        await assert.rejects(at.groups.list(filter), { code: "invalid", message });
      }
    });

    test("wrong groups are refused, and nothing is made", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      const wrong: [Options, (group: { add: (...args: never[]) => void }) => void, RegExp][] = [
        [{ mode: "sequential" }, () => undefined, /at least one job/],
        [{ mode: "both" } as never, (group) => group.add(...([work, { n: 1 }] as never[])), /mode "both" is not known/],
        [{ mode: "parallel", onFailure: "ignore" } as never, add(work), /onFailure "ignore" is not known/],
        [{ mode: "parallel", onfailure: "stop" } as never, add(work), /did you mean "onFailure"\?/],
        [{ mode: "parallel" }, add("wrok"), /does not know the job "wrok": did you mean "work"\?/],
        [{ mode: "parallel" }, add(work, { key: "k" }), /has a key/],
      ];
      for (const [options, build, message] of wrong) {
        await assert.rejects(book.groups.create(options, build), { code: "invalid", message });
      }
      assert.deepEqual([(await book.jobs.list()).items, (await book.groups.list()).items], [[], []]);

      function add(...[what, options]: [unknown, unknown?]) {
        return (group: { add: (...args: never[]) => void }) =>
          group.add(...([what, { n: 1 }, options ?? {}] as never[]));
      }
    });

    test("a group is part of the transaction that makes it", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      await assert.rejects(
        book.write(async (tx) => {
          await tx.groups.create({ mode: "parallel" }, (group) => group.add(work, { n: 1 }));
          throw new Error("no");
        }),
        /no/,
      );
      assert.deepEqual((await book.groups.list()).items, []);

      const { id } = await book.write((tx) =>
        tx.groups.create({ mode: "parallel" }, (group) => group.add(work, { n: 1 })),
      );
      const worker = await book.startWorker();
      await worker.idle();
      assert.equal((await book.groups.get(id)).status, "completed");
    });
  });
}
