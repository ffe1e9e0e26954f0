import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { command, manualClock, type Book, type CommandResult, type JobRecord } from "../../src/index.ts";
import { systemClock, type Clock } from "../../src/core/clock.ts";
import type { AnyJob } from "../../src/jobs/define.ts";
import { openLog } from "../../src/jobs/command/log-file.ts";
import { backends, openTest, shellScript, testFolder, type Backend } from "../support/open-test.ts";

const node = process.execPath;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

type Ran = { book: Book; jobs: JobRecord[]; folder: string };

/** Runs one job of each kind, on its own params, and shows what became of them. Time stands still: the output of a program
 *  that has ended is read to its end, however slow the machine is. */
async function runAll(t: TestContext, backend: Backend, ...all: [AnyJob, unknown][]): Promise<Ran> {
  const folder = testFolder(t);
  const [use, files] = [all.map(([each]) => each), join(folder, "files")];
  const { book } = await openTest(t, backend, { use, files, clock: manualClock(), views: true });
  const made = [];
  for (const [each, params] of all) made.push(await book.jobs.enqueue(each, params));
  const worker = await book.startWorker();
  await worker.idle();
  return { book, folder, jobs: await Promise.all(made.map(({ id }) => book.jobs.get(id))) };
}

async function runOne(
  t: TestContext,
  backend: Backend,
  kind: AnyJob,
  params: unknown = {},
): Promise<Ran & { job: JobRecord }> {
  const ran = await runAll(t, backend, [kind, params]);
  return { ...ran, job: ran.jobs[0] as JobRecord };
}

function resultOf(job: JobRecord): CommandResult {
  assert.equal(job.status, "completed", job.run?.error?.message ?? "");
  return job.run?.result as CommandResult;
}

for (const backend of backends) {
  describe(backend, () => {
    test("what a program leaves to be read is waited for though the loop was held up when it ended", async (t) => {
      const heldUp = Promise.withResolvers<void>();
      let stalls = 1;
      const held: Clock = {
        ...systemClock,
        sleep(ms, signal) {
          if (signal === undefined) return systemClock.sleep(ms);
          if (stalls-- <= 0) return manualClock().sleep(ms, signal); // until the output has ended
          heldUp.resolve();
          return Promise.resolve();
        },
      };
      const folder = testFolder(t);
      const [ready, gate] = [join(folder, "ready"), join(folder, "gate")];
      execFileSync("mkfifo", [ready, gate]);
      const late = `echo up > "$0"; read -r word < "$1"; echo "$word"`;
      const program = `setsid /bin/sh -c '${late}' "$0" "$1" & read -r word < "$0"`;
      const leaving = command("leaving", { argv: ["/bin/sh", "-c", program, ready, gate] });
      const { book } = await openTest(t, backend, { use: [leaving], files: join(folder, "files"), waitClock: held });
      const { id } = await book.jobs.enqueue(leaving, {});
      const worker = await book.startWorker();

      await heldUp.promise;
      await appendFile(gate, "late\n");
      await worker.idle();

      assert.equal(resultOf(await book.jobs.get(id)).log.tail, "late\n");
    });

    test("a program gets its arguments as they are, and its run has its exit code, its log and its end", async (t) => {
      const show = command("show", {
        params: z.object({ text: z.string(), count: z.number(), loud: z.boolean() }),
        argv: [
          node,
          "-e",
          "console.log(JSON.stringify(process.argv.slice(1)))",
          "--",
          "{text}",
          "n={count}",
          "{{{loud}}}",
        ],
      });
      const text = `a b"c' $(echo no) ; * \n ü`;

      const { job, book, folder } = await runOne(t, backend, show, { text, count: 1.5, loud: true });

      const said = `${JSON.stringify([text, "n=1.5", "{true}"])}\n`;
      const path = join(folder, "files", `${job.runId}.log`);
      const log = { path, bytes: Buffer.byteLength(said), truncated: false, tail: said };
      assert.deepEqual(resultOf(job), { exitCode: 0, signal: null, log, artifacts: [], artifactsLeftOut: 0 });
      assert.equal(readFileSync(path, "utf8"), said);
      assert.equal(statSync(path).mode & 0o777, 0o600);
      const { pid, host, argv, ...rest } = job.run?.command ?? assert.fail("no command");
      assert.deepEqual([typeof pid, host.length > 0, argv[4]], ["number", true, text]);
      assert.deepEqual(rest, { exitCode: 0, signal: null, log, artifacts: [], artifactsLeftOut: 0, note: null });
      assert.deepEqual(await book.doctor(), []);
    });

    test("what it says on stdout and stderr is one log, in the order in which it was said", async (t) => {
      const lines = Array.from({ length: 200 }, (_, n) => n);
      const mixed = command("mixed", {
        argv: ["/bin/sh", "-c", `for n in ${lines.join(" ")}; do echo out $n; echo err $n >&2; done`],
      });

      const { job } = await runOne(t, backend, mixed);

      const expected = lines.map((n) => `out ${n}\nerr ${n}\n`).join("");
      assert.equal(readFileSync(resultOf(job).log.path, "utf8"), expected);
    });

    test("an exit code other than 0 and a signal fail the run, and what is known is kept", async (t) => {
      const code = command("code", {
        attempts: 2,
        backoff: ["1h"] as const,
        argv: ["/bin/sh", "-c", "echo made > made.txt; echo first; echo it went wrong >&2; exit 3"],
        cwd: testFolder(t),
        artifacts: ["made.txt"],
      });
      const crash = command("crash", { attempts: 1, argv: ["/bin/sh", "-c", "kill -SEGV $$"] });

      const { jobs, book } = await runAll(t, backend, [code, {}], [crash, {}]);

      const [failed, crashed] = jobs;
      assert.deepEqual(
        [failed?.status, failed?.run?.error?.type, failed?.run?.error?.message],
        ["failed", "CommandError", 'the program "/bin/sh" exited with code 3. It said last:\nfirst\nit went wrong'],
      );
      const kept = failed?.run?.command;
      assert.deepEqual([kept?.exitCode, kept?.signal, kept?.log?.tail], [3, null, "first\nit went wrong\n"]);
      assert.deepEqual(kept?.artifacts, [{ path: "made.txt", bytes: 5, sha256: sha256("made\n") }]);
      assert.equal((await book.jobs.get(failed?.retriedBy ?? "")).attempt, 2);
      assert.deepEqual(
        [crashed?.status, crashed?.run?.command?.exitCode, crashed?.run?.command?.signal, crashed?.run?.error?.message],
        ["failed", null, "SIGSEGV", 'the program "/bin/sh" was ended by SIGSEGV and said nothing'],
      );
      const seen = await book.read(
        (tx) =>
          tx.sql<{
            exit_code: number;
          }>`select exit_code, artifacts, log_path from job_runs where job_id = ${failed?.id ?? ""}`,
      );
      assert.deepEqual(
        seen.map((row) => ({ ...row })),
        [{ exit_code: 3, artifacts: JSON.stringify(kept?.artifacts), log_path: kept?.log?.path }],
      );
    });

    test("of a long output the file keeps the beginning and the end, and all of it is counted", async (t) => {
      const megabytes = 50;
      const long = command("long", {
        argv: [
          ...[node, "-e"],
          `const {{ writeSync }} = require("fs"); const line = "x".repeat(1023) + "\\n";
           for (let n = 0; n < ${megabytes} * 1024; n++) writeSync(1, line); writeSync(2, "the end\\n")`,
        ],
        logBytesMax: 100_000,
      });

      const { job } = await runOne(t, backend, long);

      const { log } = resultOf(job);
      assert.deepEqual([log.bytes, log.truncated], [megabytes * 1024 * 1024 + 8, true]);
      const kept = readFileSync(log.path, "utf8");
      assert.ok(kept.length < 100_000 + 5000, `${kept.length} bytes are kept`);
      assert.match(kept, new RegExp(`^x{1023}\\n[^]*\\n… ${log.bytes - 100_000} bytes are not kept; the last 4096 `));
      assert.ok(kept.endsWith("\nthe end\n") && log.tail.endsWith("\nthe end\n") && log.tail.length <= 4096);
    });

    test("output that is no text is kept as it is, and its tail is text that can be stored", async (t) => {
      const raw = command("raw", {
        argv: [node, "-e", "process.stdout.write(Buffer.from([0, 255, 195, 188, 0xd8, 10]))"],
      });

      const { job } = await runOne(t, backend, raw);

      const { log } = resultOf(job);
      assert.deepEqual([...readFileSync(log.path)], [0, 255, 195, 188, 0xd8, 10]);
      assert.equal(log.tail, "\uFFFD\uFFFDü\uFFFD\n");
    });

    test("artifacts are the files that changed, sorted, with size and hash, and never outside of the folder", async (t) => {
      const [folder, outside] = [testFolder(t), testFolder(t)];
      mkdirSync(join(folder, "out/deep"), { recursive: true });
      writeFileSync(join(folder, "out/old.txt"), "before");
      writeFileSync(join(outside, "secret.txt"), "secret");
      symlinkSync(join(outside, "secret.txt"), join(folder, "out/link.txt"));
      symlinkSync(outside, join(folder, "out/away"));
      const make = command("make", {
        cwd: folder,
        argv: [
          ...["/bin/sh", "-c"],
          "printf b > out/b.txt; printf a > out/deep/a.txt; : > out/empty.txt; mkdir out/folder.txt; mkfifo out/pipe.txt; " +
            "printf c > c.log; touch -d 2001-01-01 out/b.txt; echo changed > $0/secret.txt; ln -s b.txt out/same.txt",
          outside,
        ],
        artifacts: ["out/**/*.txt", "out/away/*", "out/b.txt", "*.none"],
      });

      const { job } = await runOne(t, backend, make);

      assert.deepEqual(resultOf(job).artifacts, [
        { path: "out/b.txt", bytes: 1, sha256: sha256("b") },
        { path: "out/deep/a.txt", bytes: 1, sha256: sha256("a") },
        { path: "out/empty.txt", bytes: 0, sha256: sha256("") },
        { path: "out/same.txt", bytes: 1, sha256: sha256("b") },
      ]);
      assert.deepEqual(job.run?.command?.artifacts, resultOf(job).artifacts);
    });

    test("of very many artifacts the first are listed and the others counted", async (t) => {
      const cwd = testFolder(t);
      const many = command("many", {
        cwd,
        artifacts: ["*.txt"],
        argv: [
          node,
          "-e",
          'for (let n = 0; n < 1010; n++) require("fs").writeFileSync(String(n).padStart(4, "0") + ".txt", "")',
        ],
      });

      const { job } = await runOne(t, backend, many);

      const { artifacts, artifactsLeftOut } = resultOf(job);
      assert.deepEqual([artifacts.length, artifacts.at(-1)?.path, artifactsLeftOut], [1000, "0999.txt", 10]);
      assert.equal(job.run?.command?.artifactsLeftOut, 10);
    });

    test("a program has the environment that its definition names, its folder and no stdin", async (t) => {
      const cwd = testFolder(t);
      process.env["DAYBOOK_TEST_SECRET"] = "secret";
      const look = command("look", {
        cwd,
        env: ["PATH", "DAYBOOK_TEST_MISSING", { LANG: "C", GREETING: "hello world" }],
        argv: [
          "node",
          "-e",
          'console.log(JSON.stringify([process.env, process.cwd(), require("fs").readFileSync(0, "utf8")]))',
        ],
      });

      const { job } = await runOne(t, backend, look);

      const env = { PATH: process.env["PATH"], LANG: "C", GREETING: "hello world", DAYBOOK_RUN_ID: job.runId };
      assert.deepEqual(JSON.parse(resultOf(job).log.tail), [env, realpathSync(cwd), ""]);
    });

    test("a program that cannot be started says why, and is tried no oftener than any other", async (t) => {
      const cwd = testFolder(t);
      writeFileSync(join(cwd, "plain.txt"), "not a program");
      chmodSync(join(cwd, "plain.txt"), 0o644);
      const missing = command("missing", { argv: ["no-such-program"], attempts: 2, backoff: [0] });
      const forbidden = command("forbidden", { argv: [join(cwd, "plain.txt")], attempts: 1 });
      const nowhere = command("nowhere", { argv: ["true"], cwd: join(cwd, "not-there"), attempts: 1 });
      const noFolder = command("no-folder", { argv: ["true"], cwd: join(cwd, "plain.txt"), attempts: 1 });
      const huge = command("huge", { argv: ["true", "{text}"], attempts: 1 });

      const { jobs, book } = await runAll(
        t,
        backend,
        [missing, {}],
        [forbidden, {}],
        [nowhere, {}],
        [noFolder, {}],
        [huge, { text: "x".repeat(900_000) }],
      );

      const messages = jobs.map(({ run }) => run?.error?.message ?? "");
      assert.match(
        messages[0] ?? "",
        /^the program "no-such-program" could not be started \(ENOENT\): there is no such/,
      );
      assert.match(messages[1] ?? "", /plain.txt" could not be started \(EACCES\): it may not be executed/);
      assert.match(messages[2] ?? "", /^the folder ".*not-there" of the program cannot be entered: make it, or change/);
      assert.match(messages[3] ?? "", /plain.txt" is not a folder: change "cwd"$/);
      assert.match(messages[4] ?? "", /E2BIG\): its arguments are too long/);
      for (const { run, status } of jobs) {
        assert.deepEqual([status, run?.error?.type, run?.command?.pid], ["failed", "CommandError", null]);
        assert.equal(run?.command?.note, run?.error?.message);
      }
      const chain = await book.jobs.chain(jobs[0]?.id ?? "");
      assert.deepEqual(
        chain.map(({ status }) => status),
        ["failed", "failed"],
      );
      const open = await book.read((tx) => tx.sql`select run_id from daybook_run_command where ended_at is null`);
      assert.deepEqual(open, []);
    });

    test("params that would inject arguments are refused before there is a job, and again before there is a program", async (t) => {
      const folder = testFolder(t);
      const show = command("show", { argv: ["cat", "{file}", "{other}"], cwd: folder, attempts: 1 });
      const { book, url } = await openTest(t, backend, { use: [show], files: join(folder, "files") });
      const bad: [unknown, RegExp][] = [
        [
          { file: "--help", other: "" },
          /param "file" of command "show" is "--help", which its program would take for an option: put "--" just before/,
        ],
        [{ file: -1, other: "" }, /is "-1", which its program would take for an option/],
        [{ file: "a\0b", other: "" }, /param "file" of command "show" has U\+0000|U\+0000/],
        [
          { file: ["a"], other: "" },
          /param "file" of command "show" is an object: an argument is made of a text, a number or/,
        ],
        [{ file: null, other: "" }, /is null: an argument is made of/],
        [{ other: "" }, /command "show" needs the param "file", which is missing/],
        [{ __proto__: { file: "a" }, other: "" }, /needs the param "file"|plain/],
      ];

      for (const [params, message] of bad) {
        await assert.rejects(book.jobs.enqueue(show, params as never), message);
        await assert.rejects(
          book.write((tx) => tx.jobs.enqueue(show, params as never)),
          message,
        );
      }
      // One who does not have the definition cannot tell.
      const { book: other } = await openTest(t, backend, { url, worker: false });
      const { id } = await other.jobs.enqueue("show", { file: "--help", other: "" });
      const worker = await book.startWorker();
      await worker.idle();

      const { run } = await book.jobs.get(id);
      assert.deepEqual([run?.status, run?.error?.type, run?.command], ["error", "DependencyError", null]);
      assert.match(run?.error?.message ?? "", /would take for an option/);
    });

    test("the same command in two tenants has runs, logs and artifacts of its own", async (t) => {
      const folder = testFolder(t);
      const say = command("say", {
        params: z.object({ word: z.string() }),
        cwd: folder,
        artifacts: ["*.txt"],
        concurrency: 1,
        argv: [shellScript(t, 'echo "$1"; echo "$1" > "$1.txt"'), "{word}"],
      });
      const { book } = await openTest(t, backend, { use: [say], files: join(folder, "files"), clock: manualClock() });
      const [ada, bob] = [book.tenant("ada"), book.tenant("bob")];
      const made = [
        await ada.jobs.enqueue(say, { word: "from-ada" }),
        await bob.jobs.enqueue(say, { word: "from-bob" }),
      ];

      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      const [first, second] = [await ada.jobs.get(made[0]?.id ?? ""), await bob.jobs.get(made[1]?.id ?? "")];
      assert.deepEqual([resultOf(first).log.tail, resultOf(second).log.tail], ["from-ada\n", "from-bob\n"]);
      assert.deepEqual(
        [first, second].map((job) => resultOf(job).artifacts.map(({ path }) => path)),
        [["from-ada.txt"], ["from-bob.txt"]],
      );
      await assert.rejects(ada.jobs.get(second.id), /no job/);
      const rows = await book.read(
        (tx) => tx.sql<{ tenant_id: string }>`select tenant_id from daybook_run_command order by tenant_id`,
      );
      assert.deepEqual(
        rows.map((row) => row.tenant_id),
        ["ada", "bob"],
      );
    });
  });
}

test("a run's time is later than that of every file before it, though the file system's clock stands still between", async (t) => {
  const folder = testFolder(t);
  const log = await openLog(join(folder, "run.log"), 1000);
  t.after(() => log.close());

  for (let round = 0; round < 10; round++) {
    const file = join(folder, `${round}.txt`);
    writeFileSync(file, "made before the run");
    const sinceNs = await log.newTimeNs(systemClock, t.signal);
    assert.ok(statSync(file, { bigint: true }).ctimeNs < sinceNs, `round ${round}`);
  }
});

test("a file book keeps the output of programs beside it, unless it is told where", async (t) => {
  const say = command("say", { argv: ["echo", "hello"] });
  const { book, url } = await openTest(t, "sqlite", { use: [say] });
  const { id } = await book.jobs.enqueue(say, {});
  const worker = await book.startWorker();
  await worker.idle();

  const job = await book.jobs.get(id);

  assert.equal(resultOf(job).log.path, `${realpathSync(url)}-files/${job.runId}.log`);
  assert.equal(statSync(`${url}-files`).mode & 0o777, 0o700);
});

test("a program whose log cannot be made is not started", async (t) => {
  const folder = testFolder(t);
  const make = command("make", { argv: ["touch", "made"], cwd: folder, attempts: 1 });
  writeFileSync(join(folder, "files"), "not a folder");
  const { book } = await openTest(t, "sqlite", { use: [make], files: join(folder, "files") });
  const { id } = await book.jobs.enqueue(make, {});
  const worker = await book.startWorker();
  await worker.idle();

  const { run } = await book.jobs.get(id);

  assert.equal(run?.error?.type, "CommandError");
  assert.match(run?.error?.message ?? "", /^its log could not be made in ".*files": EEXIST/);
  assert.deepEqual([run?.command?.note, existsSync(join(folder, "made"))], [run?.error?.message, false]);
});
