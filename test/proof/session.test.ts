// Must show 5, in full: the real clock, the real time to live, real processes.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { limits } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import { moveElsewhere, readSession, until, untilBeat } from "../support/session-row.ts";

const ttlMs = limits.sessionTtlMs;

describe("a session in real time", { concurrency: true, timeout: 300_000 }, () => {
  for (const backend of backends) {
    test(`outlives a busy loop of three times its time to live on ${backend}`, async (t) => {
      const { book, url } = await openTest(t, backend);
      const other = await startProcess(t, { url });
      await moveElsewhere(book, other.sessionId);

      other.tell({ do: "block", ms: 3 * ttlMs });
      await other.hear("unblocked");

      const row = await readSession(book, other.sessionId);
      assert.equal(row.status, "running");
      assert.ok(row.beat >= 15, `it beat ${row.beat} times`);
      other.tell({ do: "close" });
      await other.hear("closed");
      assert.equal((await readSession(book, other.sessionId)).status, "success");
    });

    test(`outlives a writer that never rests on ${backend}`, async (t) => {
      const { book, url } = await openTest(t, backend);
      await book.write((tx) => tx.sql`create table written (pid integer not null)`);
      const other = await startProcess(t, { url });
      await moveElsewhere(book, other.sessionId);

      other.tell({ do: "write", ms: 1.5 * ttlMs, callers: 100 });
      const { report } = await other.hear("written");

      assert.deepEqual(report.errors, []);
      assert.equal((await readSession(book, other.sessionId)).status, "running");
    });

    test(`that is stopped for longer than its time to live is ended and replaced on ${backend}`, async (t) => {
      const { book, url } = await openTest(t, backend);
      const other = await startProcess(t, { url });
      await moveElsewhere(book, other.sessionId);
      await untilBeat(book, other.sessionId, 0);

      other.signal("SIGSTOP");
      const stoppedAt = systemClock.monotonic();
      const patience = { ms: 2 * ttlMs };
      const row = await until(
        "the others notice",
        async () => {
          const found = await readSession(book, other.sessionId);
          return found.status === "running" ? undefined : found;
        },
        patience,
      );
      const noticedMs = systemClock.monotonic() - stoppedAt;
      other.signal("SIGCONT");
      const { replacement } = await other.hear("lost");

      t.diagnostic(`noticed after ${Math.round(noticedMs)} ms`);
      assert.ok(noticedMs >= ttlMs - 5000 && noticedMs <= ttlMs + 15_000, `noticed after ${noticedMs} ms`);
      assert.deepEqual([row.status, row.stopped_at], ["unknown", row.last_heartbeat_at]);
      assert.equal((await readSession(book, replacement)).status, "running");
      assert.deepEqual(await readSession(book, other.sessionId), row);
    });
  }
});
