// How long a worker looks: until it has seen everything, and no longer.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { plainKind } from "../../src/jobs/kind.ts";
import { tie } from "../../src/jobs/state.ts";
import { rawSql } from "../../src/storage/sql.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, openTestStore, type Backend } from "../support/open-test.ts";

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
          `insert into daybook_lane (seq, tenant_id, queue, paused_at)
            select n * 1000000, 't' || n, 'other', ${paused} from ${numbers(1500)}`,
        );
        await fill(`${jobs} select tenant_id, 'i' || seq, seq, 'plain', ${values} from daybook_lane order by seq`);
        await fill(inLine);

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
        await fill("insert into daybook_lane (seq, tenant_id, queue) values (1000000, 'default', 'default')");
        const limits = `{"rate":{"key":"rated","max":1,"ms":86400000}}`;
        await fill(`${jobs.replace(")", ", limits)")} select 'default', 'i' || n, 1000000, '${name}',
          ${values}, ${name === "rated" ? `'${limits}'` : "null"} from ${numbers(16_000)} order by n`);
        await fill(inLine);

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
      await run("update daybook_job set kind = 'call', kind_seq = 1, limit_key = 'k'");
      await run("update daybook_line set kind = 'call', kind_seq = 1, order_key = 'default\nk'");
      const heard = Promise.withResolvers<void>();
      t.after(store.onWake((channel) => void (channel === "jobs" && heard.resolve())));

      const { parked } = await claimFully(1, {
        ...claimer(),
        kinds: { call: { ...plainKind, mustWait: () => ({ until: clock.now() + 1000 }) } },
      });

      assert.equal(parked, 1);
      await heard.promise;
    });
  });
}

const jobs = `insert into daybook_job (tenant_id, id, lane_seq, name, priority, created_at, params, attempts, losses_max)`;
const values = "0, 1, '{}', 4, 3";
const inLine = `insert into daybook_line (seq, lane_seq, status, priority, position, available_at, ties)
  select seq, lane_seq, 'queued', priority, seq * 100, created_at, case when limits is null then 0 else ${tie.limit} end
  from daybook_job`;

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
