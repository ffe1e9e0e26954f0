import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, limits, type Book } from "../../src/index.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { render } from "../../src/storage/sql.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const big = "x".repeat(limits.resultBytesMax);

for (const backend of backends) {
  describe(backend, () => {
    for (const how of ["returned", "given to finish"] as const) {
      test(`a result over the limit, ${how}, is an error for whoever waits, and the job has completed`, async (t) => {
        const large = job("large", {
          run: (_params, { finish }) => (how === "returned" ? big : finish(() => big)),
        });
        const { book } = await openTest(t, backend, { use: [large] });
        await book.startWorker();
        const made = await book.jobs.enqueue(large, {});

        await assert.rejects(made.result(), {
          code: "conflict",
          message:
            `job ${made.id} (large) has completed, but what it returned was not kept: result is 262146 bytes of JSON, ` +
            "over the limit of 262144; keep the bulk in a file or a bucket and pass a reference to it",
        });
        await assert.rejects(book.jobs.runNow(large, {}), { code: "conflict", message: /was not kept/ });
        const { status, run } = await book.jobs.get(made.id);
        assert.deepEqual([status, run?.result], ["completed", null]);
      });
    }

    test("what finish returned and could not be kept is in the run's log", async (t) => {
      const odd = job("odd", { run: (_params, { finish }) => finish(() => 10n) });
      const { book } = await openTest(t, backend, { use: [odd] });
      const { id } = await book.jobs.enqueue(odd, {});
      await (await book.startWorker()).idle();

      const { run } = await book.jobs.get(id);
      const lines = await book.runs.logs(run?.id ?? "");
      assert.deepEqual(
        lines.map(({ level, message }) => [level, message.slice(0, 42)]),
        [["warn", "the result is not kept: result is a bigint"]],
      );
    });

    test("a job that waits for its own end, or for that of its group, is told", async (t) => {
      const answers: string[] = [];
      const told = async (waiting: Promise<unknown>): Promise<void> =>
        void answers.push(await waiting.then(String, (error: unknown) => String((error as Error).message)));
      const self = job<{ group?: string }>("self", {
        attempts: 1,
        async run({ group }, { book, job: { id } }) {
          await told(group === undefined ? book.jobs.result(id) : book.groups.wait(group));
        },
      });
      const { book } = await openTest(t, backend, { use: [self] });
      const { id } = await book.jobs.enqueue(self, {});
      const group = await book.groups.create({ mode: "parallel" }, (each) => each.add(self, {}, { in: "1h" }));
      const member = await book.groups.add(group.id, self, { group: group.id });
      await (await book.startWorker()).idle();

      assert.deepEqual(
        answers.sort(),
        [
          `job ${id} waits for job ${id}, which cannot end before itself: wait for it from outside`,
          `job ${member.id} waits for group ${group.id}, which cannot end before itself: wait for it from outside`,
        ].sort(),
      );
    });

    test("a run that is alone after a loss may wait for others' work, and is told when nobody is left for it", async (t) => {
      const child = job("child", { queue: "children", attempts: 1, run: () => "done" });
      const answers: string[] = [];
      const parent = job<{ child: string }>("parent", {
        async run({ child: id }, { book }) {
          answers.push(await book.jobs.result(id).then(String, (error: unknown) => (error as Error).message));
        },
      });
      const { book, url } = await openTest(t, backend, { use: [parent, child] });
      const { book: other } = await openTest(t, backend, { url, use: [child] });
      await book.startWorker();
      await book.jobs.pause("child");
      const [first, second] = await book.jobs.enqueueMany(child, [{}, {}]);
      const waitAlone = async (made: { id: string } | undefined): Promise<void> => {
        const { id } = await book.jobs.enqueue(parent, { child: made?.id ?? "" }, { in: "1h" });
        await tamper(book, async (tx) => {
          await tx.sql`update daybook_job set alone = 2 where id = ${id}`;
          await tx.sql`update daybook_line set status = 'queued', waits_for = null
            where seq = (select seq from daybook_job where id = ${id})`;
        });
        await book.jobs.resume("nobody"); // it wakes the worker
      };

      // Only this process runs it, and it cannot while the parent is alone.
      await waitAlone(first);
      await until(async () => answers.length === 1);
      const alone =
        /alone in its process after two losses, and nobody else runs job .* \("child" in queue "children"\)/;
      assert.match(answers.pop() ?? "", alone);

      // Another process runs it.
      await other.startWorker({ queues: ["children"] });
      await waitAlone(first);
      await until(async () => (await running(book)) === 1);
      await book.jobs.resume("child");
      await until(async () => answers.length === 1);
      assert.equal(answers.pop(), "done");

      // Another process could have run it, and has gone: the next sweep finds out.
      await second?.result();
      await book.jobs.pause("child");
      const third = await book.jobs.enqueue(child, {});
      await waitAlone(third);
      await until(async () => (await running(book)) === 1);
      await other.close();
      await book.startWorker({ queues: ["unused"] });
      await until(async () => answers.length === 1);
      assert.match(answers.pop() ?? "", alone);
    });

    test("a wait for a group looks once at the beginning and once at its end", async (t) => {
      const quick = job("quick", { attempts: 1, run: () => undefined });
      const at = await openEngine(t, backend, { use: [quick] });
      const { read } = at.store;
      let looks = 0;
      at.store.read = async <R>(statement: Parameters<typeof read>[0]) => {
        const rows = await read<R>(statement);
        if (/from daybook_job_group(?: job_group)? where tenant_id/.test(render(statement, backend).text)) looks++;
        return rows;
      };
      const { id } = await at.groups.create({ mode: "parallel" }, (group) => {
        for (let n = 0; n < 3; n++) group.add(quick, {});
      });
      const others = await at.jobs.enqueueMany(quick, [{}, {}, {}, {}]);
      const done = at.groups.wait(id);
      const results = others.map((made) => made.result());
      const marked = async (): Promise<unknown[]> => at.rows("select seq from daybook_job_now where awaited = 1");
      await until(async () => looks === 1 && (await marked()).length === others.length);

      for (const claimed of (await at.claim(10)).toReversed()) {
        await at.end(claimed, { status: "success" });
        await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(results);

      const { status, progress } = await done;
      assert.deepEqual([status, progress.completed, progress.total], ["completed", 3, 3]);
      assert.equal(looks, 2);
    });
  });
}

async function running(book: Book): Promise<number> {
  return (await book.jobs.list({ status: "running" })).items.length;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
