import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { app, entity, job, listener, manualClock, relation, sink, type Book } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { plansOf, wholeReads } from "../support/explain.ts";
import { backends, openTest } from "../support/open-test.ts";

const Order = entity("order", { schema: z.object({ id: z.string() }), key: "id" });
const Paid = relation("paid", { from: Order, to: Order, schema: z.object({}) });
const work = job("work", {
  attempts: 1,
  run({ fails }: { fails?: boolean }) {
    if (fails === true) throw new RangeError("no room");
  },
});
const deaf = listener("deaf", {
  on: "said.>",
  attempts: 1,
  run() {
    throw new RangeError("deaf");
  },
});
const give = sink("give", { on: "given.>", to: () => undefined });
const house = app("house", { setup: (home) => void home.on("bell", { name: "bell" }, () => undefined) });
const use = [work, deaf, give, house, Order, Paid];

async function kindsOf(book: Book, text: string): Promise<string[]> {
  return (await book.find(text)).items.map(
    ({ kind, id, title, status }) => `${kind} ${id}: ${title}${status === null ? "" : `, ${status}`}`,
  );
}

for (const backend of backends) {
  describe(backend, () => {
    test("an id is what it is the id of, whole or by its beginning", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock() });
      const failed = await book.jobs.enqueue(work, { fails: true });
      const { id: event } = await book.events.publish("said.one", null, { id: "my own" });
      const group = await book.groups.create({ mode: "parallel", name: "both" }, (add) => add.add(work, {}));
      const worker = await book.startWorker();
      await worker.idle();
      await worker.stop();
      const call = await book.calls.submit({ url: "https://stock.example/reserve", method: "POST" });
      const [letter] = (await book.deadLetters.list()).items;
      const { runId } = await book.jobs.get(failed.id);
      const schedule = await book.schedules.create("nightly", { every: "1d", job: work });
      await book.schedules.pause("nightly");

      for (const [id, expected] of [
        [failed.id, `job ${failed.id}: work, failed`],
        [runId ?? "", `run ${runId}: work, error`],
        [event, "event my own: said.one"],
        [group.id, `group ${group.id}: both, completed`],
        [call.id, `call ${call.id}: POST stock.example, scheduled`],
        [letter?.id ?? "", `dead-letter ${letter?.id}: RangeError: deaf, dead`],
        [schedule.id, "schedule nightly: every 1d, paused"],
      ] as const) {
        assert.deepEqual(await kindsOf(book, id), [expected]);
        if (id === event) continue;
        // The last characters tell ids of one millisecond apart.
        assert.ok((await kindsOf(book, id.slice(0, 35))).includes(expected), id);
        assert.ok((await book.find(id.slice(0, 8).toUpperCase())).items.length > 1);
      }
      const [session] = (await book.find(book.sessionId ?? "")).items;
      assert.deepEqual([session?.kind, session?.status], ["session", "running"]);
      assert.deepEqual(await kindsOf(book, failed.id.slice(0, 7)), []);
    });

    test("a name is whatever has that name, and a key and a number are those of records and commits", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock() });
      await (await book.startWorker()).stop();
      await book.templates.create("work", { job: work });
      await book.schedules.create("work", { every: "1d", job: work });
      await book.jobs.enqueue(work, {}, { queue: "work" });
      for (const id of ["o-17", "1"]) await book.records.put(Order, { id }, { reason: `order ${id}` });
      await book.records.put(Order, { id: "gone" });
      await book.records.delete(Order, "gone");

      assert.deepEqual((await kindsOf(book, "work")).toSorted(), [
        "definition work: default",
        "queue work: work",
        "schedule work: every 1d",
        "template work: work",
      ]);
      assert.deepEqual(await kindsOf(book, " deaf "), [`listener deaf: ["said.>"], live`]);
      assert.deepEqual(await kindsOf(book, "give"), [`sink give: ["given.>"], live`]);
      assert.deepEqual(await kindsOf(book, "house"), ["app house: house"]);
      assert.deepEqual(await kindsOf(book, "o-17"), ["record o-17: order"]);
      assert.deepEqual(await kindsOf(book, "gone"), ["record gone: order, deleted"]);
      assert.deepEqual((await kindsOf(book, "1")).toSorted(), ["commit 1: order o-17", "record 1: order"]);
      assert.deepEqual(await kindsOf(book, "o-18"), []);
      assert.equal((await book.find("o-17")).items[0]?.type, "order");
    });

    test("of many that begin alike the newest are told, and that there are more", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      const made = await book.jobs.enqueueMany(
        work,
        Array.from({ length: 30 }, () => ({})),
      );
      const first = made[0]?.id ?? "";

      const { items, more } = await book.find(first.slice(0, 9));
      const exact = await book.find(first);

      assert.deepEqual([items.length, more], [20, true]);
      assert.deepEqual([exact.items.map(({ id }) => id), exact.more], [[first], false]);
    });

    test("what is another tenant's is not found", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock() });
      const { id } = await book.jobs.enqueue(work, {}, { queue: "mine" });
      await book.records.put(Order, { id: "o-17" });
      await (await book.startWorker()).stop();
      const acme = book.tenant("acme");

      for (const text of [id, id.slice(0, 8), "mine", "o-17", "1", "house", book.sessionId ?? ""]) {
        assert.deepEqual(await kindsOf(acme, text), [], text);
      }
      assert.deepEqual(await kindsOf(acme, "work"), ["definition work: default"]);
    });

    test("no text is refused, and a hostile one is only a text", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock() });

      for (const text of ["", "  ", null, 7, ["a"]]) {
        await assert.rejects(book.find(text as never), { code: "invalid", message: /^the text is / });
      }
      for (const text of ["' or 1=1 --", "%", "_".repeat(9), "--------", "0".repeat(500), "zzzzzzzz", "é".repeat(9)]) {
        assert.deepEqual(await kindsOf(book, text), [], text);
      }
    });

    test("it is found by indexes alone", async (t) => {
      const { book, url } = await openTest(t, backend, { use, clock: manualClock() });
      const { store } = roomsOf(book);

      const steps = [
        ...(await plansOf(store, url, () => book.find("019a0000"))),
        ...(await plansOf(store, url, () => book.find("o-17"))),
      ];

      assert.deepEqual(wholeReads(steps), []);
    });
  });
}
