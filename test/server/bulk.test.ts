// What is done to all that a filter fits: counted first, then an operation with progress that can be cancelled, and noted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { event, job, listener, type Book, type Operation } from "../../src/index.ts";
import { backends } from "../support/open-test.ts";
import { openServer, type TestServer } from "../support/open-server.ts";

const Said = event<{ text: string }>("said.aloud");
const work = job("work", { run: () => undefined });
const hear = listener("hear", {
  on: Said,
  attempts: 1,
  run() {
    throw new Error("deaf");
  },
});

async function workOff(book: Book): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
}

async function endOf({ ask, json, tokens }: TestServer, path: string, body: object): Promise<Operation> {
  const token = tokens.admin;
  const begun = await ask("POST", path, { body, token });
  assert.equal(begun.status, 202, await begun.clone().text());
  const { id } = (await begun.json()) as Operation;
  for (;;) {
    const operation = await json<Operation>("GET", `/operations/${id}`, { token });
    if (operation.status !== "running") return operation;
    await setImmediate();
  }
}

for (const backend of backends) {
  test(`dead letters of a filter are redriven and discarded by an operation, one by its id at once (${backend})`, async (t) => {
    const server = await openServer(t, backend, { use: [hear, Said] });
    const { json, book } = server;
    for (const text of ["a", "b", "c"]) await book.events.publish(Said, { text });
    await workOff(book);
    const which = { listener: "hear" };
    const [letter] = (await book.deadLetters.list()).items;

    const counted = await json("POST", "/dead-letters/redrive", { body: { ...which, dryRun: true } });
    const one = await json<{ jobId: string }>("POST", "/dead-letters/redrive", { body: { id: letter?.id } });
    const redriven = await endOf(server, "/dead-letters/redrive", which);
    await workOff(book);
    const discarded = await endOf(server, "/dead-letters/discard", { ...which, reason: "nobody listens", apply: true });

    assert.deepEqual(counted, { dryRun: true, count: 3, jobId: null });
    assert.match(one.jobId, /^[0-9a-f-]{36}$/);
    assert.partialDeepStrictEqual(redriven, { status: "completed", done: 2, total: 2, result: { count: 2 } });
    assert.partialDeepStrictEqual(discarded, { status: "completed", done: 3, total: 3, result: { count: 3 } });
    assert.equal((await book.deadLetters.list()).items.length, 0);
  });

  test(`ended jobs of a filter are counted, and removed by an operation that says how many have left (${backend})`, async (t) => {
    const server = await openServer(t, backend, { use: [work] });
    const { json, book, tokens } = server;
    await book.jobs.enqueueMany(work, [{}, {}, {}]);
    await workOff(book);

    const counted = await json<{ jobs: number }>("POST", "/jobs/delete-all", { body: {}, token: tokens.admin });
    const stopped = await book.retain({ jobs: 0, apply: true, signal: AbortSignal.abort() });
    const removed = await endOf(server, "/jobs/delete-all", { name: "work", apply: true });

    assert.equal(counted.jobs, 3);
    assert.equal(stopped.jobs, 0);
    assert.partialDeepStrictEqual(removed, { status: "completed", done: 3, total: null, result: { jobs: 3 } });
    assert.equal((await book.jobs.list()).items.length, 0);
  });
}
