import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { job, type Book } from "../../src/index.ts";
import { cleanup, openTest, type Backend } from "../support/open-test.ts";
import { answer, items } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";
import { until } from "./until.ts";

for (const backend of cliBackends) {
  test(`${backend}: explain names each kind of obstacle`, async (t) => {
    const { book, trusting, url, hold, single, enqueued } = await busyBook(t, backend);
    const place = await book.jobs.enqueue(hold, {}, { priority: -1 });
    const { id: delayed } = await book.jobs.enqueue(hold, {}, { in: "1h" });
    await book.queues.limit("mail", { concurrency: 1 });
    await book.queues.limit("slow", { rate: { max: 1, per: "1w" } });
    await book.queues.pause("later", "the mail server is down");
    await book.jobs.pause("note", "not today");
    const limited = await enqueued({ queue: "mail" }, 2);
    const rated = await enqueued({ queue: "slow" }, 2);
    const paused = await enqueued({ queue: "later" }, 1);
    const { id: blocked } = await lastOf(book, single);
    const { id: named } = await book.jobs.enqueue("note", {});
    const { id: unknown } = await trusting.jobs.enqueue("nobody", {});
    await until(async () => (await book.jobs.list({ status: "running" })).items.length === 4);
    await until(async () => (await book.jobs.get(unknown)).status === "waiting");

    const cases: readonly (readonly [id: string, reason: string, because: RegExp])[] = [
      [delayed, "time", /^It waits until \S+Z \(.+ from now\): it was enqueued for then\.$/],
      [blocked, "key", /^At most 1 of single may run at the same time, and 1 do: /],
      [limited, "limit", /^The queue mail lets 1 jobs run at the same time, and 1 do\.$/],
      [rated, "rate", /^The queue slow starts at most 1 jobs per 7d; the next window opens /],
      [paused, "paused", /^The queue later is paused since \S+Z: the mail server is down\.$/],
      [named, "paused", /^The name note is paused since \S+Z: not today\.$/],
      [unknown, "host", /^No running session hosts nobody: start a process that lists it in "use"\.$/],
    ];
    for (const [id, reason, because] of cases) {
      const explained = await answer(["jobs", "explain", id], url);

      assert.equal(explained["reason"], reason);
      assert.match((explained["because"] as string[])[0] ?? "", because);
    }
    const words = await runCli(["jobs", "explain", paused, "--book", url]);
    assert.match(
      words.stdout,
      /^queued: paused\nThe queue later is paused since .+\n0 jobs stand before it in queue later/,
    );
    assert.equal((await answer(["jobs", "explain", place.id], url))["reason"], "running");
  });

  test(`${backend}: a queue is paused, limited, resumed and listed`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    await book.jobs.enqueue("a", {}, { queue: "mail" });
    await book.jobs.enqueue("a", {}, { queue: "mail", in: "1h" });
    await book.jobs.enqueue("a", {});

    const paused = await answer(["queues", "pause", "mail", "--note", "down"], url);
    const limited = await answer(["queues", "limit", "mail", "--concurrency", "2", "--rate", "10/1m"], url);
    const words = await runCli(["queues", "list", "--book", url]);
    const resumed = await answer(["queues", "resume", "mail"], url);
    const lifted = await answer(["queues", "limit", "mail", "--concurrency", "none", "--rate", "none"], url);
    const all = await answer(["queues", "list"], url);
    const others = await answer(["queues", "list", "--tenant", "acme"], url);

    const counts = { queue: "mail", waiting: 1, queued: 1, running: 0, failed: 0, oldestAt: paused["oldestAt"] };
    const free = { ...counts, paused: null, concurrency: null, rate: null };
    const { at, note } = paused["paused"] as { at: string; note: string };
    assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(note, "down");
    assert.deepEqual([limited["concurrency"], limited["rate"]], [2, { max: 10, perMs: 60_000 }]);
    assert.match(words.stdout, /^queue\twaiting\tqueued\trunning\tfailed\toldest\tlimit\trate\tpaused\n/);
    assert.match(words.stdout, /\nmail\t1\t1\t0\t0\t\S+\t2\t10\/1m\t\S+ \(down\)\n/);
    assert.deepEqual([resumed["paused"], resumed["concurrency"]], [null, 2]);
    assert.deepEqual(lifted, free);
    assert.deepEqual(
      items(all).map((each) => each["queue"]),
      ["default", "mail"],
    );
    assert.deepEqual(others, { items: [] });
  });

  test(`${backend}: a name that is paused from a shell starts no more until it is resumed`, async (t) => {
    const noting = job("note", { run: () => undefined });
    const { book, url } = await openTest(t, backend, { use: [noting] });

    const paused = await answer(["jobs", "pause", "note", "--note", "not today"], url);
    const { id } = await book.jobs.enqueue(noting, {});
    const worker = await book.startWorker();
    await until(async () => (await book.jobs.get(id)).waitsFor === "host");
    const resumed = await answer(["jobs", "resume", "note"], url);
    await until(async () => (await book.jobs.get(id)).status === "completed");
    await worker.stop();

    assert.deepEqual(paused, { name: "note", paused: true, note: "not today" });
    assert.deepEqual(resumed, { name: "note", paused: false });
  });
}

/** A book with a worker that holds on to whatever it starts: one job of each of two names runs from the beginning. */
async function busyBook(t: TestContext, backend: Backend) {
  const held = Promise.withResolvers<void>();
  const hold = job("hold", { run: () => held.promise });
  const single = job("single", { concurrency: 1, run: () => held.promise });
  const note = job("note", { run: () => undefined });
  const { book, url } = await openTest(t, backend, { use: [hold, single, note] });
  const { book: trusting } = await openTest(t, backend, { url, worker: false });
  cleanup(t, () => held.resolve());
  await book.jobs.enqueueMany(single, [{}, {}]);
  await book.startWorker();
  const enqueued = async (options: { queue: string }, count: number): Promise<string> =>
    (
      await book.jobs.enqueueMany(
        hold,
        Array.from({ length: count }, () => ({})),
        options,
      )
    ).at(-1)?.id ?? "";
  return { book, trusting, url, hold, single, enqueued };
}

async function lastOf(book: Book, { name }: { name: string }): Promise<{ id: string }> {
  const [newest] = (await book.jobs.list({ name })).items;
  return { id: newest?.id ?? "" };
}
