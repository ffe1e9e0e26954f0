// How long a worker looks: until it has seen everything, and no longer.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { claim } from "../../src/jobs/claim.ts";
import { rawSql } from "../../src/storage/sql.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, openTestStore, type Backend } from "../support/open-test.ts";
import type { TestContext } from "node:test";

const plain = job("plain", { run: () => undefined });
const stopped = job("stopped", { run: () => undefined });
const rated = job("rated", { rate: { max: 1, per: "1d" }, run: () => undefined });
const use = [plain, stopped, rated];
const numbers = (count: number): string =>
  `(with recursive g(n) as (select 1 union all select n + 1 from g where n < ${count}) select n from g) as g`;

for (const backend of backends) {
  describe(backend, () => {
    for (const [which, paused, queues] of [
      ["of other queues", "null", ["mine"]],
      ["that are paused", "1", undefined],
    ] as const) {
      test(`a worker finds the job behind 1,500 lanes ${which}`, async (t) => {
        const { book, fill } = await openAt(t, backend);
        await fill(
          `insert into lane (tenant_id, queue, paused_at) select 't' || n, 'other', ${paused} from ${numbers(1500)}`,
        );
        await fill(`${jobs} select tenant_id, 'i' || seq, seq, 'plain', seq * 100, ${values} from lane`);

        const done = await runsAtOnce(book, { queue: "mine" }, queues);

        assert.equal(done, "completed");
      });
    }

    for (const [which, name] of [
      ["whose name is paused", "stopped"],
      ["over their rate", "rated"],
    ] as const) {
      test(`a worker finds the job behind 16,000 ${which}`, async (t) => {
        const { book, fill } = await openAt(t, backend);
        await book.jobs.pause("stopped");
        await fill("insert into lane (tenant_id, queue) values ('default', 'default')");
        const limits = `{"rate":{"key":"rated","max":1,"ms":86400000}}`;
        await fill(`${jobs.replace(")", ", limits)")} select 'default', 'i' || n, (select min(seq) from lane), '${name}',
          n * 100, ${values}, ${name === "rated" ? `'${limits}'` : "null"} from ${numbers(16_000)}`);

        const done = await runsAtOnce(book, { priority: -1 });

        assert.equal(done, "completed");
      });
    }

    test("a claim that parked as many as it may says that there is more in the lanes it did not come to", async (t) => {
      const { jobs: queue, claimFully } = await openEngine(t, backend, { use });
      await queue.pause("stopped");
      for (const [lane, count] of [83, 73, 72, 72].entries()) {
        await queue.enqueueMany(stopped, Array(count).fill({}), { queue: `q${lane}` });
      }
      await queue.enqueue(plain, {}, { queue: "q3" });

      const first = await claimFully(48);
      assert.deepEqual([first.jobs.length, first.parked, first.more], [0, 300, true]);
      assert.equal((await claimFully(48)).jobs.length, 1);
    });

    test("who parks a job until a time tells the others of it", async (t) => {
      const { jobs: queue, store, claimer, claimFully, clock, run } = await openEngine(t, backend, { use });
      await queue.enqueue(plain);
      await run("update job set kind = 'call', kind_seq = 1, limit_key = 'k'");
      const heard = Promise.withResolvers<void>();
      t.after(store.onWake((channel) => void (channel === "jobs" && heard.resolve())));

      const { parked } = await claimFully(1, {
        ...claimer(),
        mustWait: { call: () => ({ until: clock.now() + 1000 }) },
      });

      assert.equal(parked, 1);
      await heard.promise;
    });

    test("a claim that ends after the one beside it does not carry that one past lanes it has not seen", async (t) => {
      const { jobs: queue, store, claimer } = await openEngine(t, backend, { use });
      await queue.enqueueMany(plain, [{}, {}]);
      const by = claimer();

      await store.write(async (tx) => {
        const late = claim(tx, by, 1, { idle: true, attempted: [] });
        by.cursor = 7;
        assert.equal((await late).jobs.length, 1);
      });
      assert.equal(by.cursor, 7);
    });
  });
}

const jobs = `insert into job (tenant_id, id, lane_seq, name, position, status, priority, created_at, available_at, params,
  origin, attempt, attempts, losses, losses_max, alone)`;
const values = "'queued', 0, 1, 1, '{}', 'enqueued', 1, 4, 0, 3, 0";

/** A book whose clock stands still, so that no sweep comes to help. */
async function openAt(
  t: TestContext,
  backend: Backend,
): Promise<{ book: Book; fill(statement: string): Promise<unknown> }> {
  const { book, url } = await openTest(t, backend, { use, clock: manualClock(), durability: "normal" });
  const { store } = await openTestStore(t, backend, { url });
  return { book, fill: (statement) => store.write((tx) => tx.run(rawSql(statement))) };
}

async function runsAtOnce(
  book: Book,
  options: { queue?: string; priority?: number },
  queues?: readonly string[],
): Promise<string> {
  const { id } = await book.jobs.enqueue(plain, {}, options);
  const worker = await book.startWorker(queues === undefined ? {} : { queues });
  await worker.idle();
  return (await book.jobs.get(id)).status;
}
