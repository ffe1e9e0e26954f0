// What ends a process that nobody closed is written down before it is gone.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { type Backend, backends, cleanup, openTest } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import type { Failure } from "../support/session-program.ts";
import { readSession, until } from "../support/session-row.ts";

type Expected = { readonly type: string; readonly message: RegExp; readonly trace: RegExp | null };

const failures: Record<Failure, Expected> = {
  throw: {
    type: "TypeError",
    message: /^the boiler is cold$/,
    trace: /TypeError: the boiler is cold\n[^]*Caused by: Error: no gas/,
  },
  "throw text": { type: "string", message: /^plain words$/, trace: null },
  "throw null": { type: "null", message: /^null$/, trace: null },
  reject: { type: "RangeError", message: /^nobody awaited this$/, trace: /session-program/ },
  // Node makes an error of it.
  "reject text": {
    type: "UnhandledPromiseRejection",
    message: /words that nobody awaited/,
    trace: /words that nobody awaited/,
  },
  "throw in an open unit": { type: "Error", message: /beside an open transaction/, trace: /session-program/ },
  "throw beside a busy writer": { type: "Error", message: /beside a busy writer/, trace: /session-program/ },
};

describe("an uncaught exception", { concurrency: 4, timeout: 90_000 }, () => {
  for (const backend of backends) {
    for (const how of Object.keys(failures) as Failure[]) {
      test(`is the error of the session on ${backend}: ${how}`, (t) => isRecorded(t, backend, how));
    }

    for (const by of ["listener", "capture"] as const) {
      test(`is left to a program on ${backend} that handles it with a ${by}`, async (t) => {
        const { book, url } = await openTest(t, backend);
        const other = await startProcess(t, { url });

        other.tell({ do: "handle", by });
        await other.hear("handling");
        other.tell({ do: "fail", how: "throw" });
        const { message } = await other.hear("handled");

        assert.match(message, /the boiler is cold/);
        assert.equal((await readSession(book, other.sessionId)).status, "running");
        other.tell({ do: "close" });
        await other.hear("closed");
        assert.equal((await readSession(book, other.sessionId)).status, "success");
      });
    }

    test(`is not recorded for a book on ${backend} that was closed before`, async (t) => {
      const { book, url } = await openTest(t, backend);
      const other = await startProcess(t, { url });

      other.tell({ do: "close" });
      await other.hear("closed");
      other.tell({ do: "fail", how: "throw" });

      assert.equal((await other.ended).code, 1);
      assert.equal((await readSession(book, other.sessionId)).status, "success");
    });
  }

  test("ends the process within seconds even when it cannot be recorded, because another process holds the file", async (t) => {
    const { book, url } = await openTest(t, "sqlite", { attach: false });
    const other = await startProcess(t, { url });
    const holder = new DatabaseSync(url, { timeout: 5000 }); // the other may just be beating
    cleanup(t, () => holder.close());
    holder.exec("begin immediate");

    const since = systemClock.monotonic();
    other.tell({ do: "fail", how: "throw" });
    const { code } = await other.ended;

    assert.equal(code, 1);
    // The file is never let go. It gives up after five seconds, to which a busy machine adds.
    assert.ok(systemClock.monotonic() - since < 30_000);
    assert.equal((await readSession(book, other.sessionId)).status, "running");
  });

  test("is recorded on postgres even when the heartbeat's idle connection has died", async (t) => {
    const { book, url } = await openTest(t, "postgres", { attach: false });
    const other = await startProcess(t, { url });
    await until("the connection on which it beats is ended", async () => {
      const ended = await book.write(
        (tx) => tx.sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like 'update daybook_session set beat%' and pid <> pg_backend_pid()`,
      );
      return ended.length > 0 ? true : undefined;
    });

    other.tell({ do: "fail", how: "throw" });
    await other.ended;

    assert.equal((await readSession(book, other.sessionId)).error_type, "TypeError");
  });
});

async function isRecorded(t: Parameters<typeof startProcess>[0], backend: Backend, how: Failure): Promise<void> {
  const { book, url } = await openTest(t, backend);
  await book.write((tx) => tx.sql`create table written (pid integer not null)`);
  const other = await startProcess(t, { url });
  const { type, message, trace } = failures[how];

  other.tell({ do: "fail", how });
  const { code, stderr } = await other.ended;

  const row = await readSession(book, other.sessionId);
  assert.deepEqual([row.status, row.error_type], ["error", type]);
  assert.match(row.error_message ?? "", message);
  if (trace === null) assert.equal(row.error_trace, null);
  else assert.match(row.error_trace ?? "", trace);
  assert.ok(row.stopped_at !== null && row.stopped_at >= row.started_at);
  // Nothing of an open unit was kept, and Node's own report and exit code are what they always are.
  assert.deepEqual(await book.read((tx) => tx.sql`select * from written where pid = -1`), []);
  assert.equal(code, 1);
  assert.match(stderr, /Node\.js v/);
  // Others find the process gone, but its error is its last word.
  assert.deepEqual(await book.sessions.look(), []);
  assert.deepEqual(await readSession(book, other.sessionId), row);
}
