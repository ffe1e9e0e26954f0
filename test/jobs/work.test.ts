// book.work(): the signals of its process, and what is left of it when it could not start or close.
import assert from "node:assert/strict";
import { test } from "node:test";
import { workUntilSignal } from "../../src/book/work.ts";
import type { Worker } from "../../src/jobs/worker/start-worker.ts";

const started = async (): Promise<Worker> => ({}) as Worker;
const listening = (): number[] => ["SIGINT", "SIGTERM"].map((signal) => process.listenerCount(signal));
/** What keeps this process alive for a time. */
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`after ${signal} no second signal is taken, whichever it is`, async () => {
    const before = listening();
    const closing = Promise.withResolvers<void>();

    const working = workUntilSignal(started, { graceMs: 60_000, close: () => closing.promise, running: () => 0 });
    const asked = listening();
    process.emit(signal, signal);
    const after = listening();
    closing.resolve();
    await working;

    assert.deepEqual(
      asked,
      before.map((count) => count + 1),
    );
    assert.deepEqual(after, before);
  });
}

test("a worker that could not start takes no signals from its program", async () => {
  const before = listening();
  const start = (): Promise<Worker> => Promise.reject(new Error("no start"));

  await assert.rejects(
    workUntilSignal(start, { graceMs: 1, close: async () => undefined, running: () => 0 }),
    /no start/,
  );

  assert.deepEqual(listening(), before);
});

test("a book that could not be closed neither keeps its program nor ends it", async () => {
  const before = timers();
  const close = (): Promise<void> => Promise.reject(new Error("no close"));

  const working = workUntilSignal(started, { graceMs: 60_000, close, running: () => 0 });
  process.emit("SIGTERM", "SIGTERM");
  await assert.rejects(working, /no close/);

  assert.equal(timers(), before);
});
