import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { claim, type Claimer } from "../../src/jobs/claim/claim.ts";
import { hostChannel } from "../../src/jobs/job.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Tx } from "../../src/storage/store.ts";
import { job, manualClock, type JobRecord } from "../../src/index.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { assertTrueReasons } from "../jobs/true-reasons.ts";
import { wakesOf } from "../jobs/wakes-of.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

type Account = { readonly account: string; readonly n?: number };
const run = (_params: Account): void => undefined;
const plain = job("plain", { run });
const single = job("single", { concurrency: 1, attempts: 1, run });
const keyed = job("keyed", { limit: { key: ({ account }) => account, concurrency: 1 }, attempts: 1, run });
const both = job("both", {
  concurrency: 2,
  limit: { key: ({ account }) => account, concurrency: 1 },
  attempts: 1,
  run,
});
const rated = job("rated", { rate: { max: 2, per: "1s" }, attempts: 1, run });
const use = [plain, single, keyed, both, rated];
const a = { account: "a" };

for (const backend of backends) {
  describe(backend, () => {
    test("a job waits for its time and is queued when the time has come, not before", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(plain, a, { in: 1000 });
      const by = at.claimer();

      const early = await at.turn(5, by, { lookForDue: true });
      await at.clock.advance(999);
      const stillEarly = await at.turn(5, by, { lookForDue: true });
      await at.clock.advance(1);
      const due = await at.turn(5, by, { lookForDue: true });

      assert.deepEqual([early.claim.jobs.length, stillEarly.claim.jobs.length], [0, 0]);
      assert.equal(early.dueAt, (await at.jobs.get(id)).availableAt);
      assert.deepEqual(
        due.claim.jobs.map((each) => each.id),
        [id],
      );
      assert.equal(due.dueAt, null);
    });

    test("a worker starts a delayed job at its time without being woken or polling", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      const worker = await book.startWorker();
      const { id } = await book.jobs.enqueue(plain, a, { in: 700 });
      await worker.idle();

      await clock.advance(699);
      await worker.idle();
      const before = await book.jobs.get(id);
      await clock.advance(1);
      await worker.idle();

      assert.equal(before.status, "waiting");
      assert.equal((await book.jobs.get(id)).status, "completed");
    });

    for (const definition of [single, keyed]) {
      test(`a job over the limit of ${definition.name} is parked on contact and let in by the one that ends`, async (t) => {
        const at = await openEngine(t, backend, { use });
        const made = await at.jobs.enqueueMany(definition, [a, a, a]);
        await at.jobs.enqueue(plain, a);

        const first = await at.claim(5);
        const parked = await states(at);
        await at.end(first[0] as never, { status: "success" });
        const after = await states(at);

        assert.deepEqual(
          first.map((each) => each.name),
          [definition.name, "plain"],
        );
        assert.deepEqual(parked, ["running", "key", "key", "running"]);
        assert.deepEqual(after, ["completed", "queued", "key", "running"]);
        assert.equal((await at.claim(5)).map((each) => each.id).join(), made[1]?.id);
        await assertTrueReasons(at);
      });
    }

    test("jobs of other keys and of other tenants pass one that is parked", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(keyed, [a, a, { account: "b" }]);
      await at.tenant("acme").jobs.enqueue(keyed, a);

      const claimed = await at.claim(10);

      assert.deepEqual(claimed.map((each) => [each.tenant_id, each.limit_key]).toSorted(byText), [
        ["acme", "keyed\na"],
        ["default", "keyed\na"],
        ["default", "keyed\nb"],
      ]);
    });

    for (const leave of [
      "cancelled",
      "delayed by replace",
      "paused",
      "parked by its other limit",
      "unhosted",
    ] as const) {
      test(`a slot that the next in line does not take, because it is ${leave}, goes to the one after it`, async (t) => {
        const at = await openEngine(t, backend, { use });
        const other = leave === "parked by its other limit";
        const [first, second, third] = await at.jobs.enqueueMany(both, accounts("a", other ? "b" : "c", "d"));
        const filler = await at.jobs.enqueue(both, { account: "b" }, { priority: 1 });
        const running = await at.claim(10);
        assert.deepEqual(
          running.map((each) => each.id),
          [filler.id, first?.id],
        );
        await at.jobs.enqueue(both, { account: "x" }, { key: "k", priority: 2 });
        assert.equal((await at.claim(10)).length, 0);
        // Now x, then second, then third wait for the name. Ending the first lets x in, which leaves.
        const x = (await all(at)).find((each) => each.key === "k") as JobRecord;
        await at.end(running[1] as never, { status: "success" });
        assert.equal((await at.jobs.get(x.id)).status, "queued");

        if (leave === "cancelled") await at.jobs.cancel(x.id);
        if (leave === "delayed by replace") {
          await at.jobs.enqueue(both, { account: "x" }, { key: "k", onConflict: "replace", in: "1h" });
        }
        if (leave === "paused") await at.jobs.pause("both");
        if (leave === "parked by its other limit") await at.jobs.cancel(x.id);
        if (leave === "unhosted") await at.claim(10, { ...at.claimer(), hosts: new Set(["plain"]) });

        // Every release wakes the workers, so they look until nothing is in line.
        const next = [...(await at.claim(10))];
        for (let looks = 0; looks < 5; looks++) next.push(...(await at.claim(10)));
        await assertTrueReasons(at);
        const reasons = (await states(at)).filter((each) => each !== "running" && each !== "completed");
        assert.deepEqual(
          [next.map((each) => each.id), reasons.toSorted()],
          {
            cancelled: [[second?.id], ["cancelled", "key"]],
            "delayed by replace": [[second?.id], ["key", "time"]],
            paused: [[], ["host", "host", "host"]],
            "parked by its other limit": [[third?.id], ["cancelled", "key"]],
            unhosted: [[second?.id], ["host", "key"]],
          }[leave],
        );
      });
    }

    test("the sweep lets in whom a slot that nobody gave back keeps out", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(single, [a, a]);
      await at.jobs.enqueueMany(keyed, [a, a]);
      await at.claim(10);
      assert.deepEqual(await states(at), ["running", "key", "running", "key"]);
      const untouched = await sweep(at.engine);

      // As if rows had been edited by hand.
      await at.run("delete from daybook_permit");
      const found = await sweep(at.engine);

      assert.deepEqual([untouched, found], [0, 2]);
      assert.deepEqual(await states(at), ["running", "queued", "running", "queued"]);
    });

    test("the sweep looks at every key, also when there are more than fit into one transaction", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(
        keyed,
        Array.from({ length: 350 }, (_, n) => ({ account: `a${n}` })),
      );
      await at.run(`update daybook_line set status = 'waiting', waits_for = 'key',
        waits_key = (select tenant_id || '\n' || limit_key from daybook_job job where job.seq = daybook_line.seq)`);

      const found = await sweep(at.engine);

      assert.equal(found, 350);
    });

    test("a job that nobody here runs is parked, and queued by a worker that does", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(plain, a);
      const stranger = { ...at.claimer(), hosts: new Set(["rated"]) };

      const nothing = await at.claim(5, stranger);
      const parked = await states(at);
      const lookingInVain = await at.turn(5, { ...stranger }, { lookForHosted: true });
      const host = await at.turn(5, at.claimer(), { lookForHosted: true });

      assert.deepEqual([nothing, parked], [[], ["host"]]);
      assert.deepEqual([lookingInVain.claim.jobs, lookingInVain.moreHosted], [[], false]);
      assert.deepEqual(
        host.claim.jobs.map((each) => each.id),
        [id],
      );
    });

    test("a worker that parks what it does not run tells those that do", async (t) => {
      const at = await openEngine(t, backend, { use });
      const tellsHosts = async (by: Claimer): Promise<boolean> => {
        const parks = (tx: Tx): Promise<unknown> => claim(tx, by, 5, []);
        return (await at.store.write((tx) => wakesOf(tx, parks))).includes(hostChannel);
      };
      await at.jobs.enqueue(plain, a);

      const stranger = await tellsHosts({ ...at.claimer(), hosts: new Set(["rated"]) });
      await at.jobs.resume("plain");
      await at.jobs.pause("plain");
      const host = await tellsHosts(at.claimer());

      assert.deepEqual([stranger, host, await states(at)], [true, false, ["host"]]);
    });

    test("a worker that sleeps takes what another process parked for it, without waiting for its sweep", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { use, clock });
      const { store } = await openTestStore(t, backend, { url });
      const worker = await book.startWorker();
      await book.queues.pause("default");
      const { id } = await book.jobs.enqueue(plain, a);
      await worker.idle();

      await store.write(async (tx) => {
        await tx.run(sql`update daybook_line set status = 'waiting', waits_for = 'host', waits_key = 'plain'`);
        await tx.run(sql`update daybook_lane set paused_at = null`);
        tx.wake(hostChannel);
      });

      // On SQLite the clock of the book must move for it to see the commits of others; by less than a sweep's time.
      for (let passed = 0; (await book.jobs.get(id)).status !== "completed"; passed++) {
        await (passed < 70 ? clock.advance(100) : new Promise((resolve) => setImmediate(resolve)));
      }
      await whileTimePasses(clock, book.close());
    });

    test("tenants take turns when a host comes, and a paused tenant holds nobody up", async (t) => {
      const at = await openEngine(t, backend, { use });
      for (const [tenant, count] of [
        ["a", 40],
        ["b", 40],
        ["c", 2],
        ["d", 1],
      ] as const) {
        await at.tenant(tenant).jobs.enqueueMany(
          plain,
          Array.from({ length: count }, () => a),
        );
      }
      await at.tenant("a").jobs.pause("plain");
      const stranger = { ...at.claimer(), hosts: new Set(["rated"]) };
      while ((await at.rows("select 1 from daybook_job_now where status = 'queued'")).length > 0)
        await at.claim(100, stranger);
      const by = { ...at.claimer(), hosts: new Set(["plain"]) };

      const first = await at.turn(10, by, { lookForHosted: true });

      assert.deepEqual([...new Set(first.claim.jobs.map((each) => each.tenant_id))].toSorted(), ["b", "c", "d"]);
      assert.equal(first.moreHosted, true);
      let turns = 0;
      for (let more = true; more && turns < 50; turns++) {
        const { moreHosted, claim } = await at.turn(10, by, { lookForHosted: true });
        more = moreHosted || claim.jobs.length > 0;
      }
      const left = await at.rows<{ tenant_id: string; n: number }>(
        "select tenant_id, count(*) as n from daybook_job_now where status = 'waiting' group by tenant_id",
      );
      assert.deepEqual(
        left.map((row) => ({ ...row })),
        [{ tenant_id: "a", n: 40 }],
      );
      assert.ok(turns < 50);
    });

    test("a rate's next window opens by itself, also for jobs that were parked after the worker had looked", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      const worker = await book.startWorker({ concurrency: 1 });
      await book.jobs.enqueueMany(rated, [a, a, a, a, a]);
      const done = async (): Promise<number> => {
        await worker.idle();
        return (await book.jobs.list({ status: "completed" })).items.length;
      };

      // Less time passes than there is between two sweeps.
      const counts = [await done()];
      for (const ms of [999, 1, 999, 1]) {
        await clock.advance(ms);
        counts.push(await done());
      }

      assert.deepEqual(counts, [2, 2, 4, 4, 5]);
    });

    test("a paused name's jobs are parked, and all of them are queued again by resume", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(plain, [a, a, a]);
      await at.jobs.pause("plain", "no mail today");
      await at.jobs.pause("plain", "no mail this week");

      const nothing = await at.claim(10);
      const parked = await states(at);
      await at.jobs.resume("plain");
      await at.jobs.resume("plain");

      assert.deepEqual([nothing, parked], [[], ["host", "host", "host"]]);
      assert.deepEqual(await states(at), ["queued", "queued", "queued"]);
      assert.equal((await at.claim(10)).length, 3);
    });
  });
}

async function all(at: TestEngine): Promise<JobRecord[]> {
  return (await at.jobs.list({ limit: 500 })).items.toReversed();
}

/** What each job waits for, or its status. */
async function states(at: TestEngine): Promise<string[]> {
  return (await all(at)).map((each) => each.waitsFor ?? each.status);
}

function accounts(...names: string[]): Account[] {
  return names.map((account) => ({ account }));
}

function byText(a: readonly unknown[], b: readonly unknown[]): number {
  return a.join() < b.join() ? -1 : 1;
}
