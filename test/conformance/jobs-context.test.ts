import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, limits, manualClock, type Book, type JobContext } from "../../src/index.ts";
import { heldJob } from "../jobs/handlers.ts";
import { backends, openTest } from "../support/open-test.ts";

const leaf = job("leaf", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("a handler knows its job, its attempt and its tenant, and its book is bound to that tenant", async (t) => {
      const clock = manualClock();
      const seen: unknown[] = [];
      const curious = job("curious", {
        attempts: 2,
        backoff: ["0ms"],
        async run(params: unknown, { job: mine, attempt, attempts, book }) {
          const { items } = await book.jobs.list();
          seen.push([params, mine, attempt, attempts, book.tenantId, items.length]);
          if (attempt === 1) throw new Error("once more");
        },
      });
      const { book } = await openTest(t, backend, { use: [curious], clock });
      await book.jobs.enqueue(curious, { of: "another tenant" }, { in: "1h" });
      const acme = book.tenant("acme");
      const made = await acme.jobs.enqueue(curious, { a: [1] }, { queue: "q", tags: ["b", "a"] });

      const worker = await book.startWorker();
      await worker.idle();

      const chain = await acme.jobs.chain(made.id);
      const expected = chain.map(({ id, runId, createdAt }, index) => [
        { a: [1] },
        { id, name: "curious", queue: "q", tenant: "acme", runId, createdAt, tags: ["a", "b"], schedule: null },
        ...[index + 1, 2, "acme", index + 1],
      ]);
      assert.deepEqual(seen, expected);
    });

    test("progress is seen while the job runs, and is gone when it has ended", async (t) => {
      const held = heldJob("held");
      const { book } = await openTest(t, backend, { use: [held.job] });
      const { id } = await book.jobs.enqueue(held.job, {});
      const worker = await book.startWorker();
      const { context, succeed } = await held.whenBegun(1);
      const progress = async (): Promise<unknown> => (await book.jobs.get(id)).progress;

      assert.equal(await progress(), null);
      context.progress(0.25, "a quarter");
      await until(async () => JSON.stringify(await progress()) === '{"done":0.25,"note":"a quarter"}');
      context.progress(0.5);
      context.progress(1);
      await until(async () => JSON.stringify(await progress()) === '{"done":1,"note":null}');
      for (const wrong of [-0.1, 1.1, Number.NaN, "half" as never]) {
        assert.throws(() => context.progress(wrong), {
          code: "invalid",
          message: /progress .* is not between 0 and 1/,
        });
      }
      succeed();
      await worker.idle();
      assert.equal(await progress(), null);
    });

    test("lines that a run writes are kept with it, in order, also when it fails", async (t) => {
      const clock = manualClock();
      const talking = job("talking", {
        attempts: 1,
        async run(_params: unknown, { log, job: { runId } }) {
          log("begins");
          await clock.advance(5);
          log("is sure", { runId, list: [1] }, "warn");
          log("has\0odd text", undefined, "debug");
          assert.throws(() => log("no data", { at: new Date(0) }), { code: "invalid", message: /log fields\.at/ });
          log("ends", {}, "error");
          throw new Error("and fails");
        },
      });
      const { book } = await openTest(t, backend, { use: [talking], clock });
      const at = clock.now();
      const { id } = await book.tenant("acme").jobs.enqueue(talking, {});

      const worker = await book.startWorker();
      await worker.idle();

      const { runId } = await book.tenant("acme").jobs.get(id);
      const logs = await book.tenant("acme").runs.logs(runId ?? "");
      assert.deepEqual(
        logs.map(({ at: when, level, fields }) => [when - at, level, fields]),
        [
          [0, "info", null],
          [5, "warn", { runId, list: [1] }],
          [5, "debug", null],
          [5, "error", {}],
        ],
      );
      assert.deepEqual(
        logs.map(({ message }) => message.replace(/has.odd/, "has?odd")),
        ["begins", "is sure", "has?odd text", "ends"],
      );
      assert.deepEqual(await book.runs.logs(runId ?? ""), [], "another tenant's lines are its own");
    });

    test("a run that talks without end keeps its first lines", async (t) => {
      const chatty = job("chatty", {
        run(_params: unknown, { log }) {
          for (let line = 0; line < limits.logLinesMax + 50; line++) log(`line ${line}`);
        },
      });
      const { book } = await openTest(t, backend, { use: [chatty] });
      const { id } = await book.jobs.enqueue(chatty, {});

      const worker = await book.startWorker();
      await worker.idle();

      const logs = await book.runs.logs((await book.jobs.get(id)).runId ?? "");
      assert.deepEqual([logs.length, logs.at(-1)?.message], [limits.logLinesMax, `line ${limits.logLinesMax - 1}`]);
    });

    test("jobs made by a handler name its run as their cause, and the first of all as their root", async (t) => {
      const makes = async (_params: unknown, { book, finish }: JobContext): Promise<void> => {
        await book.jobs.enqueue(leaf, {}, { tags: ["book"] });
        await book.write((tx) => tx.jobs.enqueueMany(leaf, [{}], { tags: ["write"] }));
        await finish((tx) => tx.jobs.enqueue(leaf, {}, { tags: ["finish"] }));
      };
      const middle = job("middle", { run: makes });
      const top = job("top", { run: (_params: unknown, { book }) => book.jobs.enqueue(middle, {}) });
      const { book } = await openTest(t, backend, { use: [top, middle, leaf] });

      const { id } = await book.jobs.enqueue(top, {});
      const worker = await book.startWorker();
      await worker.idle();

      const root = await book.jobs.get(id);
      const [between] = (await book.jobs.list({ name: "middle" })).items;
      assert.equal(root.cause, null);
      assert.deepEqual(between?.cause, { runId: root.runId, rootRunId: root.runId });
      const leaves = (await book.jobs.list({ name: "leaf" })).items;
      assert.deepEqual(new Set(leaves.map(({ tags }) => tags[0])), new Set(["book", "finish", "write"]));
      for (const { cause, tags, runId } of leaves) {
        assert.deepEqual(cause, { runId: between?.runId, rootRunId: root.runId }, tags.join());
        assert.deepEqual((await book.runs.get(runId ?? "")).cause, cause);
      }
    });

    test("causes do not mix, however many handlers and others write at the same time", async (t) => {
      // On PostgreSQL each of these may lose once against each of the others, and after ten times it gives up.
      const writers = backend === "postgres" ? 4 : 20;
      const parent = job("parent", {
        async run({ n }: { n: number }, { book, finish }) {
          await book.jobs.enqueue(leaf, { n });
          if (n >= writers) return;
          await book.write((tx) => tx.jobs.enqueue(leaf, { n }));
          await finish((tx) => tx.jobs.enqueue(leaf, { n }));
        },
      });
      const { book } = await openTest(t, backend, { use: [parent, leaf] });
      const made = await book.jobs.enqueueMany(
        parent,
        Array.from({ length: 20 }, (_, n) => ({ n })),
      );

      const worker = await book.startWorker({ concurrency: 20 });
      await Promise.all([
        ...Array.from({ length: 20 }, () => book.jobs.enqueue(leaf, { n: -1 })),
        ...Array.from({ length: writers / 2 }, () => book.write((tx) => tx.jobs.enqueue(leaf, { n: -1 }))),
      ]);
      await worker.idle();

      const runs = new Map<number, string | null>([[-1, null]]);
      for (const { id } of made) {
        const { params, runId } = await book.jobs.get(id);
        runs.set((params as { n: number }).n, runId);
      }
      const leaves = await allOf(book, "leaf");
      assert.equal(leaves.length, 40 + 2.5 * writers);
      for (const { params, cause } of leaves) {
        assert.equal(cause?.runId ?? null, runs.get((params as { n: number }).n), JSON.stringify(params));
      }
    });

    test("a retry has the cause of the first try", async (t) => {
      const flaky = job("flaky", {
        attempts: 2,
        backoff: ["0ms"],
        run() {
          throw new Error("no");
        },
      });
      const top = job("top", { run: (_params: unknown, { book }) => book.jobs.enqueue(flaky, {}) });
      const { book } = await openTest(t, backend, { use: [top, flaky] });
      const { id } = await book.jobs.enqueue(top, {});

      const worker = await book.startWorker();
      await worker.idle();

      const { runId } = await book.jobs.get(id);
      assert.deepEqual(
        (await allOf(book, "flaky")).map(({ cause }) => cause?.runId),
        [runId, runId],
      );
    });
  });
}

async function allOf(book: Book, name: string): Promise<Awaited<ReturnType<Book["jobs"]["list"]>>["items"][number][]> {
  return [...(await book.jobs.list({ name, limit: 500 })).items];
}

async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setImmediate(resolve));
}
