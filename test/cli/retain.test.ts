import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { command, job } from "../../src/index.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { answer } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";

const quick = job("quick", { run: () => undefined });
const mail = job("mail", { queue: "mail", run: () => undefined });
const say = command("say", { argv: [process.execPath, "-e", "console.log('said')"], attempts: 1 });

for (const backend of cliBackends) {
  test(`${backend}: finished jobs leave by what a shell asks for, and a dry run removes nothing`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [quick, mail] });
    const acme = book.tenant("acme");
    await book.jobs.enqueueMany(quick, [{}, {}, {}]);
    await book.jobs.enqueue(mail, {});
    await acme.jobs.enqueue(quick, {});
    await (await book.startWorker()).idle();
    const cancelled = await book.jobs.enqueue(quick, {}, { in: "1h" });
    await book.jobs.cancel(cancelled.id);
    const left = async (): Promise<number> => (await book.jobs.list()).items.length;

    const dry = await answer(["retain", "--keep", "0"], url);
    const young = await answer(["retain", "--jobs", "30d", "--apply"], url);
    assert.deepEqual([dry["jobs"], dry["dryRun"], young["jobs"], await left()], [5, true, 0, 5]);
    const words = await runCli([
      "retain",
      "--keep",
      "1",
      "--status",
      "completed",
      "--name",
      "quick",
      "--apply",
      "--book",
      url,
    ]);
    assert.match(
      words.stdout,
      /^2 jobs, 2 runs removed\nby: jobs \{"keep":1,"name":"quick","status":\["completed"\]\}\n\nremoved so far\n/,
    );
    const queue = await answer(["retain", "--jobs", "0s", "--queue", "mail", "--apply"], url);
    const ends = await answer(["retain", "--jobs", "0s", "--status", "failed, cancelled", "--apply"], url);
    assert.deepEqual([queue["jobs"], ends["jobs"], await left()], [1, 1, 1]);
    assert.equal((await acme.jobs.list()).items.length, 1);
  });

  test(`${backend}: the log files of programs go with their jobs`, async (t) => {
    const files = join(testFolder(t), "files");
    const { book, url } = await openTest(t, backend, { use: [say], files });
    const [first, second] = [await book.jobs.enqueue(say, {}), await book.jobs.enqueue(say, {})];
    await (await book.startWorker()).idle();
    const paths = await Promise.all(
      [first, second].map(async ({ id }) => (await book.jobs.get(id)).run?.command?.log?.path ?? ""),
    );

    const dry = await runCli(["retain", "--keep", "1", "--files", files, "--book", url]);
    const one = await answer(["retain", "--keep", "1", "--files", files, "--apply"], url);
    const other = await runCli(["retain", "--keep", "0", "--apply", "--book", url], { cwd: testFolder(t) });

    assert.match(
      dry.stdout,
      /would be removed; remove them with --apply\n1 log file goes with them\nby: jobs \{"keep":1\}\n$/,
    );
    assert.deepEqual([(one["files"] as string[]).length, one["filesDeleted"]], [1, 1]);
    assert.match(other.stdout, /removed\n0 log files deleted, 1 not there or elsewhere\n/);
    assert.deepEqual([readdirSync(files).length, paths.filter((path) => existsSync(path)).length], [1, 1]);
  });
}

test("daybook run tells the book the retention of the config, says what that changed, and daybook retain goes by it", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { use: [quick], retention: { calls: "9d" } });
  await book.jobs.enqueue(quick, {});
  await (await book.startWorker()).idle();
  await book.close();
  const cwd = testFolder(t);
  const config = `export default { calls: {}, retention: { jobs: { keep: 0 }, calls: false } };`;
  writeFileSync(join(cwd, "daybook.config.ts"), config);

  const running = startCli(["run", "--book", url], { cwd });
  const policyNow = async () => (await answer(["retain"], url))["policy"] as { jobs: unknown; calls: unknown };
  while ((await policyNow()).jobs === "30d") continue;
  const { jobs, calls } = await policyNow();
  running.child.kill("SIGTERM");
  const { stdout } = await running.ended;
  const shown = await runCli(["retain", "--book", url]);
  const gone = await answer(["retain", "--parts", "jobs", "--apply"], url);

  assert.deepEqual([jobs, calls], [{ keep: 0 }, false]);
  assert.match(stdout, /^\S+Z retention was another in this book, .* \(calls 9d, now for ever\)$/m);
  assert.match(
    shown.stdout,
    /\nby: decisions 90d, events 30d, jobs \{"keep":0\}, logs 3d, rollups 400d, runs 7d, sizeMax 1073741824\n/,
  );
  assert.equal(gone["jobs"], 1);
});
