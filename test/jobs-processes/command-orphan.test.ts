// A worker that is killed leaves its programs running. Whoever recovers its runs on the same host ends them, and nobody
// else's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { open, type Book } from "../../src/index.ts";
import { endOrphans } from "../../src/jobs/command/command-record.ts";
import { processStarted, thisProcess } from "../../src/telemetry/process-identity.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { startJobProcess, type JobProcess } from "../support/job-process.ts";
import { backends, cleanup, testFolder, bookUrl, type Backend } from "../support/open-test.ts";
import { isGone, listenToPrograms, type Reports, type Role } from "../support/reporting-program.ts";
import { until } from "../support/session-row.ts";

type Scene = {
  readonly book: Book;
  readonly reports: Reports;
  readonly id: string;
  work(env?: Record<string, string>): JobProcess;
};

async function prepare(t: TestContext, backend: Backend, role: Role, losses = 3): Promise<Scene> {
  const [url, folder, reports] = [await bookUrl(t, backend), testFolder(t), await listenToPrograms(t)];
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  const { id } = await book.jobs.enqueue("program", reports.params(role), { losses });
  return { book, reports, id, work: (env = {}) => startJobProcess(t, { url, folder, work: {} }, { env }) };
}

/** Its worker has written down the pid, and what it said. */
async function untilNoted(book: Book, pid: number): Promise<void> {
  await until(`process ${pid} is noted`, async () => {
    const [row] = await book.read(
      (tx) => tx.sql<{ log_path: string }>`select log_path from daybook_run_command where pid = ${pid}`,
    );
    return row !== undefined && readFileSync(row.log_path, "utf8").includes("parent began\n") ? true : undefined;
  });
}

for (const backend of backends) {
  describe(backend, () => {
    test("what a killed worker left is ended before the next try starts its own", async (t) => {
      const { book, reports, id, work } = await prepare(t, backend, "deaf-parent");
      const owner = work();
      const [parent, child] = [await reports.hear("deaf-parent"), await reports.hear("deaf")];
      await Promise.all([untilNoted(book, parent.pid), child.said("ready")]);

      await owner.kill();
      assert.deepEqual([isGone(parent.pid), isGone(child.pid)], [false, false]);
      const next = work();
      // The child does not hear SIGTERM, so there is time enough to do it wrong.
      const again = await reports.hear("deaf-parent");

      assert.deepEqual([isGone(parent.pid), isGone(child.pid)], [true, true]);
      assert.notEqual(again.pid, parent.pid);
      const { fate, runId } = await next.hear("orphaned");
      const { run } = await book.jobs.get(id);
      assert.deepEqual([fate, runId, run?.status], ["ended", run?.id, "lost"]);
      assert.match(
        run?.command?.note ?? "",
        /^orphan: it outlived its worker, and was ended when the run was recovered$/,
      );
      assert.deepEqual([run?.command?.exitCode, run?.command?.pid], [null, parent.pid]);
      assert.match(run?.command?.log?.tail ?? "", /deaf-parent began\n/);
      assert.deepEqual(await book.doctor(), []);
    });

    test("it is ended as well when the job is not tried again", async (t) => {
      const { book, reports, id, work } = await prepare(t, backend, "parent", 0);
      const owner = work();
      const [parent, child] = [await reports.hear("parent"), await reports.hear("child")];
      await untilNoted(book, parent.pid);

      await owner.kill();
      const next = work();
      const { fate } = await next.hear("orphaned");

      await Promise.all([parent.gone, child.gone]);
      const job = await book.jobs.get(id);
      assert.deepEqual([fate, job.status, job.retriedBy], ["ended", "failed", null]);
    });

    test("it is found when its worker was killed before it could write down the pid", async (t) => {
      const { book, reports, id, work } = await prepare(t, backend, "alone", 0);
      const owner = work({ DAYBOOK_CRASH_AT: "command.started:1" });
      const [alone, { signal }] = [await reports.hear("alone"), await owner.ended];
      assert.deepEqual([signal, isGone(alone.pid)], ["SIGKILL", false]);

      const next = work();
      const { fate } = await next.hear("orphaned");

      await alone.gone;
      const { run } = await book.jobs.get(id);
      assert.deepEqual([fate, run?.command?.pid], ["ended", null]);
    });

    test("a worker that was killed before its program began leaves none, and that is noted", async (t) => {
      const { book, id, reports, work } = await prepare(t, backend, "alone");
      const owner = work({ DAYBOOK_CRASH_AT: "command.begun:1" });
      assert.equal((await owner.ended).signal, "SIGKILL");

      const next = work();
      const [{ fate }, alone] = [await next.hear("orphaned"), await reports.hear("alone")];

      const { run } = await book.jobs.get(id);
      assert.deepEqual([fate, run?.command?.pid, isGone(alone.pid)], ["gone", null, false]);
    });

    test("what is left of a group is ended when its first process is gone", async (t) => {
      const { book, reports, work } = await prepare(t, backend, "parent", 0);
      const owner = work();
      const [parent, child] = [await reports.hear("parent"), await reports.hear("child")];
      await untilNoted(book, parent.pid);

      await owner.kill();
      process.kill(parent.pid, "SIGKILL");
      await parent.gone;
      assert.equal(isGone(child.pid), false);
      const next = work();
      const { fate } = await next.hear("orphaned");

      await child.gone;
      assert.equal(fate, "ended");
    });

    test("a process whose identity is not proven is never ended", async (t) => {
      const at = await openEngine(t, backend);
      const self = thisProcess();
      const innocent = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], {
        detached: true,
        stdio: "ignore",
      });
      cleanup(t, () => innocent.kill("SIGKILL"));
      await once(innocent, "spawn");
      const started = processStarted(innocent.pid ?? 0) ?? assert.fail("no /proc");
      const rows: [run: string, host: string, boot: string, namespace: string, started: string][] = [
        ["other-start", self.host, self.hostBoot ?? "", self.hostNamespace ?? "", "'1'"],
        ["no-start", self.host, self.hostBoot ?? "", self.hostNamespace ?? "", "null"],
        ["other-host", "elsewhere", self.hostBoot ?? "", self.hostNamespace ?? "", `'${started}'`],
        ["other-namespace", self.host, self.hostBoot ?? "", "pid:[1]", `'${started}'`],
        ["other-boot", self.host, "another", self.hostNamespace ?? "", `'${started}'`],
      ];
      for (const [run, host, boot, namespace, start] of rows) {
        await at.run(`insert into daybook_run_command (tenant_id, run_id, job_id, argv, host, host_boot, host_namespace, pid,
          process_started, started_at) values ('default', '${run}', 'none', '[]', '${host}', '${boot}', '${namespace}',
          ${innocent.pid}, ${start}, 1)`);
      }

      await endOrphans(at.engine);

      const found = await at.rows<{ run_id: string; note: string | null }>(
        "select run_id, note from daybook_run_command order by 1",
      );
      const judged = Object.fromEntries(found.map(({ run_id: run, note }) => [run, note?.split(", ").at(-1) ?? null]));
      const gone = "and when the run was recovered the program was gone";
      assert.deepEqual(judged, {
        "other-start": gone,
        "no-start": "and whether the program still runs cannot be told on this system; it was left alone",
        "other-host": null,
        "other-namespace": null,
        // A file is on one machine, which has been started anew since; outside of containers that is certain.
        "other-boot": backend === "sqlite" && self.hostNamespace === "pid:[4026531836]" ? gone : null,
      });
      assert.deepEqual([innocent.exitCode, innocent.signalCode, isGone(innocent.pid ?? 0)], [null, null, false]);
    });
  });
}
