// A run that has to end takes its whole group of processes with it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { command, manualClock, type Book, type JobRecord, type OpenOptions } from "../../src/index.ts";
import { newRun, RunContext } from "../../src/jobs/run/run.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, shellScript, testFolder, type Backend } from "../support/open-test.ts";
import { isGone, listenToPrograms } from "../support/reporting-program.ts";
import { until, whileTimePasses } from "../support/session-row.ts";

const argv = [process.execPath, "{script}", "{socket}", "{role}"];
const program = command("program", { argv });

function openHere(t: TestContext, backend: Backend, options: OpenOptions = {}): ReturnType<typeof openTest> {
  return openTest(t, backend, { use: [program], files: join(testFolder(t), "files"), ...options });
}

/** The row says its pid as soon as it is known, while the program still runs. */
async function untilNoted(book: Book, pid: number): Promise<void> {
  await until(`pid ${pid} is noted`, async () => {
    const [row] = await book.read(
      (tx) => tx.sql`select pid from daybook_run_command where pid = ${pid} and ended_at is null`,
    );
    return row;
  });
}

function shown({ status, run }: JobRecord): unknown[] {
  const { status: how, error, command: of } = run ?? {};
  return [status, how, error?.type, of?.exitCode, of?.signal, of?.log?.tail];
}

for (const backend of backends) {
  describe(backend, () => {
    test("cancel ends the program and what it started", async (t) => {
      const reports = await listenToPrograms(t);
      // Time stands still, so that nobody is killed because the machine is slow to end them.
      const { book } = await openHere(t, backend, { clock: manualClock() });
      const { id } = await book.jobs.enqueue(program, reports.params("parent"));
      const worker = await book.startWorker();
      const [parent, child] = [await reports.hear("parent"), await reports.hear("child")];
      await untilNoted(book, parent.pid);
      assert.deepEqual([isGone(parent.pid), isGone(child.pid)], [false, false]);

      await book.jobs.cancel(id);
      await worker.idle();

      await Promise.all([parent.gone, child.gone]);
      const job = await book.jobs.get(id);
      const [status, how, type, , signal] = shown(job);
      assert.deepEqual([status, how, type, signal], ["cancelled", "cancelled", "CancelledError", "SIGTERM"]);
      assert.match(job.run?.error?.message ?? "", /^the job was cancelled; the program ".*" was ended by SIGTERM$/);
      assert.deepEqual([job.run?.command?.note, job.run?.command?.pid], ["the job was cancelled", parent.pid]);
      assert.match(job.run?.command?.log?.tail ?? "", /parent began\n/);
    });

    test("a timeout ends them as well, and the run is tried again", async (t) => {
      const reports = await listenToPrograms(t);
      const clock = manualClock();
      const { book } = await openHere(t, backend, { clock });
      const params = reports.params("parent");
      const { id } = await book.jobs.enqueue(program, params, { timeout: "1m", attempts: 2, backoff: ["1h"] });
      const worker = await book.startWorker();
      const [parent, child] = [await reports.hear("parent"), await reports.hear("child")];

      await clock.advance(60_000);
      await Promise.all([parent.gone, child.gone]);
      // A session whose last beat is not yet written after that leap looks again a moment later.
      await whileTimePasses(clock, worker.idle());

      const job = await book.jobs.get(id);
      const [status, how, type, , signal] = shown(job);
      assert.deepEqual([status, how, type, signal], ["failed", "timed_out", "TimeoutError", "SIGTERM"]);
      assert.equal((await book.jobs.get(job.retriedBy ?? "")).attempt, 2);
    });

    test("who does not hear SIGTERM is killed after its time, within the run's own grace", async (t) => {
      const reports = await listenToPrograms(t);
      const clock = manualClock();
      const { book } = await openHere(t, backend, { clock });
      const { id } = await book.jobs.enqueue(program, reports.params("deaf-parent"));
      const worker = await book.startWorker();
      const [parent, deaf] = [await reports.hear("deaf-parent"), await reports.hear("deaf")];
      await deaf.said("ready");

      await book.jobs.cancel(id);
      await deaf.said("term");
      await parent.gone;
      await clock.advance(2999);
      assert.equal(isGone(deaf.pid), false);
      await clock.advance(1);
      await deaf.gone;
      await worker.idle();

      const job = await book.jobs.get(id);
      assert.deepEqual([job.status, job.run?.command?.signal], ["cancelled", "SIGTERM"]);
      assert.equal(job.run?.durationMs, 3000);
    });

    test("closing the book ends them, and the job is made again at no cost", async (t) => {
      const reports = await listenToPrograms(t);
      const clock = manualClock();
      const { book, url } = await openHere(t, backend, { clock });
      const { id } = await book.jobs.enqueue(program, reports.params("parent"));
      await book.startWorker({ grace: 0 });
      const [parent, child] = [await reports.hear("parent"), await reports.hear("child")];

      await whileTimePasses(clock, book.close());

      await Promise.all([parent.gone, child.gone]);
      const { book: later } = await openTest(t, backend, { url, worker: false });
      const [first, second] = await later.jobs.chain(id);
      assert.deepEqual(
        [first?.status, first?.run?.error?.type, first?.run?.command?.signal],
        ["cancelled", "ShutdownError", "SIGTERM"],
      );
      assert.deepEqual([second?.status, second?.attempt, second?.losses], ["queued", 1, 0]);
      const open = await later.read((tx) => tx.sql`select run_id from daybook_run_command where ended_at is null`);
      assert.deepEqual(open, []);
    });

    test("what a program leaves behind when it ends is ended with it, and its run succeeds", async (t) => {
      const reports = await listenToPrograms(t);
      const leaving = command("leaving", {
        argv: [
          shellScript(t, '"$1" "$2" "$3" deaf & read -r word < "$4"; echo "$word"'),
          ...argv.slice(0, 3),
          "{gate}",
        ],
      });
      const gate = join(testFolder(t), "gate");
      execFileSync("mkfifo", [gate]);
      const { book } = await openHere(t, backend, { use: [leaving], clock: manualClock() });
      const worker = await book.startWorker();
      const { id } = await book.jobs.enqueue(leaving, { ...reports.params("deaf"), gate });
      const deaf = await reports.hear("deaf");
      await deaf.said("ready");

      await appendFile(gate, "go\n");
      await worker.idle();

      await deaf.gone;
      const { status, run } = await book.jobs.get(id);
      assert.deepEqual([status, run?.command?.exitCode], ["completed", 0]);
      assert.match(run?.command?.log?.tail ?? "", /^go$/m);
    });

    test("who left the group and holds the output open does not hold up the run", async (t) => {
      const reports = await listenToPrograms(t);
      const parting = command("parting", {
        argv: [shellScript(t, 'setsid "$1" "$2" "$3" alone & read -r word < "$4"'), ...argv.slice(0, 3), "{gate}"],
      });
      const gate = join(testFolder(t), "gate");
      execFileSync("mkfifo", [gate]);
      const { book } = await openHere(t, backend, { use: [parting] });
      const worker = await book.startWorker();
      const { id } = await book.jobs.enqueue(parting, { ...reports.params("alone"), gate });
      const alone = await reports.hear("alone");

      await appendFile(gate, "go\n");
      await worker.idle();

      const { status, run } = await book.jobs.get(id);
      assert.deepEqual([status, run?.command?.exitCode, isGone(alone.pid)], ["completed", 0, false]);
      assert.match(run?.command?.note ?? "", /^its output could not be read to the end: /);
    });

    test("a program is not started for a run that is no longer this process's", async (t) => {
      const reports = await listenToPrograms(t);
      const at = await openEngine(t, backend, { use: [program] });
      await at.jobs.enqueue(program, reports.params("alone"));
      const [claimed] = await at.claim(1);
      const job = claimed ?? assert.fail("nothing was claimed");
      const state = newRun(job, 0);
      const unused = (): never => assert.fail("not used");
      const parts = { now: () => 0, changed: () => undefined, finish: unused, step: unused };

      await at.end(job, { status: "lost" });
      const ran = program.builtIn?.run(at.engine, JSON.parse(job.params), new RunContext(state, parts));

      await assert.rejects(
        ran ?? assert.fail("no command"),
        /no longer this process's, so its program was not started/,
      );
      assert.deepEqual(await at.rows("select run_id from daybook_run_command"), []);
    });
  });
}
