import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DaybookError, isDaybookError, job, manualClock, type Book, type JobContext } from "../../src/index.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { heldJob } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("the effects of finish and the completion are one commit, and what it returns is the result", async (t) => {
      const charge = job("charge", {
        run: ({ cents }: { cents: number }, { finish, job: { id } }) =>
          finish(async (tx) => {
            await tx.sql`insert into charge (cents) values (${cents})`;
            const [row] = await tx.sql<{ status: string }>`select status from daybook_job_now where id = ${id}`;
            const next = await tx.jobs.enqueue(mail, {});
            return { was: row?.status, next: next.id };
          }),
      });
      const mail = job("mail", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [charge, mail] });
      await createCharges(book);

      const { id } = await book.jobs.enqueue(charge, { cents: 5 });
      const worker = await book.startWorker();
      await worker.idle();

      const found = await book.jobs.get(id);
      const next = (found.run?.result as { next: string } | undefined)?.next ?? "";
      assert.deepEqual([found.status, found.run?.result], ["completed", { was: "running", next }]);
      assert.equal((await book.jobs.get(next)).status, "completed");
      assert.deepEqual(await charges(book), [5]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("effects of a finish that fails are undone, and the job is tried again", async (t) => {
      const charge = job("charge", {
        backoff: ["0ms"],
        run: (_params: unknown, { finish, attempt }) =>
          finish(async (tx) => {
            await tx.sql`insert into charge (cents) values (${attempt})`;
            if (attempt < 3) throw new RangeError("no");
          }),
      });
      const { book } = await openTest(t, backend, { use: [charge] });
      await createCharges(book);

      const { id } = await book.jobs.enqueue(charge, {});
      const worker = await book.startWorker();
      await worker.idle();

      assert.deepEqual(await charges(book), [3]);
      assert.deepEqual(
        (await book.jobs.chain(id)).map(({ status, run }) => [status, run?.error?.type]),
        [
          ["failed", "RangeError"],
          ["failed", "RangeError"],
          ["completed", undefined],
        ],
      );
    });

    test("a handler may catch a finish that failed and finish otherwise", async (t) => {
      const charge = job("charge", {
        async run(_params: unknown, { finish }) {
          const refused = finish(async (tx) => {
            await tx.sql`insert into charge (cents) values (-1)`;
            await tx.sql`insert into charge (cents) values (null)`;
          });
          await refused.catch((error: unknown) => assert.ok(isDaybookError(error)));
          return finish((tx) => tx.sql`insert into charge (cents) values (1) returning cents`);
        },
      });
      const { book } = await openTest(t, backend, { use: [charge] });
      await createCharges(book);

      const { id } = await book.jobs.enqueue(charge, {});
      const worker = await book.startWorker();
      await worker.idle();

      assert.deepEqual([await charges(book), (await book.jobs.get(id)).run?.result], [[1], [{ cents: 1 }]]);
    });

    test("a second finish is refused, and throwing after the first changes nothing", async (t) => {
      const refusals: string[] = [];
      const charge = job("charge", {
        async run(_params: unknown, { finish }) {
          await finish((tx) => tx.sql`insert into charge (cents) values (1)`);
          await finish((tx) => tx.sql`insert into charge (cents) values (2)`).catch(
            (error: Error) => void refusals.push(error.message),
          );
          throw new Error("too late");
        },
      });
      const { book } = await openTest(t, backend, { use: [charge] });
      await createCharges(book);

      const { id } = await book.jobs.enqueue(charge, {});
      const worker = await book.startWorker();
      await worker.idle();

      const found = await book.jobs.get(id);
      assert.deepEqual([found.status, found.retriedBy, await charges(book)], ["completed", null, [1]]);
      assert.deepEqual(refusals, [`job ${id} has been finished already: call finish once, as the last thing`]);
    });

    test("of two finishes at the same time one is kept", async (t) => {
      const charge = job("charge", {
        async run(_params: unknown, { finish }) {
          const both = [1, 2].map((cents) => finish((tx) => tx.sql`insert into charge (cents) values (${cents})`));
          const done = await Promise.allSettled(both);
          assert.deepEqual(done.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
        },
      });
      const { book } = await openTest(t, backend, { use: [charge] });
      await createCharges(book);

      const { id } = await book.jobs.enqueue(charge, {});
      const worker = await book.startWorker();
      await worker.idle();

      assert.equal((await charges(book)).length, 1);
      assert.equal((await book.jobs.get(id)).status, "completed");
    });

    test("a finish of a run that is no longer its own is refused, and nothing of it is kept", async (t) => {
      const charge = heldJob("charge", { attempts: 1 });
      const { book, url } = await openTest(t, backend, { use: [charge.job] });
      await createCharges(book);
      const { id } = await book.jobs.enqueue(charge.job, {});
      const worker = await book.startWorker({ concurrency: 1 });
      const { context, succeed } = await charge.whenBegun(1);
      // Others took the session for dead, and the job was given to the next.
      const { store } = await openTestStore(t, backend, { url });
      const [row] = await book.read(
        (tx) => tx.sql<{ session_seq: number }>`select session_seq from daybook_job_now where id = ${id}`,
      );
      await store.write((tx) => recoverSession(tx, { kinds: {} }, row?.session_seq ?? 0));

      const finished = context.finish(async (tx) => {
        await tx.sql`insert into charge (cents) values (1)`;
        await tx.jobs.enqueue(charge.job, { from: "the lost one" });
      });

      await assert.rejects(finished, {
        code: "conflict",
        message: /is no longer this process's, so nothing of finish was kept/,
      });
      assert.deepEqual(await charges(book), []);
      succeed();
      const [, retry] = await book.jobs.chain(id);
      const second = await charge.whenBegun(2);
      assert.equal(second.context.job.id, retry?.id);
      await second.context.finish((tx) => tx.sql`insert into charge (cents) values (2)`);
      second.succeed();
      await worker.idle();
      assert.deepEqual(await charges(book), [2]);
      assert.equal((await book.jobs.list()).items.length, 2);
    });

    test("what finish returns need not be data", async (t) => {
      const odd = job("odd", { run: (_params: unknown, { finish }) => finish(() => ({ close: () => undefined })) });
      const { book } = await openTest(t, backend, { use: [odd] });

      const { id } = await book.jobs.enqueue(odd, {});
      const worker = await book.startWorker();
      await worker.idle();

      const { status, run } = await book.jobs.get(id);
      assert.deepEqual([status, run?.result], ["completed", null]);
    });

    test("finish is watched like any transaction: what it does not await fails it", async (t) => {
      const hasty = job("hasty", {
        attempts: 1,
        run: (_params: unknown, { finish }) =>
          finish((tx) => {
            void tx.sql`insert into charge (cents) values (1)`;
          }),
      });
      const { book } = await openTest(t, backend, { use: [hasty] });
      await createCharges(book);

      const { id } = await book.jobs.enqueue(hasty, {});
      const worker = await book.startWorker();
      await worker.idle();

      const { status, run } = await book.jobs.get(id);
      assert.deepEqual([status, await charges(book)], ["failed", []]);
      assert.match(run?.error?.message ?? "", /not awaited/);
    });

    for (const limit of ["name", "key", "lane"] as const) {
      test(`finish lets in the next of a limit on its ${limit}`, async (t) => {
        const run = (_params: unknown, { finish }: JobContext): Promise<string> => finish(() => "done");
        const limited = job("limited", {
          ...(limit === "name" ? { concurrency: 1 } : {}),
          ...(limit === "key" ? { limit: { key: () => "k", concurrency: 1 } } : {}),
          run,
        });
        // The time of the next sweep does not come.
        const { book } = await openTest(t, backend, { use: [limited], random: () => 0.999 });
        if (limit === "lane") await book.queues.limit("default", { concurrency: 1 });
        await book.jobs.enqueueMany(limited, [{}, {}, {}, {}, {}]);

        const worker = await book.startWorker();
        await worker.idle();

        assert.equal((await book.jobs.list({ status: "completed" })).items.length, 5);
      });
    }
  });
}

// SQLite's only writer cannot be overtaken.
test("postgres: finish lets in one that was parked after its transaction began", async (t) => {
  let second: string | undefined;
  const single = job("single", {
    concurrency: 1,
    run: (_params: unknown, { finish }) =>
      finish(async (tx) => {
        await tx.sql`select count(*) from daybook_job_now`;
        if (second !== undefined) return;
        second = (await other.jobs.enqueue(single, {})).id;
        assert.deepEqual(await other.claim(5), []);
      }),
  });
  // Time stands still, so that no sweep comes to help.
  const { book, url } = await openTest(t, "postgres", { use: [single], clock: manualClock() });
  const other = await openEngine(t, "postgres", { url, use: [single] });
  await book.jobs.enqueue(single, {});

  await book.startWorker();
  await until("the second has run", async () => {
    return (await book.jobs.list({ status: "completed" })).items.some(({ id }) => id === second) || undefined;
  });
});

test("postgres: whoever a finish could not let in after its commit is found by a sweep", async (t) => {
  let broken = true;
  const single = job("single", { concurrency: 1, run: (_params: unknown, { finish }) => finish(() => "done") });
  const { book } = await openTest(t, "postgres", {
    use: [single],
    // Time stands still, so that the sweep is that of the second worker.
    clock: manualClock(),
    fault(moment, text) {
      if (broken && moment === "before" && text.startsWith("select pg_catalog.pg_advisory_xact_lock(")) {
        throw new DaybookError("busy", "the lock of the limit is not to be had");
      }
    },
  });
  await book.jobs.enqueueMany(single, [{}, {}]);
  const worker = await book.startWorker();
  await worker.idle();
  const before = (await book.jobs.list()).items.map(({ status }) => status).toSorted();

  broken = false;
  const second = await book.startWorker();
  await second.idle();
  await until("both have run", async () => {
    return (await book.jobs.list({ status: "completed" })).items.length === 2 || undefined;
  });

  assert.deepEqual(before, ["completed", "waiting"]);
  assert.deepEqual(await book.doctor(), []);
});

test("postgres: of a unit whose first statement failed, what follows is kept", async (t) => {
  const { book } = await openTest(t, "postgres");
  await createCharges(book);

  await book.write(async (tx) => {
    await assert.rejects(tx.sql`insert into charge (cents) values (null)`, { code: "invalid" });
    await tx.sql`insert into charge (cents) values (1)`;
    await assert.rejects(tx.sql`insert into charge (cents) values (null)`, { code: "invalid" });
    await tx.sql`insert into charge (cents) values (2)`;
  });

  assert.deepEqual(await charges(book), [1, 2]);
});

async function createCharges(book: Book): Promise<void> {
  await book.write((tx) => tx.sql`create table charge (cents integer not null)`);
}

async function charges(book: Book): Promise<number[]> {
  const rows = await book.read((tx) => tx.sql<{ cents: number }>`select cents from charge order by cents`);
  return rows.map((row) => row.cents);
}
