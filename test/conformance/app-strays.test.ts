// An error that escapes from a handler of an app fails its run, and the process goes on. When an error ends the process, what is known
// of its runs is written before it is gone.
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { DatabaseSync } from "node:sqlite";
import { describe, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { Book } from "../../src/index.ts";
import { backends, cleanup, openTest } from "../support/open-test.ts";
import { readSession, until } from "../support/session-row.ts";
import type { Start } from "../support/stray-program.ts";

const program = fileURLToPath(new URL("../support/stray-program.ts", import.meta.url));

type Strays = {
  readonly child: ChildProcess;
  readonly sessionId: string;
  emit(...topics: string[]): void;
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
};

async function startStrays(t: TestContext, start: Start): Promise<Strays> {
  const child = fork(program, [JSON.stringify(start)], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
  cleanup(t, () => void child.kill("SIGKILL"));
  const exit = once(child, "exit") as Promise<[number | null]>;
  const stderr = text(child.stderr ?? process.stdin);
  const [{ sessionId }] = (await once(child, "message")) as [{ sessionId: string }];
  const ended = Promise.all([exit, stderr]).then(([[code], said]) => ({ code, stderr: said }));
  return { child, sessionId, emit: (...topics) => void child.send(topics), ended };
}

async function runsOf(book: Book, sessionId: string): Promise<string[]> {
  const { items } = await book.runs.list({ session: sessionId });
  return items.map(({ registration, name, status, error }) =>
    [registration ?? name, status, ...(error === null ? [] : [`${error.type}: ${error.message}`])].join(", "),
  );
}

describe("an error that escapes from a handler", () => {
  for (const backend of backends) {
    test(`${backend}: of an app fails its run, and the process and its other apps go on`, async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      const strays = await startStrays(t, { url });
      await book.schedules.trigger((await book.schedules.list()).items[0]?.name ?? "");
      strays.emit("forgets", "throws");
      await until("all three have failed", async () =>
        (await runsOf(book, strays.sessionId)).length >= 4 ? true : undefined,
      );

      strays.emit("works");
      const runs = await until("the other listener has acted", async () => {
        const found = await runsOf(book, strays.sessionId);
        return found.length >= 5 ? found : undefined;
      });
      strays.child.kill("SIGTERM");
      const { code, stderr } = await strays.ended;

      assert.deepEqual(runs.toSorted(), [
        "forgets, error, RangeError: nobody awaited this",
        "forgets, success",
        "report, error, TypeError: thrown in a callback",
        "throws, error, TypeError: thrown in a callback",
        "works, success",
      ]);
      assert.equal(code, 0, stderr);
      assert.match(
        stderr,
        /DaybookWarning: an error escaped from "forgets" of app "home", instance 0; its run has failed/,
      );
      assert.equal((await readSession(book, strays.sessionId)).status, "success");
      assert.deepEqual(await book.doctor(), []);
    });

    test(`${backend}: of an app ends a process that is strict, and its run is in the book`, async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      const strays = await startStrays(t, { url, strict: true });

      strays.emit("works", "throws");
      const { code } = await strays.ended;

      const { status, error_type: type } = await readSession(book, strays.sessionId);
      assert.deepEqual([code, status, type], [1, "error", "TypeError"]);
      assert.deepEqual((await runsOf(book, strays.sessionId)).toSorted(), [
        "throws, error, TypeError: thrown in a callback",
        "works, success",
      ]);
    });

    test(`${backend}: of no app ends the process, and the runs that were not written yet are`, async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      const strays = await startStrays(t, { url });

      strays.emit("quick", "waits", "quick", "crashes");
      const { code, stderr } = await strays.ended;

      assert.equal(code, 1);
      assert.match(stderr, /TypeError: thrown in a callback/);
      assert.deepEqual((await runsOf(book, strays.sessionId)).toSorted(), [
        "crashes, error, TypeError: thrown in a callback",
        "quick, success",
        "quick, success",
        "waits, lost, LostError: its process ended with an uncaught exception",
      ]);
      const [session] = (await book.sessions.list()).items.filter(({ id }) => id === strays.sessionId);
      assert.deepEqual(session?.dropped, { runs: 0, logs: 0, events: 0 });
    });

    test(`${backend}: begins nothing that waited for its turn: those events are counted as dropped`, async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      const strays = await startStrays(t, { url });

      strays.emit("queues", "queues", "queues", "restarts", "restarts", "crashes");
      await strays.ended;

      assert.deepEqual((await runsOf(book, strays.sessionId)).toSorted(), [
        "crashes, error, TypeError: thrown in a callback",
        "queues, lost, LostError: its process ended with an uncaught exception",
        "restarts, cancelled, CancelledError: a newer event came, and the listener begins again with it",
      ]);
      const [session] = (await book.sessions.list()).items.filter(({ id }) => id === strays.sessionId);
      assert.deepEqual(session?.dropped, { runs: 0, logs: 0, events: 3 });
    });
  }

  test("sqlite: ends the process, and runs that cannot be written are counted", async (t) => {
    const { book, url } = await openTest(t, "sqlite", { worker: false });
    const strays = await startStrays(t, { url });
    const file = new DatabaseSync(url, { timeout: 5000 });
    cleanup(t, () => file.close());
    file.exec("create trigger no_room before insert on daybook_run begin select raise(abort, 'no room'); end");

    strays.emit("quick", "quick", "crashes");
    await strays.ended;

    const { items } = await book.sessions.list();
    const session = items.find(({ id }) => id === strays.sessionId);
    assert.deepEqual([session?.status, session?.dropped], ["error", { runs: 3, logs: 0, events: 0 }]);
  });
});
