import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, limits, type Book, type DaybookError, type JobContext, type UserTx } from "../../src/index.ts";
import { newRun } from "../../src/jobs/run/run.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { createStep, keepStep } from "../../src/jobs/run/step.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { heldJob } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

type Done = { readonly run: string; readonly n: number };

for (const backend of backends) {
  describe(backend, () => {
    test("a job that fails between every two of its steps does each once, in each tenant by itself", async (t) => {
      const ran: string[] = [];
      const seen = new Map<string, Done[][]>();
      const five = job("five", {
        attempts: 6,
        backoff: ["0ms"],
        async run(_params: unknown, { step, attempt, book, job: { runId } }) {
          const results: Done[] = [];
          seen.set(book.tenantId, [...(seen.get(book.tenantId) ?? []), results]);
          for (let n = 1; n <= 5; n++) {
            if (attempt === n) throw new Error(`not yet ${n}`);
            const done = { run: runId, n };
            const result =
              n % 2 === 0
                ? await step.write("even", async (tx) => {
                    await tx.sql`insert into effect (tenant, n) values (${tx.tenant}, ${n})`;
                    return done;
                  })
                : await step("odd", () => {
                    ran.push(`${book.tenantId} ${n}`);
                    return done;
                  });
            results.push(result);
          }
          return results;
        },
      });
      const { book } = await openTest(t, backend, { use: [five] });
      await createEffects(book);
      const acme = book.tenant("acme");

      const made = [await book.jobs.enqueue(five, {}), await acme.jobs.enqueue(five, {})] as const;
      const worker = await book.startWorker();
      const results = await Promise.all(made.map((each) => each.result()));
      await worker.stop();

      const expected = ["acme", "default"].flatMap((tenant) => [1, 3, 5].map((n) => `${tenant} ${n}`));
      assert.deepEqual(ran.toSorted(), expected);
      assert.deepEqual(await effects(book), ["acme 2", "acme 4", "default 2", "default 4"]);
      for (const [index, of] of [book, acme].entries()) {
        const chain = await of.jobs.chain(made[index]?.id ?? "");
        // The nth run failed before the nth step, so what it has of its own is the step before.
        const kept = [1, 2, 3, 4, 5].map((n) => ({ run: chain[n]?.runId, n }));
        assert.deepEqual(results[index], kept);
        assert.deepEqual(
          seen.get(of.tenantId),
          [0, 1, 2, 3, 4, 5].map((n) => kept.slice(0, n)),
        );
      }
      assert.deepEqual(await book.doctor(), []);
    });

    test("a step that throws is not kept, and its effects are undone", async (t) => {
      const ran: string[] = [];
      const flaky = job("flaky", {
        backoff: ["0ms"],
        async run(_params: unknown, { step, attempt }) {
          await step("a", () => void ran.push(`a${attempt}`));
          await step.write("b", async (tx) => {
            await tx.sql`insert into effect (tenant, n) values ('b', ${attempt})`;
            if (attempt === 1) throw new RangeError("no");
          });
          await step("c", () => {
            ran.push(`c${attempt}`);
            if (attempt === 2) throw new RangeError("no");
          });
        },
      });
      const { book } = await openTest(t, backend, { use: [flaky] });
      await createEffects(book);

      const made = await book.jobs.enqueue(flaky, {});
      const worker = await book.startWorker();
      assert.equal(await made.result(), undefined);
      await worker.stop();

      assert.deepEqual(ran, ["a1", "c2", "c3"]);
      assert.deepEqual(await effects(book), ["b 2"]);
    });

    test("steps of a lost owner are not kept, and the next run goes on behind the last that was", async (t) => {
      const held = heldJob("held", { attempts: 1 });
      const { book, url } = await openTest(t, backend, { use: [held.job] });
      await createEffects(book);
      const { id } = await book.jobs.enqueue(held.job, {});
      const worker = await book.startWorker({ concurrency: 1 });
      const first = await held.whenBegun(1);
      assert.equal(await first.context.step("a", () => "of the first"), "of the first");
      await lose(t, backend, url, book, id);

      const outside: string[] = [];
      const late = first.context.step("b", () => outside.push("first"));
      await assert.rejects(late, { code: "conflict", message: /no longer this process's, so step "b" was not kept/ });
      const written = first.context.step.write("c", (tx) => tx.sql`insert into effect (tenant, n) values ('c', 1)`);
      await assert.rejects(written, {
        code: "conflict",
        message: /no longer this process's, so step "c" was not kept/,
      });

      first.succeed();
      const { context, succeed } = await held.whenBegun(2);
      assert.equal(await context.step("a", () => "of the second"), "of the first");
      assert.equal(await context.step("b", () => outside.push("second")), 2);
      await context.step.write("c", (tx) => tx.sql`insert into effect (tenant, n) values ('c', 2)`);
      succeed("done");
      assert.equal(await book.jobs.result(id), "done");
      await worker.stop();
      assert.deepEqual([outside, await effects(book)], [["first", "second"], ["c 2"]]);
    });

    test("another step at a kept place is a clear error, and a job by hand in the old order goes on", async (t) => {
      let order = ["draw", "paint", "frame"];
      const ran: string[] = [];
      const picture = job("picture", {
        attempts: 1,
        async run(_params: unknown, { step }) {
          for (const name of order) await step(name, () => void ran.push(name));
          if (ran.length < 4) throw new Error("not good enough");
        },
      });
      const { book } = await openTest(t, backend, { use: [picture] });
      const worker = await book.startWorker();
      const made = await book.jobs.enqueue(picture, {});
      await assert.rejects(made.result());

      order = ["draw", "frame", "paint"];
      const changed = await book.jobs.retry(made.id);
      const refused = { code: "conflict", message: /StepOrderError: step 1 of job .* is "frame", .* kept "paint"/ };
      await assert.rejects(changed.result(), refused);
      const { run } = await book.jobs.get(changed.id);
      assert.equal(run?.error?.type, "StepOrderError");
      assert.match(run?.error?.message ?? "", /call steps in the same order in every run, or give .* another job name/);

      order = ["draw", "paint", "frame", "hang"];
      const last = await book.jobs.retry(made.id);
      await last.result();
      await worker.stop();
      assert.deepEqual(ran, ["draw", "paint", "frame", "hang"]);
    });

    test("steps that start together have their places, whichever ends first, and a name may be used twice", async (t) => {
      const ran: string[] = [];
      const seen: unknown[] = [];
      const parallel = job("parallel", {
        backoff: ["0ms"],
        async run(_params: unknown, { step, attempt }) {
          const slow = Promise.withResolvers<string>();
          const both = Promise.all([
            step("half", () => (ran.push(`left${attempt}`), slow.promise)),
            step("half", () => (ran.push(`right${attempt}`), slow.resolve("left"), "right")),
          ]);
          seen.push(await both);
          if (attempt === 1) throw new Error("again");
        },
      });
      const { book } = await openTest(t, backend, { use: [parallel] });

      const made = await book.jobs.enqueue(parallel, {});
      const worker = await book.startWorker();
      await made.result();
      await worker.stop();

      assert.deepEqual(
        [ran, seen],
        [
          ["left1", "right1"],
          [
            ["left", "right"],
            ["left", "right"],
          ],
        ],
      );
    });

    test("the run that makes a result gets what a later one gets: what JSON keeps of it", async (t) => {
      const values = [undefined, null, 0, "", { b: undefined, a: [1, { c: null }] }, [], false];
      const seen: unknown[][] = [];
      const odd = job("odd", {
        backoff: ["0ms"],
        async run(_params: unknown, { step, attempt }) {
          const got: unknown[] = [];
          for (const value of values) got.push(await step("value", () => value));
          for (const value of values) got.push(await step.write("value", () => value));
          seen.push(got);
          if (attempt === 1) throw new Error("again");
        },
      });
      const { book } = await openTest(t, backend, { use: [odd] });

      const made = await book.jobs.enqueue(odd, {});
      const worker = await book.startWorker();
      await made.result();
      await worker.stop();

      const kept = [undefined, null, 0, "", { a: [1, { c: null }] }, [], false];
      assert.deepEqual(seen, [
        [...kept, ...kept],
        [...kept, ...kept],
      ]);
    });

    test("a result that is too big or no data is refused, and nothing of its step is kept", async (t) => {
      const messages: string[] = [];
      const bad = job("bad", {
        attempts: 1,
        async run(_params: unknown, { step }) {
          const note = (error: DaybookError): void => void messages.push(`${error.code}: ${error.message}`);
          const leave = (n: number, value: unknown): Promise<unknown> =>
            step.write("bad", async (tx) => {
              await tx.sql`insert into effect (tenant, n) values ('bad', ${n})`;
              return value;
            });
          await leave(1, "x".repeat(limits.resultBytesMax)).catch(note);
          await leave(2, { at: new Date(0) }).catch(note);
          await step("outside", () => 10n).catch(note);
          await leave(3, "x".repeat(limits.resultBytesMax - 2));
        },
      });
      const { book } = await openTest(t, backend, { use: [bad] });
      await createEffects(book);

      const made = await book.jobs.enqueue(bad, {});
      const worker = await book.startWorker();
      await made.result();
      await worker.stop();

      assert.deepEqual(await effects(book), ["bad 3"]);
      assert.equal(messages.length, 3);
      assert.match(
        messages[0] ?? "",
        /^invalid: result of step "bad" is 262146 bytes of JSON, over the limit of 262144/,
      );
      assert.match(messages[1] ?? "", /^invalid: result of step "bad".at is a Date, .* pass date.toISOString\(\)/);
      assert.match(messages[2] ?? "", /^invalid: result of step "outside" is a bigint/);
      const rows = await book.read((tx) => tx.sql<{ place: number }>`select place from daybook_job_step`);
      assert.deepEqual(rows, [{ place: 0 }]);
    });

    test("a step in a step, in a transaction, after finish or of nothing is refused", async (t) => {
      const messages: string[] = [];
      const wrong = job("wrong", {
        attempts: 1,
        async run(_params: unknown, { step, finish, book }) {
          const refused = async (run: () => Promise<unknown>): Promise<void> =>
            void (await run().catch((error: DaybookError) => messages.push(`${error.code}: ${error.message}`)));
          await refused(() => step("out", () => step("in", () => 1)));
          await refused(() => step.write("out", () => step.write("in", () => 1)));
          await refused(() => step("out", () => finish(() => 1)));
          await refused(() => book.write(() => step("in", () => 1)));
          await refused(() => step("", () => 1));
          await refused(() => step("x", undefined as never));
          await refused(() => step.write("x", 5 as never));
          // What a step left running is no longer in it.
          const later = Promise.withResolvers<void>();
          let running: Promise<number> | undefined;
          await step("starts something", () => void (running = later.promise.then(() => step("then", () => 7))));
          later.resolve();
          assert.equal(await running, 7);
          await finish(() => "done");
          await refused(() => step("late", () => 1));
        },
      });
      const { book } = await openTest(t, backend, { use: [wrong] });

      const made = await book.jobs.enqueue(wrong, {});
      const worker = await book.startWorker();
      assert.equal(await made.result(), "done");
      await worker.stop();

      const inside = 'was called inside step "out": call it after that, with what the step returned';
      assert.deepEqual(messages, [
        `invalid: step "in" ${inside}`,
        `invalid: step "in" ${inside}`,
        `invalid: finish ${inside}`,
        'invalid: step "in" was called inside book.write: call it before or after, because it commits by itself',
        'invalid: step name "" is empty; give it at least one character',
        'invalid: step "x" has no function: step("x", () => …)',
        'invalid: step "x" has no function: step("x", () => …)',
        `invalid: job ${made.id} has been finished already: step "late" must come before finish`,
      ]);
    });

    test("a run that was asked to end begins no further step, and a retry by hand goes on from there", async (t) => {
      const held = heldJob("held", { attempts: 1 });
      const { book } = await openTest(t, backend, { use: [held.job] });
      const { id } = await book.jobs.enqueue(held.job, {});
      const worker = await book.startWorker();
      const first = await held.whenBegun(1);
      const { signal } = first.context;
      const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
      assert.equal(
        await first.context.step("a", async () => {
          await book.jobs.cancel(id);
          await aborted;
          return 1;
        }),
        1,
      );
      const further = first.context.step("b", () => 2);
      await assert.rejects(further, (error) => error === signal.reason);
      first.fail(signal.reason);
      await assert.rejects(book.jobs.result(id), { message: /was cancelled, so it has no result/ });

      const retry = await book.jobs.retry(id);
      const second = await held.whenBegun(2);
      assert.equal(await second.context.step("a", () => 3), 1);
      assert.equal(await second.context.step("b", () => 4), 4);
      second.succeed();
      await retry.result();
      await worker.stop();
    });

    test("what a step enqueues is caused by its run, and may be awaited in the next step", async (t) => {
      const child = job("child", { run: ({ n }: { n: number }) => n * 2 });
      const parent = job("parent", {
        async run(_params: unknown, { step, book }) {
          const made = await step.write("make", (tx) => tx.jobs.enqueue(child, { n: 21 }));
          return step("wait", () => book.jobs.result(made));
        },
      });
      const { book } = await openTest(t, backend, { use: [parent, child] });

      const made = await book.jobs.enqueue(parent, {});
      const worker = await book.startWorker();
      const answer: number = await made.result();
      await worker.stop();

      const { items } = await book.jobs.list({ name: "child" });
      const { runId } = await book.jobs.get(made.id);
      assert.deepEqual([answer, items.length, items[0]?.cause?.runId], [42, 1, runId]);
    });

    test("the first run of a chain reads nothing for its steps", async (t) => {
      const work = job("work", { backoff: ["0ms"], run: () => undefined });
      const engine = await openEngine(t, backend, { use: [work] });
      let reads = 0;
      const store: typeof engine.store = { ...engine.store, read: (query) => (reads++, engine.store.read(query)) };
      const stepOf = (claimed: ClaimedJob): ReturnType<typeof createStep> =>
        createStep({ ...engine.engine, store }, newRun(claimed, 0));
      await engine.jobs.enqueue(work, {});

      const [first] = (await engine.claim(1)) as [ClaimedJob];
      const step = stepOf(first);
      const made = [await step("a", () => 1), await step.write("b", () => 2), reads];
      await engine.end(first, { status: "error", error: { type: "Error", message: "no", trace: null } });
      const [second] = (await engine.claim(1)) as [ClaimedJob];
      const again = stepOf(second);
      const replayed = [await again("a", () => 3), await again.write("b", () => 4), reads];

      assert.deepEqual(
        [made, replayed],
        [
          [1, 2, 0],
          [1, 2, 2],
        ],
      );
    });

    test("a run has a limit of steps", async (t) => {
      const work = job("work", { run: () => undefined });
      const { engine, jobs, claim, rows } = await openEngine(t, backend, { use: [work] });
      await jobs.enqueue(work, {});
      const [claimed] = (await claim(1)) as [ClaimedJob];
      // Aborted runs do not run steps, but count them.
      const step = createStep(engine, { ...newRun(claimed, 0), abortReason: new Error("over") as DaybookError });

      for (let n = 0; n < limits.stepsMax; n++)
        await assert.rejects(
          step("s", () => n),
          { message: "over" },
        );
      await assert.rejects(
        step("one more", () => 1),
        { code: "invalid", message: /has more than 10000 steps/ },
      );

      assert.deepEqual(await rows("select * from daybook_job_step"), []);
    });
  });
}

// SQLite's only writer cannot be overtaken.
test("postgres: whoever ends a run waits for a step that is just being kept, so the next run finds it", async (t) => {
  const work = job("work", { backoff: ["0ms"], run: () => undefined });
  const { engine, store, url, session, jobs, claim, end, rows } = await openEngine(t, "postgres", { use: [work] });
  const { store: other } = await openTestStore(t, "postgres", { url });
  await jobs.enqueue(work, {});
  const [first] = (await claim(1)) as [ClaimedJob];
  await end(first, { status: "error" });
  // A second run: the row of the chain's first job is held by the step's reference to it anyway.
  const [second] = (await claim(1)) as [ClaimedJob];

  let recovered: Promise<unknown> | undefined;
  await store.write(async (tx) => {
    await keepStep(tx, second, { place: 0, name: "a", result: '"kept"' });
    recovered = other.write((theirs) => recoverSession(theirs, { kinds: {} }, session.seq));
    await until("the recovery waits for our lock", async () => {
      const waiting = await rows<{ n: number }>(`select count(*) as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`);
      return waiting[0]?.n === 1 ? true : undefined;
    });
  });
  await recovered;

  const [third] = (await claim(1)) as [ClaimedJob];
  assert.equal(await createStep(engine, newRun(third, 0))("a", () => "again"), "kept");
});

// Types: what a step gives is what its function gives, without a word from the user.
async function typesOf({ step }: JobContext): Promise<void> {
  const count: number = await step("count", () => 5);
  const later: { at: string } = await step("later", async () => ({ at: "now" }));
  const rows: { n: number }[] = await step.write("rows", (tx) => tx.sql<{ n: number }>`select 1 as n`);
  (await step("nothing", () => undefined)) satisfies undefined;
  // @ts-expect-error -- it is a number
  const text: string = await step("count", () => count);
  // @ts-expect-error -- outside of a transaction there is no tx
  await step("rows", (tx: UserTx) => tx.sql`select ${text}, ${later.at}, ${rows.length}`);
}

test("a step's type is that of its function", () => {
  assert.equal(typeof typesOf, "function");
});

async function lose(
  t: Parameters<typeof openTestStore>[0],
  backend: Parameters<typeof openTestStore>[1],
  url: string,
  book: Book,
  id: string,
): Promise<void> {
  const { store } = await openTestStore(t, backend, { url });
  const [row] = await book.read(
    (tx) => tx.sql<{ session_seq: number }>`select session_seq from daybook_job_now where id = ${id}`,
  );
  await store.write((tx) => recoverSession(tx, { kinds: {} }, row?.session_seq ?? 0));
}

async function createEffects(book: Book): Promise<void> {
  await book.write((tx) => tx.sql`create table effect (tenant text, n integer)`);
}

async function effects(book: Book): Promise<string[]> {
  const rows = await book.read(
    (tx) => tx.sql<{ tenant: string; n: number }>`select tenant, n from effect order by tenant, n`,
  );
  return rows.map(({ tenant, n }) => `${tenant} ${n}`);
}
