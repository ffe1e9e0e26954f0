// The heart goes on whatever the event loop, the disk and the network do.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { open } from "../../src/index.ts";
import { sql } from "../../src/storage/sql.ts";
import { attach, startHeartbeat } from "../../src/telemetry/attach.ts";
import type { SessionRow } from "../../src/telemetry/session.ts";
import { backends, cleanup, openTest, openTestStore } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import { readSession, until, untilBeat } from "../support/session-row.ts";

describe("the heartbeat", { concurrency: true }, () => {
  for (const backend of backends) {
    test(`beats while the event loop is held for seconds, on ${backend}`, async (t) => {
      const { book, url } = await openTest(t, backend);
      const other = await startProcess(t, { url });
      let free = false;
      void other.hear("unblocked").then(
        () => (free = true),
        () => undefined,
      );

      other.tell({ do: "block", ms: 60_000 });
      const { beat } = await readSession(book, other.sessionId);
      // One more may have been on its way in a commit of the loop's own; those after it are not.
      const row = await untilBeat(book, other.sessionId, beat + 1);

      assert.equal(free, false);
      assert.equal(row.status, "running");
      assert.deepEqual(await book.sessions.look(), []);
    });

    test(`beats beside a writer that never pauses, on ${backend}`, async (t) => {
      const { book, url } = await openTest(t, backend);
      await book.write((tx) => tx.sql`create table written (pid integer not null)`);
      const other = await startProcess(t, { url });

      other.tell({ do: "write", ms: 6000, callers: 50 });
      const row = await untilBeat(book, other.sessionId, 1);
      assert.deepEqual(await book.sessions.look(), []);
      const { report } = await other.hear("written");

      assert.equal(row.status, "running");
      assert.deepEqual(report.errors, []);
      assert.equal((await readSession(book, other.sessionId)).status, "running");
    });
  }

  test("beats although every commit of the main thread fails", async (t) => {
    let broken = false;
    const fault = (moment: string, text: string): void => {
      if (broken && moment === "before" && text === "commit") throw new Error("this disk keeps nothing");
    };
    const { store } = await openTestStore(t, "sqlite", { fault });
    const attachment = await attach(store, { metadata: "{}" });
    cleanup(t, () => attachment.detach());

    broken = true;
    await until("a beat is kept", async () => {
      await assert.rejects(store.write(() => undefined));
      const [row] = await store.read<SessionRow>(sql`select * from daybook_session`);
      return (row?.beat ?? 0) > 0 ? true : undefined;
    });
    broken = false;
  });

  test("beats for an in-memory book too", async () => {
    const book = await open(":memory:");

    const { status } = await untilBeat(book, book.sessionId, 0);

    assert.equal(status, "running");
    await book.close();
  });

  test("stops while it is still connecting to the server", async (t) => {
    const { store, url } = await openTestStore(t, "postgres");
    const gate = await startGate(t, url);
    const heart = startHeartbeat({ ...store, threadLocation: gate.url }, "nobody", { lost: () => undefined });

    await gate.knocked;
    const stopped = heart.stop();
    gate.open();

    await stopped;
  });
});

/** A door to the server that lets nobody through until it is opened. */
async function startGate(t: TestContext, url: string): Promise<{ url: string; knocked: Promise<void>; open(): void }> {
  const knocked = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const gate = createServer((client) => {
    knocked.resolve();
    void opened.promise.then(() => {
      const server = connect(Number(new URL(url).port), new URL(url).hostname);
      client.on("error", () => server.destroy()).pipe(server);
      server.on("error", () => client.destroy()).pipe(client);
    });
  });
  gate.listen(0, "127.0.0.1");
  await once(gate, "listening");
  cleanup(t, () => gate.close());
  const through = new URL(url);
  through.host = `127.0.0.1:${(gate.address() as AddressInfo).port}`;
  // The thread's farewell to a stopped heart comes a moment after the door opens, so it is given that moment.
  return {
    url: through.href,
    knocked: knocked.promise,
    open: () => void systemClock.after(50, opened.resolve, { keepAlive: true }),
  };
}
