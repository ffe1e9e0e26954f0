import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { command, job, open } from "../../src/index.ts";
import { cleanup, openTest, testFolder, testUrl } from "../support/open-test.ts";
import { startJobProcess } from "../support/job-process.ts";
import { answer, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";
import { tamper } from "../support/tamper.ts";

const work = job("work", { run: () => undefined });

test("what destroys only reads the book until it is told to apply", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { use: [work] });
  await book.jobs.enqueue(work);
  await book.events.publish("said", {});
  await book.close();
  const before = readFileSync(url);

  for (const words of ["recover", "mend", "retain", "retain --keep 0", "retain --events 0s"]) {
    assert.equal((await answer(words.split(" "), url))["dryRun"], true, words);
    assert.ok(readFileSync(url).equals(before), words);
  }
});

for (const backend of cliBackends) {
  test(`${backend}: recover says what a dead process left, and ends it with --apply`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [work] });
    const { id } = await book.jobs.enqueue(work);
    // A session that somebody has declared dead, and that nobody has recovered.
    const { id: lost } = await book.jobs.enqueue(work);
    await tamper(book, async (tx) => {
      await tx.sql`insert into daybook_session (id, started_at, last_heartbeat_at, stopped_at, status, host, pid, metadata)
        values ('gone', 1, 1, 1, 'unknown', 'elsewhere', 1, '{}')`;
      await tx.sql`update daybook_line set status = 'running', run_id = 'r-1', started_at = 1,
          session_seq = (select seq from daybook_session where id = 'gone')
        where seq = (select seq from daybook_job where id = ${lost})`;
    });

    const dry = await runCli(["recover", "--book", url]);
    const before = await book.jobs.get(lost);
    const applied = await answer(["recover", "--apply"], url);
    const again = await runCli(["recover", "--apply", "--book", url]);

    assert.equal(dry.stdout, "1 run and 0 reservations of sessions that have ended; end them with --apply\n");
    assert.equal(before.status, "running");
    assert.deepEqual(applied, { dryRun: false, lost: 1, reservations: 0, recovered: 1 });
    assert.equal(again.stdout, "0 runs and 0 reservations of sessions that have ended: 0 ended or released\n");
    const { status, retriedBy } = await book.jobs.get(lost);
    assert.deepEqual([status, retriedBy === null, (await book.jobs.get(id)).status], ["failed", false, "queued"]);
  });

  test(`${backend}: recover finds a process that was killed a moment ago, and counts what it ran`, async (t) => {
    const url = await testUrl(t, backend);
    const book = await open(url, { worker: false, attach: false });
    cleanup(t, () => book.close());
    const worker = startJobProcess(t, { url, folder: testFolder(t), work: { concurrency: 1 }, untilSignal: true });
    await worker.hear("open");
    const { id } = await book.jobs.enqueue("held", {});
    await worker.hear("began");
    worker.signal("SIGKILL");
    await worker.ended;

    const dry = await answer(["recover"], url);
    const applied = await answer(["recover", "--apply"], url);

    assert.deepEqual(dry, { dryRun: true, lost: 1, reservations: 0, recovered: 0 });
    assert.deepEqual(applied, { dryRun: false, lost: 1, reservations: 0, recovered: 1 });
    assert.equal((await book.jobs.get(id)).status, "failed");
  });

  test(`${backend}: a group is made and added to from a shell, and what is wrong with it is said`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [work] });
    const jobs = JSON.stringify([{ job: "work" }, { job: "work", params: { n: 2 }, queue: "slow", attempts: 1 }]);
    const create = ["groups", "create", "--mode", "sequential"];

    const made = await answer([...create, "--on-failure", "skip", "--name", "night", "--jobs", "-"], url, {
      input: jobs,
    });
    const id = String(made["id"]);
    const words = await runCli(["groups", "add", id, "work", "--in", "1h", "--book", url]);
    const wrong = [
      await refusal([...create, "--jobs", "{}"], url),
      await refusal([...create, "--jobs", '[{"name": "work"}]'], url),
      await refusal([...create, "--jobs", "[]"], url),
      await refusal([...create, "--jobs", '[{"job": "work", "prio": 1}]'], url),
      await refusal(["groups", "create", "--jobs", jobs], url),
    ];
    await book.groups.cancel(id);
    const late = await refusal(["groups", "add", id, "work"], url);
    const theirs = await refusal(["groups", "add", id, "work", "--tenant", "acme"], url);

    const { name, mode, onFailure, progress } = await book.groups.get(id);
    assert.deepEqual([name, mode, onFailure, progress.total], ["night", "sequential", "skip", 3]);
    assert.match(
      words.stdout,
      new RegExp(`^\\S+ is added to ${id}: waiting\njob "work" was never hosted by this book\\b.*\n$`),
    );
    const messages = [
      /jobs is an object: give a list/,
      /give \{ "job"/,
      /at least one job/,
      /unknown option "prio"/,
      /--mode/,
    ];
    for (const [index, [exit, code, message]] of wrong.entries()) {
      assert.deepEqual([exit, code], [2, "invalid"]);
      assert.match(message, messages[index] as RegExp);
    }
    assert.deepEqual(
      [late.slice(0, 2), theirs.slice(0, 2)],
      [
        [5, "conflict"],
        [4, "not_found"],
      ],
    );
    assert.equal((await book.groups.list()).items.length, 1);
  });

  test(`${backend}: a job that ran a program is shown with its exit code, its log file and what it made`, async (t) => {
    const cwd = testFolder(t);
    const script = "console.log('said'); require('fs').writeFileSync('made.txt', 'abc'); process.exit(3)";
    const say = command("say", { argv: [process.execPath, "-e", script], cwd, artifacts: ["*.txt"], attempts: 1 });
    const { book, url } = await openTest(t, backend, { use: [say], files: testFolder(t) });
    const { id } = await book.jobs.enqueue(say);
    await (await book.startWorker()).idle();

    const { stdout } = await runCli(["jobs", "show", id, "--book", url]);
    const { run } = await book.jobs.get(id);

    assert.match(stdout, /\nprogram\nargv\t\[.*\nprocess\t\d+ on \S+\nexit code\t3\n/);
    assert.ok(stdout.includes(`log file\t${run?.command?.log?.path} (5 B)`), stdout);
    assert.match(stdout, /the end of its output\nsaid\n/);
    assert.match(stdout, /artifacts\npath\tsize\tsha256\nmade\.txt\t3 B\tba7816bf/);
  });
}
