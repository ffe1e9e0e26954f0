import assert from "node:assert/strict";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { command } from "../../src/index.ts";
import { backends, openTest, testFolder } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const say = command("say", { argv: [process.execPath, "-e", "console.log('said')"], attempts: 1 });

for (const backend of backends) {
  describe(backend, () => {
    test("the log files of programs leave after their rows, and one that is gone already is no matter", async (t) => {
      const files = join(testFolder(t), "files");
      const { book } = await openTest(t, backend, { use: [say], files });
      const acme = book.tenant("acme");
      const made = [await book.jobs.enqueue(say, {}), await book.jobs.enqueue(say, {})];
      const theirs = await acme.jobs.enqueue(say, {});
      await (await book.startWorker()).idle();
      const logs = await Promise.all(
        made.map(async ({ id }) => (await book.jobs.get(id)).run?.command?.log?.path ?? ""),
      );
      const kept = (await acme.jobs.get(theirs.id)).run?.command?.log?.path ?? "";
      rmSync(logs[0] ?? "");

      const dry = await book.retain({ jobs: 0 });
      const before = readdirSync(files).length;
      const done = await book.retain({ jobs: 0, apply: true });

      assert.deepEqual([dry.files.toSorted(), dry.filesDeleted, before], [logs.toSorted(), 0, 2]);
      assert.deepEqual([done.jobs, done.files.toSorted(), done.filesDeleted], [2, logs.toSorted(), 1]);
      assert.deepEqual([logs.map((path) => existsSync(path)), existsSync(kept)], [[false, false], true]);
    });

    test("a file outside the book's folder is left alone, whatever a row says", async (t) => {
      const folder = testFolder(t);
      const files = join(folder, "files");
      const { book } = await openTest(t, backend, { use: [say], files });
      const other = join(folder, "precious.txt");
      writeFileSync(other, "precious");
      const named = [other, `${files}/../precious.txt`, "precious.txt", files];
      await book.jobs.enqueueMany(
        say,
        named.map(() => ({})),
      );
      await (await book.startWorker()).idle();
      const { items } = await book.jobs.list();
      for (const [index, { runId }] of items.entries()) {
        await tamper(
          book,
          (tx) => tx.sql`update daybook_run_command set log_path = ${named[index] ?? ""} where run_id = ${runId}`,
        );
      }

      const done = await book.retain({ jobs: 0, apply: true });

      assert.deepEqual([done.files.toSorted(), done.filesDeleted], [named.toSorted(), 0]);
      assert.deepEqual([existsSync(other), readdirSync(files).length], [true, 4]);
    });
  });
}
