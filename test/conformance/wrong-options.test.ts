// A wrong value where options or a filter belong is refused. It has none of them, so it would mean that nothing was asked for:
// everything is replayed, everything is discarded, a queue has no limit.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { entity, event, job, listener, open, type Book } from "../../src/index.ts";
import { backends, bookUrl, openTest } from "../support/open-test.ts";

const pay = job("pay", { run: () => undefined });
const paid = event("order.paid");
const bill = listener("bill", {
  on: paid,
  attempts: 1,
  run: () => {
    throw new Error("there is no printer");
  },
});
const Note = entity("note", { schema: z.object({ id: z.string() }), key: "id" });

class Options {
  get dryRun(): boolean {
    return true;
  }
}

const wrong: Readonly<Record<string, () => unknown>> = {
  "a promise": () => Promise.resolve({ topic: "order.refused" }),
  "a Map": () => new Map([["topic", "order.refused"]]),
  "an array": () => ["order.refused"],
  "a class instance": () => new Options(),
  "a Date": () => new Date(0),
  "a function": () => () => "order.refused",
  "a number": () => 7,
  "a bigint": () => 7n,
  "a symbol": () => Symbol("topic"),
  null: () => null,
};

const verbs: Readonly<Record<string, (book: Book, wrong: never) => Promise<unknown>>> = {
  "jobs.enqueue": (book, options) => book.jobs.enqueue(pay, {}, options),
  "jobs.list": (book, filter) => book.jobs.list(filter),
  "jobs.recover": (book, options) => book.jobs.recover(options),
  "groups.list": (book, filter) => book.groups.list(filter),
  "queues.limit": (book, to) => book.queues.limit("mail", to),
  "queues.normalise": (book, options) => book.queues.normalise("mail", options),
  "templates.create": (book, options) => book.templates.create("monthly", options),
  "templates.list": (book, filter) => book.templates.list(filter),
  "schedules.create": (book, options) => book.schedules.create("nightly", options),
  "schedules.edit": (book, changes) => book.schedules.edit("hourly", changes),
  "schedules.preview": (book, edit) => book.schedules.preview("hourly", { edit }),
  "events.publish": (book, options) => book.events.publish(paid, {}, options),
  "events.list": (book, filter) => book.events.list(filter),
  "events.replay": (book, filter) => book.events.replay(filter),
  "events.replay with options": (book, options) => book.events.replay({}, options),
  "listeners.rewind": (book, to) => book.listeners.rewind("bill", to),
  "listeners.skip": (book, to) => book.listeners.skip("bill", to),
  "listeners.remove": (book, options) => book.listeners.remove("bill", options),
  "deadLetters.list": (book, filter) => book.deadLetters.list(filter),
  "deadLetters.redriveAll": (book, filter) => book.deadLetters.redriveAll(filter),
  "deadLetters.redriveAll with options": (book, options) => book.deadLetters.redriveAll({}, options),
  "deadLetters.discardAll": (book, filter) => book.deadLetters.discardAll(filter, "too old"),
  "deadLetters.discardAll with options": (book, options) => book.deadLetters.discardAll({}, "too old", options),
  "calls.list": (book, filter) => book.calls.list(filter),
  "runs.list": (book, filter) => book.runs.list(filter),
  "telemetry.overview": (book, options) => book.telemetry.overview(options),
  retain: (book, options) => book.retain(options),
  "retain with a rule": (book, rule) => book.retain({ jobs: [rule], apply: true }),
  "telemetry.evictions": (book, options) => book.telemetry.evictions(options),
  "sessions.list": (book, options) => book.sessions.list(options),
  "records.delete": (book, options) => book.records.delete(Note, "kept", options),
  "records.commits": (book, filter) => book.records.commits(filter),
  "records.changes": (book, options) => book.records.changes(1, options),
};

for (const backend of backends) {
  describe(backend, () => {
    test("whatever is no plain object is refused as options or as a filter, and nothing is done", async (t) => {
      const { book } = await openTest(t, backend, { use: [pay, paid, bill, Note] });
      await book.events.publish(paid, {});
      const worker = await book.startWorker();
      await worker.idle();
      await worker.stop();
      await book.schedules.create("hourly", { every: "1h", job: pay });
      await book.records.put(Note, { id: "kept" });
      const state = async (): Promise<unknown> => [
        (await book.events.list()).items.map(({ id }) => id),
        (await book.deadLetters.list()).items.map(({ id, status }) => [id, status]),
        (await book.jobs.list()).items.map(({ id, status }) => [id, status]),
        (await book.listeners.get("bill")).state,
        await book.records.find(Note, "kept"),
      ];
      const before = await state();
      assert.equal((await book.deadLetters.list()).items.length, 1);

      for (const [verb, call] of Object.entries(verbs)) {
        for (const [name, make] of Object.entries(wrong)) {
          // Some are refused at once, by whoever reads them first.
          await assert.rejects(async () => call(book, make() as never), { code: "invalid" }, `${verb}: ${name}`);
        }
      }

      assert.deepEqual(await state(), before);
    });

    test("open refuses options that are no plain object", async (t) => {
      const url = await bookUrl(t, backend);

      for (const [name, make] of Object.entries(wrong)) {
        await assert.rejects(async () => open(url, make() as never), { code: "invalid" }, name);
      }
    });

    test("an object without a prototype is as good as any", async (t) => {
      const { book } = await openTest(t, backend, { use: [paid] });
      await book.events.publish(paid, {});
      const filter = Object.assign(Object.create(null) as object, { topic: "order.paid" });

      assert.equal((await book.events.replay(filter, { dryRun: true })).count, 1);
    });
  });
}
