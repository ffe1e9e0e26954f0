// What a wrong argument must never mean: everything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { listener, type Book } from "../../src/index.ts";
import { everyVerb } from "../../src/verbs/table.ts";
import { checkInput, type Verb } from "../../src/verbs/verb.ts";
import { backends, openTest } from "../support/open-test.ts";

const verbs = new Map<string, Verb>(await everyVerb());

/** Checks and runs a verb as a way in does. */
async function call(book: Book, key: string, input: unknown): Promise<unknown> {
  const verb = verbs.get(key);
  if (verb === undefined) throw new Error(`there is no verb ${key}`);
  const checked = checkInput(verb, input as Record<string, unknown>);
  return verb.run(book, checked, {
    signal: new AbortController().signal,
    tenant: null,
  });
}

/** What is no input at all. */
const shapeless: readonly unknown[] = [
  ...[undefined, null, 1n, Number.NaN, "order.paid", true, Symbol("order.paid"), () => ({ topic: "order.paid" })],
  ...[[], ["order.paid"], new Map([["topic", "order.paid"]]), Promise.resolve({ topic: "order.paid" }), new Date(0)],
];

/** What is no value of a field that says which. */
const meaningless: readonly unknown[] = [
  ...[undefined, null, "", 0, 1n, Number.NaN, true, Symbol("a"), () => "a"],
  ...[[], {}, ["hear"], { type: "RangeError" }, new Map(), Promise.resolve("hear")],
];

const filters = { replay: ["id", "topic", "since", "until"], letters: ["id", "listener", "topic", "error"] } as const;
const discarding = { reason: "old", apply: true };

function withEach(names: readonly string[], rest: Record<string, unknown> = {}): Record<string, unknown>[] {
  return names.flatMap((name) => meaningless.map((value) => ({ ...rest, [name]: value })));
}

/** What each verb refuses that could touch many. */
const refused: Readonly<Record<string, readonly unknown[]>> = {
  "events.replay": [
    ...shapeless,
    ...withEach(filters.replay),
    ...[{}, { listener: "hear" }, { dryRun: false }, { which: "all" }, { id: "e-1", topic: "order.*" }],
    ...[{ topic: "order..paid" }, { topic: "order.>.x" }, { since: "yesterday" }, { until: "2026-02-30T00:00:00Z" }],
  ],
  "book.retain": [
    ...shapeless,
    ...[{ events: "-1d", apply: true }, { events: "0s", apply: "yes" }, { events: "soon" }, { events: null }],
    ...[{ parts: ["everything"] }, { parts: "events" }, { queue: "mail", apply: true }, { keep: -1 }, { sizeMax: "1" }],
  ],
  "deadLetters.redrive": [
    ...shapeless,
    ...withEach(filters.letters),
    ...[{}, { rate: 1 }, { message: "no room" }, { filter: {} }, { listener: "hear", rate: 0 }],
    ...[{ id: "a", listener: "hear" }, { topic: "order.*" }, { topic: ">" }],
  ],
  "deadLetters.discard": [
    ...shapeless,
    ...withEach(filters.letters, discarding),
    ...[discarding, { ...discarding, message: "no room" }, { ...discarding, id: "a", listener: "hear" }],
    ...[
      { listener: "hear", apply: true },
      { listener: "hear", apply: true, reason: " " },
    ],
    ...[
      { ...discarding, topic: ">" },
      { ...discarding, listener: "hear", apply: "yes" },
    ],
  ],
  "listeners.skip": [
    ...shapeless,
    ...withEach(["to", "time", "event"], { name: "hear" }),
    ...[{ name: "hear" }, { to: "now" }, { name: "hear", to: "beginning" }, { name: "hear", to: "now", event: "e-1" }],
  ],
  "listeners.rewind": [
    ...shapeless,
    ...withEach(["to", "time", "event"], { name: "hear" }),
    ...[{ name: "hear" }, { to: "beginning" }, { name: "hear", to: "now" }, { name: "hear", position: "beginning" }],
  ],
  "listeners.remove": [
    ...shapeless,
    {},
    { allTenants: true },
    { name: "hear", allTenants: "no" },
    { name: "hear", apply: "yes" },
  ],
};

for (const backend of backends) {
  test(`${backend}: a wrong argument is invalid and touches nothing, and never means everything`, async (t) => {
    const { book } = await openTest(t, backend, {
      use: [
        listener("hear", {
          on: "order.*",
          attempts: 1,
          run: () => {
            throw new RangeError("no room");
          },
        }),
      ],
    });
    const worker = await book.startWorker();
    for (const id of ["e-1", "e-2"]) await book.events.publish("order.paid", { id }, { id });
    while ((await book.deadLetters.list()).items.length < 2) await worker.idle();
    await worker.stop();
    await book.listeners.pause("hear");
    await book.events.publish("order.sent", null, { id: "e-3" });
    const before = await stateOf(book);

    for (const [key, inputs] of Object.entries(refused)) {
      for (const input of inputs) await assert.rejects(call(book, key, input), { code: "invalid" }, key);
    }

    assert.deepEqual(await stateOf(book), before);
    assert.deepEqual([before.letters.length, before.waiting, before.state], [2, 1, "live"]);
  });

  test(`${backend}: without --apply, what destroys only counts`, async (t) => {
    const { book } = await openTest(t, backend, { use: [listener("hear", { on: "stock.*", run: () => undefined })] });
    for (const id of ["e-1", "e-2"]) await book.events.publish("order.paid", null, { id });

    for (const [key, verb] of verbs) {
      if (verb.destroys !== undefined) assert.equal(verb.input["apply"]?.maybe, true, key);
    }
    const would = await call(book, "book.retain", { events: "0s" });
    const none = await call(book, "deadLetters.discard", { listener: "hear" });
    const listed = await call(book, "listeners.remove", { name: "hear" });
    const { id } = await book.calls.submit({ url: "https://stock.example/reserve" });
    const open = await call(book, "calls.delete", { id });
    await book.calls.cancel(id);
    const ended = await call(book, "calls.delete", { id });

    assert.equal((would as { dryRun: boolean }).dryRun, true);
    assert.deepEqual(none, { dryRun: true, count: 0 });
    assert.deepEqual(listed, { name: "hear", dryRun: true, removed: false, waiting: 0 });
    assert.deepEqual(
      [open, ended],
      [
        { id, dryRun: true, count: 0 },
        { id, dryRun: true, count: 1 },
      ],
    );
    assert.equal((await book.events.list()).items.length, 2);
    assert.equal((await book.listeners.get("hear")).state, "live");
    assert.equal((await book.calls.get(id)).status, "cancelled");
  });
}

async function stateOf(book: Book): Promise<{ events: unknown[]; letters: unknown[]; waiting: number; state: string }> {
  const { state, lag } = await book.listeners.get("hear");
  return {
    events: (await book.events.list()).items.map(({ id, deliveries }) => [id, deliveries]),
    letters: (await book.deadLetters.list()).items.map(({ id, status }) => [id, status]),
    waiting: lag.events,
    state,
  };
}
