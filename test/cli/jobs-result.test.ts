import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { job } from "../../src/index.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { answer, refusal } from "./answer-of.ts";
import { cliBackends, parsed, runCli, startCli } from "./run-cli.ts";
import { until } from "./until.ts";

const sum = job("sum", { run: () => ({ cents: 4000, note: "\u009B31mred" }) });
const silent = job("silent", { run: () => undefined });
const failing = job("fail", {
  attempts: 1,
  run() {
    throw new Error("no paper");
  },
});

for (const backend of cliBackends) {
  test(`${backend}: the result of a job is printed, or why there is none`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [sum, silent, failing] });
    const [summed, nothing, failed] = [
      await book.jobs.enqueue(sum, {}),
      await book.jobs.enqueue(silent, {}),
      await book.jobs.enqueue(failing, {}),
    ];
    const open = await runCli(["jobs", "result", summed.id, "--book", url, "--json"]);
    const openWords = await runCli(["jobs", "result", summed.id, "--book", url]);
    const late = await refusal(["jobs", "result", summed.id, "--wait", "--timeout", "1ms"], url);
    await (await book.startWorker()).idle();

    const json = await answer(["jobs", "result", summed.id], url);
    const words = await runCli(["jobs", "result", summed.id, "--book", url]);
    const none = await runCli(["jobs", "result", nothing.id, "--wait", "--book", url]);
    const refused = await refusal(["jobs", "result", failed.id], url);
    const theirs = await refusal(["jobs", "result", summed.id, "--tenant", "acme"], url);

    const result = { cents: 4000, note: "\u009B31mred" };
    const { id } = summed;
    assert.deepEqual([open.code, parsed(open.stdout)], [21, { id, lastId: id, status: "queued", result: null }]);
    assert.match(openWords.stdout, /is queued, so there is no result yet: wait for it with --wait\n$/);
    assert.deepEqual(late.slice(0, 2), [10, "timeout"]);
    assert.deepEqual(json, { id, lastId: id, status: "completed", result });
    assert.deepEqual([words.code, parsed(words.stdout)], [0, result]);
    assert.ok(!words.stdout.includes("\u009B"), "the terminal was commanded");
    assert.deepEqual([none.code, none.stdout], [0, "null\n"]);
    assert.deepEqual(refused.slice(0, 2), [5, "conflict"]);
    assert.match(refused[2], /has failed, so it has no result: Error: no paper/);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
  });

  test(`${backend}: a shell waits for a result that another process makes`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [sum] });
    const { id } = await book.jobs.enqueue(sum, {});
    const waiting = startCli(["jobs", "result", id, "--wait", "--timeout", "1m", "--book", url, "--json"]);
    // The mark on the job is what the shell leaves while it waits.
    await until(async () => {
      const [row] = await book.read(
        (tx) => tx.sql<{ awaited: number }>`select awaited from daybook_job_now where id = ${id}`,
      );
      return row?.awaited === 1;
    });

    await book.startWorker();
    const { code, stdout } = await waiting.ended;

    assert.deepEqual([code, parsed(stdout)["status"]], [0, "completed"]);
  });

  test(`${backend}: a job is run now, in the shell's own process, before those that stand in line`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const { id: queued } = await book.jobs.enqueue("double", { n: 1 });
    const cwd = moduleFolder(t);
    const now = (...args: string[]): string[] => ["jobs", "run-now", ...args, "--from", "jobs.ts"];

    const doubled = await startCli([...now("double", "--params", '{"n": 21}'), "--book", url, "--json"], {
      cwd: moduleFolder(t, "setInterval(() => undefined, 60_000);"),
    }).ended;
    const words = await runCli([...now("double", "--params", '{"n": 2}', "--book", url)], { cwd });
    const failed = await refusal(now("fail"), url, { cwd });
    const late = await refusal(now("hang", "--timeout", "1ms"), url, { cwd });
    const unknown = await refusal(now("duble"), url, { cwd });
    const theirs = await answer(now("double", "--params", '{"n": 3}', "--tenant", "acme"), url, { cwd });

    assert.deepEqual([doubled.code, parsed(doubled.stdout)], [0, { name: "double", result: { doubled: 42 } }]);
    assert.deepEqual([words.code, parsed(words.stdout)], [0, { doubled: 4 }]);
    assert.deepEqual(failed.slice(0, 2), [5, "conflict"]);
    assert.match(failed[2], /has failed, so it has no result: Error: no paper/);
    assert.deepEqual(late.slice(0, 2), [10, "timeout"]);
    assert.deepEqual(unknown.slice(0, 2), [2, "invalid"]);
    assert.match(unknown[2], /jobs\.ts does not define the job "duble": did you mean "double"\?/);
    assert.deepEqual(theirs["result"], { doubled: 6 });
    assert.equal((await book.jobs.get(queued)).status, "queued");
    const { items } = await book.jobs.list({ name: "fail" });
    assert.deepEqual(
      items.map(({ status, origin, attempts }) => [status, origin, attempts]),
      [["failed", "direct", 1]],
    );
    assert.deepEqual(await book.reservations.list(), []);
  });

  test(`${backend}: a queue that is held is waited for, or refused`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const cwd = moduleFolder(t);
    const { id } = await book.reservations.reserve("default", { note: "for a test" });
    const now = ["jobs", "run-now", "double", "--params", '{"n": 1}', "--from", "jobs.ts"];

    const rejected = await refusal([...now, "--reject"], url, { cwd });
    const elsewhere = await answer([...now, "--reject", "--queue", "side"], url, { cwd });
    const listed = await answer(["reservations", "list"], url);
    const waiting = startCli([...now, "--book", url, "--json"], { cwd });
    await until(
      async () => (await book.sessions.list()).items.filter((each) => each.status === "running").length === 2,
    );
    await book.reservations.release(id);
    const { code } = await waiting.ended;
    const held = await answer(["reservations", "list"], url);
    const all = await answer(["reservations", "list", "--all"], url);
    const words = await runCli(["reservations", "list", "--all", "--book", url]);
    const theirs = await answer(["reservations", "list", "--all", "--tenant", "acme"], url);

    assert.deepEqual(rejected.slice(0, 2), [5, "conflict"]);
    assert.match(rejected[2], /queue "default" is reserved by session/);
    assert.deepEqual(elsewhere["result"], { doubled: 2 });
    const [mine] = listed["items"] as Record<string, unknown>[];
    assert.deepEqual(
      [mine?.["id"], mine?.["queue"], mine?.["status"], mine?.["sessionId"], mine?.["note"], mine?.["endedAt"]],
      [id, "default", "active", book.sessionId, "for a test", null],
    );
    assert.match(String(mine?.["expiresAt"]), /Z$/);
    assert.equal(code, 0);
    assert.deepEqual(held, { items: [] });
    assert.deepEqual(
      (all["items"] as Record<string, unknown>[]).map((each) => [each["queue"], each["status"]]),
      [
        ["default", "released"],
        ["side", "released"],
        ["default", "released"],
      ],
    );
    assert.match(words.stdout, /^id\tqueue\tstatus\tsession\treserved\texpires\tnote\n.*\tdirect: double\n/);
    assert.deepEqual(theirs, { items: [] });
  });

  test(`${backend}: a signal ends direct work, and the queue goes on`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const { child, ended } = startCli(["jobs", "run-now", "hang", "--from", "jobs.ts", "--book", url], {
      cwd: moduleFolder(t),
    });
    await until(async () => (await book.jobs.list({ status: "running" })).items.length === 1);

    child.kill("SIGINT");
    const { code, stdout } = await ended;

    const [made] = (await book.jobs.list()).items;
    assert.deepEqual([code, stdout], [130, ""]);
    assert.deepEqual([made?.status, made?.retriedBy], ["cancelled", null]);
    assert.deepEqual(await book.reservations.list(), []);
    assert.deepEqual(await book.doctor(), []);
  });
}

/** A folder with a file of definitions, and of what else the file does. */
function moduleFolder(t: TestContext, more = ""): string {
  const folder = testFolder(t);
  const index = JSON.stringify(join(import.meta.dirname, "../../src/index.ts"));
  writeFileSync(
    join(folder, "jobs.ts"),
    `import { job } from ${index};
    ${more}
    export const double = job<{ n: number }>("double", { run: ({ n }) => ({ doubled: 2 * n }) });
    export const fail = job("fail", { run() { throw new Error("no paper"); } });
    export const hang = job("hang", {
      run: (_params, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });`,
  );
  return folder;
}
