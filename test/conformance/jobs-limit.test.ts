import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, type Book, type JobContext } from "../../src/index.ts";
import { heldJob } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { assertTrueReasons } from "../jobs/true-reasons.ts";
import { nameKey } from "../../src/jobs/claim/limit.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, cleanup, openTest, openTestStore } from "../support/open-test.ts";

type Account = { readonly account: string };
const account = ({ account: key }: Account): string => key;
const run = (_params: Account): void => undefined;
const plain = job("plain", { run });
const triple = job("triple", { concurrency: 3, run });
const keyed = job("keyed", { limit: { key: account, concurrency: 2 }, run });
const both = job("both", { concurrency: 4, limit: { key: account, concurrency: 1 }, run });
const use = [plain, triple, keyed, both];
const many = (count: number, accounts = 1): Account[] =>
  Array.from({ length: count }, (_, n) => ({ account: `a${n % accounts}` }));

for (const backend of backends) {
  describe(backend, () => {
    test("one batch takes no more than each limit allows, in each tenant", async (t) => {
      const at = await openEngine(t, backend, { use });
      for (const tenant of ["acme", "bolt"]) {
        const { jobs, queues } = at.tenant(tenant);
        await jobs.enqueueMany(triple, many(10));
        await jobs.enqueueMany(keyed, many(30, 3));
        await jobs.enqueueMany(both, many(20, 10));
        await jobs.enqueueMany(plain, many(10), { queue: "narrow" });
        await queues.limit("narrow", { concurrency: 2 });
      }

      const claimed = [...(await at.claim(100)), ...(await at.claim(100))];

      const counts = Map.groupBy(claimed, (each) => [each.tenant_id, each.name, each.queue].join());
      assert.deepEqual(Object.fromEntries([...counts].map(([key, jobs]) => [key, jobs.length])), {
        "acme,triple,default": 3,
        "acme,keyed,default": 6,
        "acme,both,default": 4,
        "acme,plain,narrow": 2,
        "bolt,triple,default": 3,
        "bolt,keyed,default": 6,
        "bolt,both,default": 4,
        "bolt,plain,narrow": 2,
      });
      const byKey = Map.groupBy(
        claimed.filter((each) => each.limit_key !== null),
        (each) => `${each.tenant_id} ${each.limit_key}`,
      );
      for (const [key, jobs] of byKey) assert.ok(jobs.length <= (key.includes("keyed") ? 2 : 1), key);
      await assertTrueReasons(at);
    });

    test("limits hold and are used up while many workers claim at the same time", async (t) => {
      const limits = { one: 1, three: 3, narrow: 2, "two-of-a-kind": 4 };
      const wide = ["acme", "bolt"].flatMap((tenant) =>
        ["three", "narrow", "two-of-a-kind"].map((of) => `${tenant} ${of}`),
      );
      const live = new Map<string, number>();
      const most = new Map<string, number>();
      // Where more than one may run, the first waits until there were two at once.
      const isLonely = (held: readonly string[]): boolean =>
        held.some((each) => wide.includes(each) && (most.get(each) ?? 0) < 2);
      const work = async (
        _params: Account,
        { job: { name, tenant, queue } }: JobContext,
        key?: string,
      ): Promise<void> => {
        const held = [
          `${tenant} ${name}`,
          `${tenant} ${queue}`,
          ...(key === undefined ? [] : [`${tenant} ${name} ${key}`]),
        ];
        for (const each of held) {
          live.set(each, (live.get(each) ?? 0) + 1);
          most.set(each, Math.max(most.get(each) ?? 0, live.get(each) ?? 0));
        }
        for (let turn = 0; turn < 20 || isLonely(held); turn++) await new Promise((resolve) => setImmediate(resolve));
        for (const each of held) live.set(each, (live.get(each) ?? 0) - 1);
      };
      const kinds = [
        job("one", { concurrency: 1, run: (params: Account, context) => work(params, context) }),
        job("three", { concurrency: 3, run: (params: Account, context) => work(params, context) }),
        job<Account>("per-key", {
          limit: { key: account, concurrency: 1 },
          run: (params, context) => work(params, context, params.account),
        }),
        job<Account>("two-of-a-kind", {
          concurrency: 4,
          limit: { key: account, concurrency: 2 },
          run: (params, context) => work(params, context, params.account),
        }),
        job("free", { run: (params: Account, context) => work(params, context) }),
      ];
      const { book, url } = await openTest(t, backend, { use: kinds, durability: "normal" });
      const { book: other } = await openTest(t, backend, { url, use: kinds, durability: "normal" });
      const tenants = [book.tenant("acme"), book.tenant("bolt")];
      for (const { jobs, queues } of tenants) {
        await queues.limit("narrow", { concurrency: 2 });
        for (const kind of kinds.slice(0, 4)) await jobs.enqueueMany(kind, many(24, 3));
        await jobs.enqueueMany(kinds[4] as never, many(24), { queue: "narrow" });
      }

      const workers = await Promise.all(
        Array.from({ length: backend === "postgres" ? 8 : 4 }, (_, n) => (n % 2 === 0 ? book : other).startWorker()),
      );
      while ((await countOpen(book)) > 0) await Promise.all(workers.map((worker) => worker.idle()));

      for (const tenant of ["acme", "bolt"]) {
        for (const [name, limit] of Object.entries(limits)) {
          const found = most.get(`${tenant} ${name}`) ?? 0;
          assert.ok(found <= limit && found >= Math.min(2, limit), `${tenant} ${name}: ${found} of ${limit}`);
        }
        for (const key of ["a0", "a1", "a2"]) {
          assert.equal(most.get(`${tenant} per-key ${key}`), 1);
          assert.ok((most.get(`${tenant} two-of-a-kind ${key}`) ?? 9) <= 2);
        }
      }
      const [runs] = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_run`);
      assert.equal(runs?.n, 240);
      assert.deepEqual(await book.doctor(), []);
    });

    test("workers that settle and claim each other's keys do not wait for each other", async (t) => {
      const hot = job<Account>("hot", {
        limit: { key: account, concurrency: 1 },
        run: () => new Promise((resolve) => setImmediate(resolve)),
      });
      const deadlocks: string[] = [];
      const { book, url } = await openTest(t, backend, { use: [hot], durability: "normal" });
      const { book: other } = await openTest(t, backend, { url, use: [hot], durability: "normal" });
      await book.jobs.enqueueMany(hot, many(300, 10));

      const workers = await Promise.all([book, other, book, other].map((each) => each.startWorker({ concurrency: 4 })));
      while ((await countOpen(book)) > 0) await Promise.all(workers.map((worker) => worker.idle()));

      if (backend === "postgres") {
        const { store } = await openTestStore(t, backend, { url });
        const [found] = await store.read<{ deadlocks: number }>(
          sql`select deadlocks from pg_stat_database where datname = current_database()`,
        );
        if (found?.deadlocks !== 0) deadlocks.push(`${found?.deadlocks} deadlocks`);
      }
      assert.deepEqual(deadlocks, []);
    });

    test("jobs without limits take no locks of limits, and those with limits do", async (t) => {
      const texts: string[] = [];
      const fault = (_moment: string, text: string): void => void texts.push(text);
      const { book } = await openTest(t, backend, { use, fault });
      const worker = await book.startWorker();
      const locks = async (enqueue: () => Promise<unknown>): Promise<number> => {
        texts.length = 0;
        await enqueue();
        await worker.idle();
        return texts.filter((text) => /advisory_xact_lock\(/.test(text)).length;
      };

      const free = await locks(() => book.jobs.enqueueMany(plain, many(50)));
      const limited = await locks(() => book.jobs.enqueueMany(triple, many(50)));

      assert.equal(free, 0);
      assert.equal(limited > 0, backend === "postgres");
      assert.equal((await book.jobs.list({ status: "completed", limit: 500 })).items.length, 100);
    });

    test("a lane's limit that is changed while its jobs run counts those that run", async (t) => {
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job] });
      await book.jobs.enqueueMany(
        held.job,
        Array.from({ length: 12 }, () => ({})),
      );
      const worker = await book.startWorker({ concurrency: 4 });
      await held.whenBegun(4);
      const running = async (): Promise<number> => (await book.jobs.list({ status: "running" })).items.length;

      // Four run, two may: nothing starts until only one is left.
      await book.queues.limit("default", { concurrency: 2 });
      for (const index of [0, 1]) held.begun[index]?.succeed();
      await until(async () => (await running()) === 2);
      assert.equal(held.begun.length, 4);
      held.begun[2]?.succeed();
      await held.whenBegun(5);
      assert.equal(await running(), 2);

      // Three may, then as many as the worker can.
      await book.queues.limit("default", { concurrency: 3 });
      await held.whenBegun(6);
      assert.equal(await running(), 3);
      await book.queues.limit("default", { concurrency: null });
      await held.whenBegun(7);
      assert.equal(await running(), 4);

      cleanup(t, () => held.begun.forEach((each) => each.succeed()));
      while (held.begun.length < 12) {
        held.begun.forEach((each) => each.succeed());
        await held.whenBegun(held.begun.length + 1);
      }
      held.begun.forEach((each) => each.succeed());
      await worker.idle();
      assert.equal((await book.jobs.list({ status: "completed" })).items.length, 12);
    });

    test("a breach of a limit is impossible even by hand", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.queues.limit("default", { concurrency: 9 });
      await at.jobs.enqueueMany(both, many(2, 2));
      await at.jobs.enqueueMany(keyed, many(2));
      await at.claim(4);

      for (const key of [nameKey("both"), "keyed\na0"]) {
        assert.equal((await at.rows(`select * from daybook_permit where limit_key = '${key}'`)).length, 2);
        await assert.rejects(at.run(`update daybook_permit set number = 0 where limit_key = '${key}'`), {
          code: "conflict",
        });
      }
    });

    test("a limit of a lane is checked, and lifted by null", async (t) => {
      const { book } = await openTest(t, backend);
      const wrong: [object, RegExp][] = [
        [{ concurrency: 0 }, /concurrency 0 is not/],
        [{ rate: { max: 0, per: "1s" } }, /rate max 0 is not/],
        [{ rate: { max: 1, per: 0 } }, /rate per is 0/],
        [{ concurency: 1 }, /unknown option "concurency" for the limit of a queue: did you mean "concurrency"\?/],
        [{ rate: { max: 1, pre: "1s" } }, /unknown option "pre" for rate/],
      ];

      for (const [to, message] of wrong) await assert.rejects(book.queues.limit("q", to), { code: "invalid", message });
      await assert.rejects(book.queues.limit("", {}), { code: "invalid" });
      await book.queues.limit("q", { concurrency: 2, rate: { max: 5, per: "1m" } });
      const [limited] = await book.queues.list();
      await book.queues.limit("q", { concurrency: null });
      await book.queues.limit("q", { rate: null });
      const [lifted] = await book.queues.list();
      assert.deepEqual([limited?.concurrency, limited?.rate], [2, { max: 5, perMs: 60_000 }]);
      assert.deepEqual([lifted?.concurrency, lifted?.rate], [null, null]);
    });
  });
}

async function countOpen(book: Book): Promise<number> {
  const [row] = await book.read(
    (tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_job_now where finished_at is null`,
  );
  return row?.n ?? 0;
}

async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setImmediate(resolve));
}
