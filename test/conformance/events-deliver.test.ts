import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { event, job, limits, listener, manualClock, open, type Book } from "../../src/index.ts";
import { backends, cleanup, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const Said = event("talk.said", { schema: z.object({ n: z.number() }) });

/** Notes what it hears. */
function ear(name: string, heard: number[], options: Partial<Parameters<typeof listener>[1]> = {}) {
  return listener(name, { on: Said, ...options, run: ({ n }: { n: number }) => void heard.push(n) } as never);
}

async function say(book: Book, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n++) await book.events.publish(Said, { n });
}

for (const backend of backends) {
  test(`${backend}: every matching listener hears an event once, in its own tenant`, async (t) => {
    const heard = { exact: [] as number[], star: [] as number[], rest: [] as number[], other: [] as number[] };
    const use = [
      ear("exact", heard.exact),
      ear("star", heard.star, { on: ["talk.*", "talk.>"] as never }),
      ear("rest", heard.rest, { on: ">" as never }),
      ear("other", heard.other, { on: "walk.*" as never }),
    ];
    const { book } = await openTest(t, backend, { use });
    const worker = await book.startWorker();

    const { deliveries } = await book.events.publish(Said, { n: 1 });
    const elsewhere = await book.tenant("acme").events.publish(Said, { n: 2 });
    await worker.idle();

    assert.deepEqual(heard, { exact: [1], star: [1], rest: [1], other: [] });
    assert.deepEqual([deliveries, elsewhere.deliveries], [3, 0]);
  });

  test(`${backend}: a listener that another process registers is not missed by the next publish`, async (t) => {
    const heard: number[] = [];
    const { book, url } = await openTest(t, backend);
    await say(book, 1, 1);

    const second = await open(url, { use: [ear("late", heard)] });
    cleanup(t, () => second.close());
    await say(book, 2, 1);
    await (await second.startWorker()).idle();

    assert.deepEqual(heard, [2]);
  });

  test(`${backend}: a new listener from the beginning hears all, from now nothing of it, and each new event once`, async (t) => {
    const from = { beginning: [] as number[], now: [] as number[], time: [] as number[], event: [] as number[] };
    const clock = manualClock();
    const { book, url } = await openTest(t, backend, { clock });
    const old = limits.catchUpEventsMax + 20; // more than one step of catching up takes
    await book.write(async (tx) => {
      for (let n = 0; n < old; n++) await tx.events.publish(Said, { n });
    });
    await book.tenant("acme").events.publish(Said, { n: -1 });
    await clock.advance(1000);
    const at = clock.now();
    const { id } = await book.events.publish(Said, { n: old });
    await say(book, old + 1, 1);
    const use = [
      ear("a", from.beginning, { from: "beginning" }),
      ear("b", from.now, { from: "now" }),
      ear("c", from.time, { from: { time: at } }),
      ear("d", from.event, { from: { event: id } }),
    ];

    const second = await open(url, { use, clock });
    cleanup(t, () => second.close());
    await say(book, old + 2, 1);
    const worker = await second.startWorker();
    await worker.idle();
    await say(second, old + 3, 1);
    await worker.idle();

    const all = Array.from({ length: old + 4 }, (_, n) => n);
    const sorted = (list: number[]): number[] => list.toSorted((x, y) => x - y);
    assert.deepEqual(sorted(from.beginning), all);
    assert.deepEqual(from.now, all.slice(-2));
    assert.deepEqual(sorted(from.time), all.slice(-4));
    assert.deepEqual(sorted(from.event), all.slice(-4));
  });

  test(`${backend}: where a listener begins is decided once, and it collects while nobody hosts it`, async (t) => {
    const heard: number[] = [];
    const { book, url } = await openTest(t, backend);
    await say(book, 1, 1);
    await (await open(url, { use: [ear("l", heard, { from: "beginning" })] })).close();
    await say(book, 2, 1);

    const again = await open(url, { use: [ear("l", heard, { from: "beginning", attempts: 3 })] });
    cleanup(t, () => again.close());
    await (await again.startWorker()).idle();

    assert.deepEqual(
      heard.toSorted((a, b) => a - b),
      [1, 2],
    );
    const rows = await book.read((tx) => tx.sql<{ n: number }>`select attempts as n from daybook_listener`);
    assert.deepEqual(rows, [{ n: 3 }]);
  });

  test(`${backend}: a new name is a new listener, and the old one keeps its history and goes on collecting`, async (t) => {
    const heard: number[] = [];
    const { book, url } = await openTest(t, backend);
    const before = await open(url, { use: [ear("before", heard)] });
    await say(before, 1, 1);
    await (await before.startWorker()).idle();
    await before.close();

    const after = await open(url, { use: [ear("after", heard)] });
    cleanup(t, () => after.close());
    await say(after, 2, 1);
    await (await after.startWorker()).idle();

    assert.deepEqual(heard, [1, 2]);
    assert.deepEqual(
      (await book.listeners.list()).map(({ name, hosted, lag }) => [name, hosted, lag.events]),
      [
        ["after", true, 0],
        ["before", false, 1],
      ],
    );
    const [, first] = (await book.events.list()).items;
    assert.deepEqual(
      first?.deliveries.map(({ listener: name, status }) => [name, status]),
      [["before", "acked"]],
    );
  });

  test(`${backend}: an invalid start position is refused`, async (t) => {
    const { book, url } = await openTest(t, backend);

    await assert.rejects(open(url, { use: [ear("l", [], { from: { time: Date.now() + 60_000 } })] }), /ms ahead/);
    await assert.rejects(open(url, { use: [ear("l", [], { from: { event: "gone" } })] }), /not in the book/);
    assert.throws(() => ear("l", [], { from: "never" as never }), /give "now", "beginning"/);
    await assert.rejects(open(url, { use: [ear("l", []), ear("l", [])] }), /two listeners in "use" are named "l"/);
    await assert.rejects(
      open(url, { use: [ear("l", []), job("listener:l", { run: () => undefined })] }),
      /rename the job/,
    );
    assert.deepEqual(await book.read((tx) => tx.sql`select name from daybook_listener`), []);
  });

  test(`${backend}: a delivery is retried, delayed, and fails alone when its payload no longer fits`, async (t) => {
    const clock = manualClock();
    const calls: string[] = [];
    const flaky = listener("flaky", {
      on: Said,
      run({ n }, { attempt }) {
        calls.push(`${n}/${attempt}`);
        if (n === 1 && attempt === 1) throw new Error("not yet");
      },
    });
    const { book } = await openTest(t, backend, { clock, use: [flaky] });
    const worker = await book.startWorker();
    await book.events.publish(Said, { n: 1 });
    await book.events.publish(Said, { n: 2 }, { in: "5s" });
    await worker.idle();
    assert.deepEqual(calls, ["1/1"]);

    await clock.advance(1000);
    await worker.idle();
    assert.deepEqual(calls, ["1/1", "1/2"]);
    await clock.advance(5000);
    await worker.idle();
    assert.deepEqual(calls, ["1/1", "1/2", "2/1"]);
  });

  test(`${backend}: a payload that does not fit the listener's schema fails that delivery, and no other`, async (t) => {
    const clock = manualClock();
    const heard: number[] = [];
    const { book } = await openTest(t, backend, { clock, use: [ear("strict", heard, { attempts: 1 })] });
    await say(book, 1, 2);
    await tamper(book, (tx) => tx.sql`update daybook_event set payload = '{"n":"old"}' where payload = '{"n":1}'`);

    await (await book.startWorker()).idle();

    assert.deepEqual(heard, [2]);
    const [failed] = (await book.runs.list({ status: "error" })).items;
    assert.equal(failed?.error?.type, "DependencyError");
    assert.match(failed?.error?.message ?? "", /payload of "talk.said" does not fit its schema: n/);
  });

  test(`${backend}: finish commits effects, events and the acknowledgement together, or none of them`, async (t) => {
    const clock = manualClock();
    const fails = { once: true };
    const count = listener("count", {
      on: Said,
      run: ({ n }, { finish }) =>
        finish(async (tx) => {
          await tx.sql`insert into tally (n) values (${n})`;
          await tx.events.publish("talk.counted", { n });
          if (fails.once) {
            fails.once = false;
            throw new Error("undo all of it");
          }
        }),
    });
    const { book } = await openTest(t, backend, { clock, use: [count] });
    await book.write((tx) => tx.sql`create table tally (n bigint)`);
    const worker = await book.startWorker();

    await book.events.publish(Said, { n: 7 });
    await worker.idle();
    const before = await book.read((tx) => tx.sql`select n from tally`);
    await clock.advance(1000);
    await worker.idle();

    assert.deepEqual(before, []);
    assert.equal((await book.read((tx) => tx.sql`select n from tally`)).length, 1);
    const topics = await book.read((tx) => tx.sql<{ topic: string }>`select topic from daybook_event order by seq`);
    assert.deepEqual(
      topics.map(({ topic }) => topic),
      ["talk.said", "talk.counted"],
    );
  });
}
