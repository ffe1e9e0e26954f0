import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { job, limits, manualClock, type Backoff, type Book, type JobRecord } from "../../src/index.ts";
import { jobSettled } from "../../src/jobs/kind.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { heldJob, reasonOf } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, cleanup, openTest } from "../support/open-test.ts";

const hourMs = 3_600_000;

for (const backend of backends) {
  describe(backend, () => {
    test("a job that succeeds is completed, with one run and its result", async (t) => {
      const clock = manualClock();
      const sum = job("sum", {
        params: z.object({ a: z.number(), b: z.number().default(5) }),
        async run({ a, b }) {
          await clock.advance(40);
          return { sum: a + b, list: [1, null, "ü"] };
        },
      });
      const { book } = await openTest(t, backend, { use: [sum], clock });
      const startedAt = clock.now();

      const { id } = await book.jobs.enqueue(sum, { a: 2 });
      const worker = await book.startWorker();
      await worker.idle();

      const found = await book.jobs.get(id);
      assert.equal(found.status, "completed");
      assert.deepEqual(found.run, {
        id: found.runId,
        status: "success",
        startedAt,
        endedAt: startedAt + 40,
        durationMs: 40,
        attempt: 1,
        error: null,
        result: { sum: 7, list: [1, null, "ü"] },
        command: null,
      });
      assert.deepEqual(
        [found.finishedAt, found.startedAt, found.sessionId, found.retriedBy],
        [startedAt + 40, startedAt, null, null],
      );
      const run = await book.runs.get(found.runId ?? "");
      assert.deepEqual([run.jobId, run.sessionId, run.kind, run.name], [id, book.sessionId, "job", "sum"]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a handler that returns nothing has no result, and one that returns null has null", async (t) => {
      const quiet = job("quiet", { run: () => undefined });
      const nil = job("nil", { run: () => null });
      const { book } = await openTest(t, backend, { use: [quiet, nil] });

      const found = await runAll(book, [await book.jobs.enqueue(quiet, {}), await book.jobs.enqueue(nil, {})]);

      assert.deepEqual(
        found.map(({ status, run }) => [status, run?.result]),
        [
          ["completed", null],
          ["completed", null],
        ],
      );
    });

    test("a job that fails is tried again, attempt by attempt, until none is left", async (t) => {
      const clock = manualClock();
      const attempts: number[] = [];
      const broken = job("broken", {
        attempts: 3,
        backoff: ["1s", "5s"],
        priority: 7,
        queue: "slow",
        timeout: "1m",
        losses: 2,
        run(_params: unknown, { attempt }) {
          attempts.push(attempt);
          throw new RangeError(`attempt ${attempt}`);
        },
      });
      const { book } = await openTest(t, backend, { use: [broken], clock });
      const at = clock.now();
      const { id } = await book.jobs.enqueue(broken, { n: 1 }, { tags: ["x"], key: "k" });

      const worker = await book.startWorker();
      for (const ms of [0, 1000, 4999, 1]) {
        await clock.advance(ms);
        await worker.idle();
      }

      const chain = await book.jobs.chain(id);
      assert.deepEqual(attempts, [1, 2, 3]);
      assert.deepEqual(
        chain.map((each) => [each.status, each.attempt, each.origin, each.availableAt - at, each.run?.error?.message]),
        [
          ["failed", 1, "enqueued", 0, "attempt 1"],
          ["failed", 2, "retry", 1000, "attempt 2"],
          ["failed", 3, "retry", 6000, "attempt 3"],
        ],
      );
      assert.deepEqual(
        chain.map((each) => [each.retryOf, each.retriedBy]),
        [
          [null, chain[1]?.id],
          [chain[0]?.id, chain[2]?.id],
          [chain[1]?.id, null],
        ],
      );
      const same = ({ params, priority, queue, tags, key, attempts: most }: JobRecord): unknown => ({
        params,
        priority,
        queue,
        tags,
        key,
        most,
      });
      for (const each of chain) assert.deepEqual(same(each), same(chain[0] as JobRecord));
      assert.deepEqual(chain[0]?.run?.error?.type, "RangeError");
      assert.match(chain[0]?.run?.error?.trace ?? "", /RangeError: attempt 1\n +at /);
      assert.deepEqual(await book.jobs.chain(chain[2]?.id ?? ""), chain);
    });

    test("a retry that succeeds ends the chain, and the first failure stays what it was", async (t) => {
      const flaky = job("flaky", {
        backoff: ["0ms"],
        run(_params: unknown, { attempt }) {
          if (attempt < 3) throw new Error("not yet");
          return attempt;
        },
      });
      const { book } = await openTest(t, backend, { use: [flaky] });

      const { id } = await book.jobs.enqueue(flaky, {});
      const worker = await book.startWorker();
      await worker.idle();

      const chain = await book.jobs.chain(id);
      assert.deepEqual(
        chain.map((each) => [each.status, each.run?.result]),
        [
          ["failed", null],
          ["failed", null],
          ["completed", 3],
        ],
      );
    });

    const backoffs: [Backoff | undefined, number, number[]][] = [
      [undefined, 0.5, [10_000, 20_000, 40_000, 80_000]],
      [undefined, 0, [9000, 18_000, 36_000, 72_000]],
      [undefined, 1 - 2 ** -53, [11_000, 22_000, 44_000, 88_000]],
      [{ base: "1h", spread: 0.5 }, 1 - 2 ** -53, [hourMs, hourMs, hourMs, hourMs]],
      [{ base: 100, factor: 3, max: 500, spread: 0 }, 0.9, [100, 300, 500, 500]],
      [{ base: "1s", factor: 1, spread: 1 }, 0.25, [500, 500, 500, 500]],
      [["3s", "1s"], 0.3, [3000, 1000, 1000, 1000]],
      [[0], 0.3, [0, 0, 0, 0]],
    ];
    test("the wait before a retry is exactly what the backoff and the dice say", async (t) => {
      for (const [backoff, dice, expected] of backoffs) {
        const broken = job("broken", {
          ...(backoff === undefined ? {} : { backoff }),
          attempts: 5,
          run: () => undefined,
        });
        const at = await openEngine(t, backend === "sqlite" ? "memory" : backend, {
          use: [broken],
          random: () => dice,
        });
        const { id } = await at.jobs.enqueue(broken, {});

        for (const ms of [0, ...expected]) {
          at.clock.step(ms);
          const { claim } = await at.turn(1, at.claimer(), { lookForDue: true });
          await at.end(claim.jobs[0] as ClaimedJob, { status: "error" });
        }

        const chain = await at.jobs.chain(id);
        const waits = chain.slice(1).map((each) => each.availableAt - each.createdAt);
        assert.deepEqual([waits, chain.at(-1)?.status], [expected, "failed"], JSON.stringify([backoff, dice]));
      }
    });

    const thrown: [what: string, value: unknown, type: string, message: RegExp][] = [
      ["a text", "just text", "string", /^just text$/],
      ["nothing", undefined, "undefined", /^undefined$/],
      ["null", null, "null", /^null$/],
      ["an object", { code: 5, deep: { a: 1 } }, "object", /^\{ code: 5, deep: \{ a: 1 \} \}$/],
      ["an error with U+0000", new Error("a\0b"), "Error", /^a.+b$/],
      ["an error without a message", new TypeError(), "TypeError", /^$/],
      ["an error with a huge message", new Error("x".repeat(100_000)), "Error", /^x{1000,8192}…?.*$/],
      ["an object that cannot be read", unreadable(), "object", /.+/],
    ];
    test("whatever a handler throws is recorded as a failed run that says so", async (t) => {
      const throwing = job("throwing", {
        attempts: 1,
        run({ index }: { index: number }) {
          throw thrown[index]?.[1];
        },
      });
      const { book } = await openTest(t, backend, { use: [throwing] });
      const made = await book.jobs.enqueueMany(
        throwing,
        thrown.map((_, index) => ({ index })),
      );

      const found = await runAll(book, made);

      for (const [index, [what, , type, message]] of thrown.entries()) {
        const { status, run } = found[index] as JobRecord;
        assert.deepEqual([status, run?.status, run?.error?.type], ["failed", "error", type], what);
        assert.match(run?.error?.message ?? "?", message, what);
      }
    });

    test("a result that cannot be kept is told in the log of a run that succeeded", async (t) => {
      const results: unknown[] = [
        new Date(0),
        { a: [1, () => 1] },
        5n,
        Number.NaN,
        "x".repeat(limits.resultBytesMax + 1),
        "\0",
      ];
      const odd = job("odd", { attempts: 1, run: ({ index }: { index: number }) => results[index] });
      const { book } = await openTest(t, backend, { use: [odd] });

      const found = await runAll(
        book,
        await book.jobs.enqueueMany(
          odd,
          results.map((_, index) => ({ index })),
        ),
      );

      const messages = [
        /^result/,
        /^result\.a\[1\]/,
        /^result/,
        /^result/,
        /^result is .* over the limit of 262144/,
        /^result .*U\+0000/,
      ];
      const lines = await book.read(
        (tx) =>
          tx.sql<{
            run_id: string;
            message: string;
            level: string;
          }>`select run_id, message, level from daybook_run_log`,
      );
      for (const [index, { status, run }] of found.entries()) {
        assert.deepEqual([status, run?.result], ["completed", null]);
        const [line, ...more] = lines.filter(({ run_id }) => run_id === run?.id);
        assert.deepEqual([line?.level, more], ["warn", []]);
        assert.match(line?.message.replace(/^the result is not kept: /, "") ?? "", messages[index] as RegExp);
      }
    });

    test("params that no longer fit the schema are a run with a DependencyError, and the handler is not called", async (t) => {
      const { book: before, url } = await openTest(t, backend, { use: [job("mail", { run: () => undefined })] });
      const { id } = await before.jobs.enqueue("mail", { to: 5 });
      await before.close();
      let called = false;
      const strict = job("mail", {
        attempts: 1,
        params: z.object({ to: z.string() }),
        run() {
          called = true;
        },
      });
      const { book } = await openTest(t, backend, { url, use: [strict] });

      const [found] = await runAll(book, [{ id }]);

      assert.equal(called, false);
      assert.deepEqual([found?.status, found?.run?.error?.type], ["failed", "DependencyError"]);
      assert.match(found?.run?.error?.message ?? "", /params of job "mail" do not fit its schema: to: .*string/);
      assert.equal(found?.retriedBy, null, "they would fail again");
    });

    test("a run that takes too long is told so by its signal, recorded as timed out, and tried again", async (t) => {
      const clock = manualClock();
      const reasons: unknown[] = [];
      const slow = job("slow", {
        timeout: "2s",
        attempts: 2,
        backoff: ["0ms"],
        run: (_params: unknown, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => {
              reasons.push(reasonOf(signal));
              reject(new Error("gave up"));
            });
            void clock.advance(2000);
          }),
      });
      const { book } = await openTest(t, backend, { use: [slow], clock });

      const { id } = await book.jobs.enqueue(slow, {});
      const worker = await book.startWorker();
      await worker.idle();

      const chain = await book.jobs.chain(id);
      assert.deepEqual(reasons, [
        { code: "timeout", cause: "timeout" },
        { code: "timeout", cause: "timeout" },
      ]);
      assert.deepEqual(
        chain.map(({ status, attempt, run }) => [status, attempt, run?.status, run?.error?.type, run?.error?.message]),
        [1, 2].map((n) => [
          "failed",
          n,
          "timed_out",
          "TimeoutError",
          "the run took longer than its timeout of 2000 ms",
        ]),
      );
    });

    test("a handler that ignores its signal is recorded as timed out after its grace, and what it does later is nothing", async (t) => {
      const clock = manualClock();
      const deaf = heldJob("deaf", { timeout: "2s", attempts: 1 });
      const { book } = await openTest(t, backend, { use: [deaf.job], clock });
      const { id } = await book.jobs.enqueue(deaf.job, {});
      const worker = await book.startWorker();
      const { context, succeed } = await deaf.whenBegun(1);

      await clock.advance(2000);
      const aborted = context.signal.aborted;
      await clock.advance(4999);
      const stillRunning = await book.jobs.get(id);
      await clock.advance(1);
      await worker.idle();
      const ended = await book.jobs.get(id);
      succeed("late");
      await worker.idle();

      assert.deepEqual([aborted, stillRunning.status], [true, "running"]);
      assert.deepEqual([ended.status, ended.run?.status, ended.run?.durationMs], ["failed", "timed_out", 7000]);
      assert.deepEqual(await book.jobs.get(id), ended);
      const logs = await book.read(
        (tx) => tx.sql<{ level: string; message: string }>`select level, message from daybook_run_log`,
      );
      assert.deepEqual(logs, [
        { level: "warn", message: "the handler did not end within 5s of its signal, and may still run" },
      ]);
    });

    test("every run that ends is a fact, with what became of its job", async (t) => {
      const mixed = job("mixed", {
        attempts: 1,
        run({ fail }: { fail: boolean }) {
          if (fail) throw new Error("no");
        },
      });
      const heard: unknown[] = [];
      cleanup(
        t,
        jobSettled.subscribe(({ id, status, run, retriedBy }) => void heard.push([id, status, run?.status, retriedBy])),
      );
      const { book } = await openTest(t, backend, { use: [mixed] });

      const [good, bad] = await book.jobs.enqueueMany(mixed, [{ fail: false }, { fail: true }]);
      const worker = await book.startWorker();
      await worker.idle();

      assert.deepEqual(heard.toSorted(byText), [
        [good?.id, "completed", "success", null],
        [bad?.id, "failed", "error", null],
      ]);
    });
  });
}

async function runAll(book: Book, made: readonly { readonly id: string }[]): Promise<JobRecord[]> {
  const worker = await book.startWorker();
  await worker.idle();
  return Promise.all(made.map(({ id }) => book.jobs.get(id)));
}

function unreadable(): object {
  return new Proxy(
    {},
    {
      get() {
        throw new Error("hands off");
      },
    },
  );
}

function byText(a: unknown, b: unknown): number {
  return String(a) < String(b) ? -1 : 1;
}
