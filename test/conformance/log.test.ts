// What a process says of its work while it goes on.
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { job, manualClock, open, type LogFields, type LogLine, type LogTo } from "../../src/index.ts";
import { sayOnStderr } from "../../src/open/log.ts";
import { projectWith, runProgram } from "../docs/snippet.ts";
import { backends, bookUrl, openTest } from "../support/open-test.ts";

const charge = job("charge", {
  attempts: 2,
  backoff: ["1ms"],
  run(_params: unknown) {
    throw new RangeError("no credit");
  },
});
const fine = job("fine", { run: () => undefined });

/** Works until its last job tells it to stop. */
const service = `
import { job, open } from "daybook";
const [url, log] = process.argv.slice(2);
const charge = job("charge", { attempts: 2, backoff: ["1ms"], run() { throw new RangeError("no\\u001b[31m credit\\nleft"); } });
const stop = job("stop", { run: () => process.kill(process.pid, "SIGTERM") });
const book = await open(url, { use: [charge, stop] });
const made = await book.jobs.enqueue(charge);
made.result().catch(() => book.jobs.enqueue(stop));
await book.work(log === "silent" ? { log: false } : {});
`;

for (const backend of backends) {
  describe(`log on ${backend}`, () => {
    test("book.work() says on stderr what failed, on a plain line each, unless it is told not to", async (t) => {
      const folder = projectWith(t, { "service.js": service });

      const [spoken, silent] = [
        await runProgram("service.js", folder, [await bookUrl(t, backend)]),
        await runProgram("service.js", folder, [await bookUrl(t, backend), "silent"]),
      ];

      assert.deepEqual(spoken.stderr.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID").split("\n"), [
        'daybook: job "charge" (ID) failed at try 1, and is tried again: RangeError: no [31m credit left',
        'daybook: job "charge" (ID) failed at try 2, for good: RangeError: no [31m credit left',
        "",
      ]);
      assert.deepEqual([spoken.code, silent.code, silent.stderr], [0, 0, ""]);
    });

    test("a log given to open hears each failure of every worker of that book, as a logger or as a function", async (t) => {
      const lines: LogLine[] = [];
      const said: [string, LogFields, string][] = [];
      const logger = {
        info: (fields: LogFields, message: string) => void said.push(["info", fields, message]),
        warn: (fields: LogFields, message: string) => void said.push(["warn", fields, message]),
        error: (fields: LogFields, message: string) => void said.push(["error", fields, message]),
      };
      const one = await openTest(t, backend, { use: [charge, fine], log: (line) => lines.push(line) });
      const other = await openTest(t, backend, { use: [charge, fine], log: logger });

      const made = await one.book.jobs.enqueue(charge);
      await one.book.jobs.enqueue(fine);
      await (await one.book.startWorker()).idle();
      await other.book.jobs.enqueue(charge, {}, { attempts: 1 });
      await (await other.book.startWorker()).idle();
      await assert.rejects(made.result());

      const error = { type: "RangeError", message: "no credit" };
      const [first, last] = await one.book.jobs.chain(made.id);
      const common = { event: "job.failed", name: "charge", tenant: "default", error };
      assert.deepEqual(lines, [
        {
          ...common,
          level: "warn",
          message: `job "charge" (${first?.id}) failed at try 1, and is tried again: RangeError: no credit`,
          job: first?.id,
          attempt: 1,
          run: first?.runId,
          retriedBy: last?.id,
        },
        {
          ...common,
          level: "error",
          message: `job "charge" (${last?.id}) failed at try 2, for good: RangeError: no credit`,
          job: last?.id,
          attempt: 2,
          run: last?.runId,
          retriedBy: null,
        },
      ]);
      assert.deepEqual(
        said.map(([level, { event, attempt }]) => [level, event, attempt]),
        [["error", "job.failed", 1]],
      );
    });

    test("a log that fails stops no work, and is told of once", async (t) => {
      const warnings: Error[] = [];
      const hear = (warning: Error): void => void warnings.push(warning);
      process.on("warning", hear);
      t.after(() => process.off("warning", hear));
      let calls = 0;
      const log: LogTo = async () => {
        if (++calls === 1) throw new Error("disk full");
        throw new Error("still full");
      };
      const { book } = await openTest(t, backend, { use: [charge, fine], log });

      const failing = await book.jobs.enqueue(charge);
      const worker = await book.startWorker();
      await assert.rejects(failing.result());
      const made = await book.jobs.enqueue(fine);
      await made.result();
      await worker.idle();
      if (warnings.length === 0) await once(process, "warning");

      assert.deepEqual([calls, (await book.jobs.get(made.id)).status], [2, "completed"]);
      assert.deepEqual(
        warnings.map(({ message }) => message),
        ["the given log failed (further failures are not shown): disk full"],
      );
    });
  });
}

test("a flood of failures becomes a number on stderr", async () => {
  const clock = manualClock();
  const written: string[] = [];
  const { say, rest } = sayOnStderr({ write: (text) => void written.push(text) }, clock);

  for (let n = 0; n < 1000; n++) say("error", { event: "job.failed" }, `failed ${n}`);
  await clock.advance(1000);
  say("info", { event: "work.ended" }, "works no more");
  say("error", { event: "job.failed" }, `failed\u009b31m again ${"x".repeat(600)}`);

  rest();
  for (let n = 0; n < 100; n++) say("error", { event: "job.failed" }, "failed at last");
  rest();
  rest();

  assert.equal(written.length, 22 + 19 + 1);
  assert.deepEqual(written.slice(19, 22), [
    "daybook: failed 19\n",
    "daybook: 980 more lines like these were not shown\n",
    `daybook: failed 31m again ${"x".repeat(483)}\n`,
  ]);
  assert.equal(written.at(-1), "daybook: 81 more lines like these were not shown\n");
});

test("a log that cannot be one is refused", async () => {
  const wrong = [{ info: 1, warn: 2, error: 3 }, { warn: () => undefined }, true, "stderr"];

  for (const log of wrong) {
    await assert.rejects(open(":memory:", { log: log as never }), {
      code: "invalid",
      message: /give a logger with info/,
    });
  }
});
