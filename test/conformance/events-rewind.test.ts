import assert from "node:assert/strict";
import { test } from "node:test";
import { event, listener, manualClock } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const Said = event<{ n: number }>("talk.said");

for (const backend of backends) {
  test(`${backend}: an ordered listener that is rewound hears the old events before the waiting ones`, async (t) => {
    const heard: number[] = [];
    const use = [listener("l", { on: Said, ordered: true, run: ({ n }) => void heard.push(n) })];
    const { book } = await openTest(t, backend, { use });
    for (const n of [1, 2, 3]) await book.events.publish(Said, { n }, { key: "k" });
    const worker = await book.startWorker();
    await worker.idle();
    await book.listeners.pause("l");
    for (const n of [4, 5]) await book.events.publish(Said, { n }, { key: "k" });

    await book.listeners.rewind("l", "beginning");
    assert.deepEqual(await book.doctor(), []);
    await book.listeners.resume("l");
    await worker.idle();

    assert.deepEqual(heard, [1, 2, 3, 1, 2, 3, 4, 5]);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a delivery that runs while its ordered listener is rewound ends before the old events begin`, async (t) => {
    const heard: number[] = [];
    const clock = manualClock();
    const gate = Promise.withResolvers<void>();
    const run = async ({ n }: { n: number }): Promise<void> => {
      heard.push(n);
      if (n === 2) await gate.promise;
    };
    const { book } = await openTest(t, backend, { clock, use: [listener("l", { on: Said, ordered: true, run })] });
    const worker = await book.startWorker({ concurrency: 3 });
    for (const n of [1, 2]) await book.events.publish(Said, { n }, { key: "k" });
    while (heard.length < 2) await clock.nextTurn();

    await book.listeners.rewind("l", "beginning");
    while ((await book.listeners.get("l")).state !== "live") await clock.nextTurn();
    assert.deepEqual([heard, await book.doctor()], [[1, 2], []]);
    gate.resolve();
    await worker.idle();

    assert.deepEqual(heard, [1, 2, 1], "the one that ran was under way, and is not delivered twice");
  });

  test(`${backend}: a listener that is rewound in the last moment of its catch-up hears everything again`, async (t) => {
    const heard: number[] = [];
    let again: (() => void) | undefined;
    const { book: first, url } = await openTest(t, backend);
    for (const n of [1, 2]) await first.events.publish(Said, { n });
    const { id: event } = await first.events.publish(Said, { n: 3 });
    // It hears the first two only because it is set back. The third may still be under way then.
    const use = [listener("l", { on: Said, from: { event }, run: ({ n }) => void heard.push(n) })];
    const rewound = Promise.withResolvers<void>();
    const { book } = await openTest(t, backend, {
      url,
      use,
      fault(moment, text) {
        // It has caught up, and its job has not been settled.
        if (moment !== "after" || !text.includes("state = 'live' where seq")) return;
        again?.();
        again = undefined;
      },
    });
    again = () => void book.listeners.rewind("l", "beginning").then(rewound.resolve, rewound.reject);

    const worker = await book.startWorker();
    await rewound.promise;
    await worker.idle();

    assert.equal((await book.listeners.get("l")).state, "live");
    assert.deepEqual(
      heard.filter((n) => n < 3).toSorted((a, b) => a - b),
      [1, 2],
    );
  });

  test(`${backend}: a listener that is catching up can only be rewound to the beginning`, async (t) => {
    const heard: number[] = [];
    const { book: first, url } = await openTest(t, backend);
    const { id } = await first.events.publish(Said, { n: 1 });
    const use = [listener("l", { on: Said, from: "beginning", run: ({ n }) => void heard.push(n) })];
    const { book } = await openTest(t, backend, { url, use });

    for (const to of [{ event: id }, { time: Date.now() - 1 }]) {
      await assert.rejects(book.listeners.rewind("l", to), { code: "conflict", message: /still catches up: wait/ });
    }
    await book.listeners.rewind("l", "beginning");
    await (await book.startWorker()).idle();

    assert.deepEqual(heard, [1]);
  });
}
