// What is let in when an obstacle is gone, and by whom: nobody waits for what others cannot use.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { hostChannel, jobsChannel } from "../../src/jobs/job.ts";
import { resumeName } from "../../src/jobs/queues.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { takeTurn, type Turn, type TurnWork } from "../../src/jobs/worker/turn.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { assertTrueReasons } from "../jobs/true-reasons.ts";
import { wakesOf } from "../jobs/wakes-of.ts";
import { backends } from "../support/open-test.ts";

type Account = { readonly account: string };
const run = (_params: Account): void => undefined;
const plain = job("plain", { run });
const keyed = job("keyed", { limit: { key: ({ account }) => account, concurrency: 1 }, attempts: 1, run });
const rated = job("rated", { rate: { max: 2, per: "1m" }, run });
const wide = job("wide", { rate: { max: 500, per: "1m" }, run });
const pair = job("pair", {
  limit: { key: ({ account }) => account, concurrency: 1 },
  rate: { max: 1, per: "1m" },
  attempts: 1,
  run,
});
const use = [plain, keyed, rated, wide, pair];
const a = { account: "a" };
const many = (count: number): Account[] => Array.from({ length: count }, () => a);

// The ways in which a lane can be closed to a claimer.
const closed: Record<string, { close(at: TestEngine): Promise<void>; queues?: readonly string[] }> = {
  paused: { close: (at) => at.queues.pause("closed") },
  full: {
    async close(at) {
      await at.queues.limit("closed", { concurrency: 1 });
      await at.jobs.enqueue(plain, a, { queue: "closed", priority: 1 });
      assert.equal((await at.claimFrom("closed"))?.name, "plain");
    },
  },
  "over its rate": {
    async close(at) {
      await at.queues.limit("closed", { rate: { max: 1, per: "1d" } });
      await at.jobs.enqueue(plain, a, { queue: "closed", priority: 1 });
      assert.equal((await at.claimFrom("closed"))?.name, "plain");
    },
  },
  "served by nobody": { close: () => Promise.resolve(), queues: ["open"] },
};

for (const backend of backends) {
  describe(backend, () => {
    for (const [how, { close, queues }] of Object.entries(closed)) {
      test(`a free slot is not kept by those who wait for it in a lane that is ${how}`, async (t) => {
        const at = await openEngine(t, backend, { use });
        const by = { ...at.claimer(), queues: queues === undefined ? null : new Set(queues) };
        const first = await runningWithParked(at);
        await close(at);

        await at.end(first, { status: "success" });
        const next = await at.claim(10, by);

        assert.deepEqual(
          next.map((each) => [each.name, each.queue]),
          [["keyed", "open"]],
        );
        await assertTrueReasons(at);
      });
    }

    test("a worker leaves a job that waits for a host where it is when it does not serve the job's queue", async (t) => {
      const at = await openEngine(t, backend, { use });
      const elsewhere = await at.jobs.enqueue(plain, a, { queue: "b" });
      const stranger = { ...at.claimer(), hosts: new Set(["keyed"]) };
      const host = { ...at.claimer(), hosts: new Set(["plain"]), queues: new Set(["a"]) };
      await at.turn(10, stranger, { lookForHosted: true });

      const { moreHosted } = await at.turn(10, host, { lookForHosted: true });
      const { status } = await at.jobs.get(elsewhere.id);
      const here = await at.jobs.enqueue(plain, a, { queue: "a" });
      await at.turn(10, stranger);
      const found = await at.turn(10, host, { lookForHosted: true });
      const all = await at.turn(10, { ...host, queues: null }, { lookForHosted: true });

      assert.deepEqual([moreHosted, status], [false, "waiting"]);
      assert.deepEqual(idsOf(found), [here.id]);
      assert.deepEqual(idsOf(all), [elsewhere.id]);
    });

    test("a window lets in what its rate allows, the most urgent first, and the rest stays parked", async (t) => {
      const at = await openEngine(t, backend, { use });
      const by = at.claimer();
      await at.jobs.enqueueMany(rated, many(700));
      for (let turn = 0; turn < 4; turn++) await at.turn(10, by);
      const urgent = await at.jobs.enqueue(rated, a, { priority: 900 });
      await at.turn(10, by);
      assert.equal(await countOf(at, "queued"), 0);

      const started: string[][] = [];
      const queued: number[] = [];
      for (let window = 0; window < 3; window++) {
        await at.clock.advance(60_000);
        for (let turn = 0; turn < 3; turn++) {
          started.push(idsOf(await at.turn(1, by, { lookForDue: true })));
          queued.push(await countOf(at, "queued"));
        }
      }

      assert.deepEqual(
        started.map((ids) => ids.length),
        [1, 1, 0, 1, 1, 0, 1, 1, 0],
      );
      assert.equal(started[0]?.[0], urgent.id);
      assert.deepEqual(queued, [1, 0, 0, 1, 0, 0, 1, 0, 0]);
    });

    test("a large allowance is let in by and by, and is neither exceeded nor left", async (t) => {
      const at = await openEngine(t, backend, { use });
      const by = at.claimer();
      await at.run(`insert into daybook_rate_window (tenant_id, rate_key, window_at, used, let_in)
        values ('default', 'wide\n*', ${at.clock.now() - (at.clock.now() % 60_000)}, 500, 0)`);
      await at.jobs.enqueueMany(wide, many(1100));
      for (let turn = 0; turn < 5; turn++) await at.turn(10, by);
      assert.equal(await countOf(at, "queued"), 0);
      await at.clock.advance(60_000);
      await at.queues.pause("default");

      const letIn: number[] = [];
      for (let turn = 0; turn < 4; turn++) {
        await at.turn(10, by, { lookForDue: true });
        letIn.push(await countOf(at, "queued"));
      }
      await at.queues.resume("default");
      let started = 0;
      for (let turn = 0; turn < 8; turn++) started += idsOf(await at.turn(100, by, { lookForDue: true })).length;

      assert.deepEqual([letIn, started], [[300, 500, 500, 500], 500]);
    });

    test("a rate's start that one cannot use, because another limit stops it, is the next one's in the same window", async (t) => {
      const at = await openEngine(t, backend, { use });
      const by = at.claimer();
      const [busy] = await at.jobs.enqueueMany(pair, [a, a, a, { account: "b" }]);
      // The first takes both the key and, with the next, the window's only starts.
      const first = await at.turn(10, by);
      assert.deepEqual(idsOf(first), [busy?.id]);
      const other = (await at.jobs.list({ status: "waiting" })).items.find((each) =>
        JSON.stringify(each.params).includes("b"),
      );

      await at.clock.advance(60_000);
      const next: string[] = [];
      for (let turn = 0; turn < 4; turn++) next.push(...idsOf(await at.turn(10, by, { lookForDue: true })));

      assert.deepEqual(next, [other?.id]);
    });

    test("a rate is not kept by those who wait for it in a closed lane", async (t) => {
      const at = await openEngine(t, backend, { use });
      const by = at.claimer();
      await at.jobs.enqueueMany(rated, many(2));
      await at.turn(10, by);
      await at.jobs.enqueueMany(rated, many(20), { queue: "closed" });
      const [last] = await at.jobs.enqueueMany(rated, many(1), { queue: "open" });
      await at.turn(30, by);
      await at.queues.pause("closed");

      await at.clock.advance(60_000);
      const next = await at.turn(10, by, { lookForDue: true });

      assert.deepEqual(idsOf(next), [last?.id]);
    });

    test("resume of a name tells workers to look for more than it releases at once", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.pause("plain");

      const heard = await at.store.write((tx) => wakesOf(tx, (spied) => resumeName(spied, "plain")));

      assert.deepEqual(heard.toSorted(), [hostChannel, jobsChannel].toSorted());
    });

    test("a worker that releases what is due tells the others, unless it takes it all", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueue(plain, a, { in: 10, queue: "b" });
      await at.jobs.enqueue(plain, a, { in: 20, queue: "a" });
      const wakes = (queues: readonly string[]): Promise<string[]> => {
        const by = { ...at.claimer(), queues: new Set(queues) };
        return at.store.write((tx) =>
          wakesOf(tx, (spied) => takeTurn(spied, { kinds: {} }, by, { ...lookForDue, attempted: [] })),
        );
      };

      await at.clock.advance(10);
      const others = await wakes(["a"]);
      const none = await wakes(["a"]);
      await at.clock.advance(10);
      const own = await wakes(["a"]);

      assert.deepEqual([others, none, own], [[jobsChannel], [], []]);
    });

    test("the sweep lets in the first of each lane, too", async (t) => {
      const at = await openEngine(t, backend, { use });
      await runningWithParked(at);
      await at.queues.pause("closed");

      // As if rows had been edited by hand.
      await at.run("delete from daybook_permit");
      const found = await sweep(at.engine);

      assert.equal(found, 2);
      assert.deepEqual(
        (await at.claim(10)).map((each) => each.queue),
        ["open"],
      );
    });
  });
}

const lookForDue: Omit<TurnWork, "attempted"> = {
  endings: [],
  logs: [],
  progress: [],
  want: 5,
  alone: false,
  lookForDue: true,
  lookForHosted: false,
};

async function countOf(at: TestEngine, status: string): Promise<number> {
  const [row] = await at.rows<{ n: number }>(`select count(*) as n from daybook_job_now where status = '${status}'`);
  return row?.n ?? 0;
}

function idsOf({ claim }: Turn): string[] {
  return claim.jobs.map((each) => each.id);
}

/** One of `keyed` runs; four wait for its key in the lane `closed`, and after them one in `open`. */
async function runningWithParked(at: TestEngine): Promise<ClaimedJob> {
  await at.jobs.enqueue(keyed, a, { queue: "open" });
  const [first] = await at.claim(10);
  await at.jobs.enqueueMany(keyed, many(4), { queue: "closed" });
  await at.jobs.enqueue(keyed, a, { queue: "open" });
  assert.deepEqual(await at.claim(10), []);
  assert.ok(first);
  return first;
}
