import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book, type Clock, type DaybookError, type Job, type UserTx } from "../../src/index.ts";
import { awaitResult } from "../../src/jobs/result.ts";
import { heldJob, type Held } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a result is what the handler returned, by id or by what enqueue made, and only for its tenant", async (t) => {
      const echo = job("echo", { run: ({ give }: { give?: unknown }) => give });
      const { book } = await openTest(t, backend, { use: [echo] });
      const acme = book.tenant("acme");
      const worker = await book.startWorker();

      const values = [{ cents: 4000 }, null, "text", [1], 0, undefined];
      const made = await book.jobs.enqueueMany(
        echo,
        values.map((give) => (give === undefined ? {} : { give })),
      );
      const theirs = await acme.jobs.enqueue(echo, { give: "theirs" });

      assert.deepEqual(await Promise.all(made.map((each) => each.result())), values);
      assert.deepEqual(await Promise.all(made.map((each) => book.jobs.result(each))), values);
      assert.deepEqual(await Promise.all(made.map(({ id }) => book.jobs.result(id))), values);
      assert.deepEqual([await theirs.result(), await acme.jobs.result(theirs.id)], ["theirs", "theirs"]);
      await assert.rejects(book.jobs.result(theirs), { code: "not_found", message: `there is no job ${theirs.id}` });
      await assert.rejects(acme.jobs.result(made[0]?.id ?? ""), { code: "not_found" });
      await worker.stop();
    });

    test("a job made in a transaction is awaited after it, and never came to be when that was undone", async (t) => {
      const echo = job("echo", { run: ({ give }: { give: number }) => give });
      const { book } = await openTest(t, backend, { use: [echo] });
      const worker = await book.startWorker();
      const after = "was called inside book.write";

      let undone: { result(): Promise<unknown> } | undefined;
      const made = await book.write(async (tx) => {
        const inside = await tx.jobs.enqueue(echo, { give: 5 });
        await assert.rejects(inside.result(), {
          code: "invalid",
          message: new RegExp(`^result ${after}: wait after it`),
        });
        await assert.rejects(book.jobs.result(inside), { code: "invalid", message: new RegExp(after) });
        return inside;
      });
      await book
        .write(async (tx) => {
          undone = await tx.jobs.enqueue(echo, { give: 6 });
          throw new Error("no");
        })
        .catch(() => undefined);

      assert.equal(await made.result(), 5);
      await assert.rejects(async () => undone?.result(), { code: "not_found" });
      await worker.stop();
    });

    test("whoever waits in another book of the same place hears of the end, all retries included", async (t) => {
      const flaky = job("flaky", {
        attempts: 3,
        backoff: ["0ms"],
        run(_params: unknown, { attempt }) {
          if (attempt < 3) throw new Error("not yet");
          return { attempt };
        },
      });
      const { book, url } = await openTest(t, backend, { use: [flaky] });
      const { book: other } = await openTest(t, backend, { url, use: [flaky], worker: false });
      const [first, second] = [await other.jobs.enqueue(flaky, {}), await other.jobs.enqueue(flaky, {})];
      const waiting = [first, second, first].map((made) => made.result());
      await untilMarked(other, 2);

      const worker = await book.startWorker();

      const answer = { attempt: 3 };
      assert.deepEqual(await Promise.all(waiting), [answer, answer, answer]);
      // Any job of the chain stands for its end.
      const [, retry] = await other.jobs.chain(first.id);
      assert.deepEqual(await other.jobs.result(retry?.id ?? ""), answer);
      await worker.stop();
    });

    test("a job that failed, or was cancelled before or while it ran, says so", async (t) => {
      const held = heldJob("held", { attempts: 1 });
      const { book } = await openTest(t, backend, { use: [held.job] });
      const later = await book.jobs.enqueue(held.job, {}, { in: "1h" });
      const failing = await book.jobs.enqueue(held.job, {});
      const running = await book.jobs.enqueue(held.job, {});
      const failures = [later, failing, running].map((made) => made.result().catch((error: unknown) => error));
      const worker = await book.startWorker({ concurrency: 2 });
      await held.whenBegun(2);
      // In whichever order: a claim passes by a job that somebody is just marking as awaited.
      const runOf = ({ id }: { id: string }): Held =>
        held.begun.find(({ context }) => context.job.id === id) ?? assert.fail();
      const [one, two] = [runOf(failing), runOf(running)];

      await book.jobs.cancel(later.id);
      one.fail(new RangeError("out of paper"));
      const aborted = new Promise((resolve) => two.context.signal.addEventListener("abort", resolve));
      await book.jobs.cancel(running.id);
      await aborted;
      two.fail(new Error("stopped"));

      const [cancelled, failed, stopped] = (await Promise.all(failures)) as DaybookError[];
      assert.deepEqual(
        [failed?.code, failed?.message, failed?.details],
        [
          "conflict",
          `job ${failing.id} (held) has failed, so it has no result: RangeError: out of paper`,
          {
            id: failing.id,
            status: "failed",
            runId: one.context.job.runId,
            runStatus: "error",
            errorType: "RangeError",
          },
        ],
      );
      assert.deepEqual(
        [cancelled?.code, cancelled?.message, cancelled?.details["runId"]],
        ["conflict", `job ${later.id} (held) was cancelled, so it has no result`, null],
      );
      assert.deepEqual(
        [stopped?.message, stopped?.details["runId"]],
        [`job ${running.id} (held) was cancelled, so it has no result: CancelledError: stopped`, two.context.job.runId],
      );
      // Whoever asks afterwards hears the same.
      await assert.rejects(failing.result(), { message: failed?.message ?? "" });
      await worker.stop();
    });

    test("a wait that takes too long ends and leaves nothing behind, and the job goes on", async (t) => {
      const work = job("work", { run: () => undefined });
      const engine = await openEngine(t, backend, { use: [work] });
      const { clock, jobs, claim, end } = engine;
      const seen = counting(engine.store, clock);
      const { id } = await jobs.enqueue(work, {});

      const waiting = awaitResult(seen.store, "default", id, { timeout: "1m" });
      const refused = assert.rejects(waiting, {
        code: "timeout",
        message: `job ${id} is still queued after 1m of waiting; it goes on: ask again later, or see why with explain`,
        details: { id, lastId: id, status: "queued" },
      });
      await untilMarked(engine, 1);
      assert.deepEqual([seen.listeners, seen.timers], [1, 1]);
      await clock.advance(60_000);
      await refused;
      assert.deepEqual([seen.listeners, seen.timers], [0, 0]);

      const again = awaitResult(seen.store, "default", id, { timeout: "1m" });
      const [claimed] = await claim(1);
      await end(claimed ?? assert.fail(), { status: "success", result: "7" });
      assert.equal(await again, 7);
      assert.deepEqual([seen.listeners, seen.timers], [0, 0]);
      await assert.rejects(awaitResult(seen.store, "default", "nobody"), { code: "not_found" });
      assert.deepEqual([seen.listeners, seen.timers], [0, 0]);
    });

    test("an end that comes while a waiter looks is not missed", async (t) => {
      const work = job("work", { run: () => undefined });
      const { store, jobs, claim, end, run } = await openEngine(t, backend, { use: [work] });
      const { id } = await jobs.enqueue(work, {});
      await run("update daybook_line set awaited = 1");
      const [claimed] = await claim(1);
      const looked = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const held: typeof store = {
        ...store,
        async read<R>(query: Parameters<typeof store.read>[0]) {
          const rows = await store.read<R>(query);
          looked.resolve();
          await goOn.promise;
          return rows;
        },
      };

      const waiting = awaitResult(held, "default", id);
      await looked.promise;
      await end(claimed ?? assert.fail(), { status: "success", result: "7" });
      // Those who had looked before are told by now.
      await store.clock.nextTurn();
      await store.clock.nextTurn();
      goOn.resolve();

      assert.equal(await waiting, 7);
    });

    test("closing the book ends the waiting, and nobody waits afterwards", async (t) => {
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job] });
      const [made, other] = [await book.jobs.enqueue(held.job, {}), await book.jobs.enqueue(held.job, {})];
      const refusals = [made, other].map(({ id }, index) =>
        assert.rejects(book.jobs.result(id, index === 0 ? {} : { timeout: "1h" }), {
          code: "closed",
          message: `the book was closed while waiting for job ${id}`,
        }),
      );
      // Each has a mark of its own, so that both are known to wait.
      await untilMarked(book, 2);

      await book.close();

      await Promise.all(refusals);
      await assert.rejects(made.result(), { code: "closed" });
    });

    test("an end is heard of whenever it comes: before the mark, with it, or after", async (t) => {
      const quick = job("quick", { run: ({ n }: { n: number }, { finish }) => (n % 20 === 0 ? finish(() => n) : n) });
      const { book } = await openTest(t, backend, { use: [quick] });
      const worker = await book.startWorker({ concurrency: 4 });
      const numbers = Array.from({ length: 200 }, (_, n) => n);

      const results = await Promise.all(
        numbers.map(async (n) => {
          const made = await book.jobs.enqueue(quick, { n });
          return Promise.all([made.result(), made.result({ timeout: "10m" })]);
        }),
      );

      assert.deepEqual(
        results,
        numbers.map((n) => [n, n]),
      );
      await worker.stop();
    });

    test("what is no job, no duration or no option is refused", async (t) => {
      const { book } = await openTest(t, backend);
      const nothing = { code: "invalid", message: /is not a job: give its id, or what enqueue returned/ };

      await assert.rejects(book.jobs.result(undefined as never), nothing);
      await assert.rejects(book.jobs.result({} as never), nothing);
      await assert.rejects(book.jobs.result("x", { timeout: "soon" }), { code: "invalid", message: /not a duration/ });
      await assert.rejects(book.jobs.result("x", { timout: 5 } as never), { message: /did you mean "timeout"/ });
    });
  });
}

test("what enqueue gives is compared, copied and written without its way to the result", async (t) => {
  const { book } = await openTest(t, "sqlite", { use: [mail] });

  const made = await book.jobs.enqueue(mail, { to: "ada" });

  const plain = { id: made.id, name: "mail", status: "queued", created: true };
  assert.deepEqual([made, { ...made }, JSON.parse(JSON.stringify(made))], [plain, plain, plain]);
});

const mail = job("mail", { run: ({ to }: { to: string }) => ({ sent: to.length }) });

// Types: the handler's result arrives without a word from the user.
async function typesOf(book: Book, tx: UserTx): Promise<void> {
  const made = await book.jobs.enqueue(mail, { to: "ada" });
  const { sent }: { sent: number } = await made.result({ timeout: "1s" });
  (await book.jobs.result(made)).sent satisfies number;
  (await (await tx.jobs.enqueue(mail, { to: "ada" })).result()).sent satisfies number;
  for (const each of await book.jobs.enqueueMany(mail, [{ to: "ada" }])) (await each.result()).sent satisfies number;
  // @ts-expect-error -- the handler returns no such thing
  (await book.jobs.result(made)).received satisfies number;
  // @ts-expect-error -- by name or id nobody knows what it returns
  const unknown: number = await book.jobs.result(made.id);
  // @ts-expect-error -- there is no such option
  await made.result({ timeot: sent + unknown });
  const of: Job<{ to: string }, { sent: number }> = mail;
  (await (await book.jobs.enqueue(of, { to: "ada" })).result()).sent satisfies number;
}

test("a result's type is that of the handler", () => {
  assert.equal(typeof typesOf, "function");
});

type Marks = Pick<Awaited<ReturnType<typeof openEngine>>, "rows"> | Book;

// The wait has got as far as its mark; what it then waits for is the wake.
async function untilMarked(of: Marks, count: number): Promise<void> {
  const statement = "select count(*) as n from daybook_job_now where awaited = 1" as const;
  for (;;) {
    const rows = "rows" in of ? await of.rows<{ n: number }>(statement) : await marks(of);
    if (rows[0]?.n === count) return;
    await manualClock().nextTurn();
  }
}

function marks(book: Book): Promise<{ n: number }[]> {
  return book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_job_now where awaited = 1`);
}

type TestStore = Awaited<ReturnType<typeof openEngine>>["store"];

/** The same store, with what is left of its listeners and of the timers that go through it. */
function counting(
  store: TestStore,
  clock: Clock,
): { readonly store: TestStore; readonly listeners: number; readonly timers: number } {
  const open = { listeners: 0, timers: 0 };
  const counted: Clock = {
    ...clock,
    after(ms, run, options) {
      let left = 1;
      const over = (): void => void ((open.timers -= left), (left = 0));
      open.timers++;
      const timer = clock.after(ms, () => (over(), run()), options);
      return { cancel: () => (over(), timer.cancel()) };
    },
  };
  return {
    store: {
      ...store,
      clock: counted,
      onWake(hear) {
        open.listeners++;
        const stop = store.onWake(hear);
        return () => (open.listeners--, stop());
      },
    },
    get listeners() {
      return open.listeners;
    },
    get timers() {
      return open.timers;
    },
  };
}
