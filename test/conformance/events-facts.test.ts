// What facts, sinks and listeners promise to those who hear the engine: an order, a choice, and nothing left behind.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import {
  entity,
  event,
  job,
  listener,
  manualClock,
  sink,
  where,
  type Book,
  type CloudEvent,
  type JobEndedPayload,
} from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, openTest } from "../support/open-test.ts";

const Paid = event<{ orderId: string; total: number }>("order.paid");

const workAll = async (book: Book): Promise<void> => {
  const worker = await book.startWorker({ concurrency: 1 });
  await worker.idle();
  await worker.stop();
};

for (const backend of backends) {
  describe(backend, () => {
    test("the facts of a job have the first job of its chain as their key, so a sink gets them in order", async (t) => {
      const clock = manualClock();
      const messages: CloudEvent[] = [];
      const fail = job("fail", { attempts: 3, backoff: ["1s"], run: () => Promise.reject(new Error("no")) });
      const broken = { yes: true };
      const out = sink("out", {
        on: "job.*",
        backoff: ["10s"],
        to(message) {
          if (broken.yes) throw new Error("they are closed");
          messages.push(message);
        },
      });
      const { book } = await openTest(t, backend, { clock, use: [fail, out] });

      const { id } = await book.jobs.enqueue(fail, {});
      const other = await book.jobs.enqueue(fail, {}, { attempts: 1 });
      for (let tries = 0; tries < 3; tries++) {
        await workAll(book);
        await clock.advance(1000);
      }
      broken.yes = false;
      for (let tries = 0; tries < 3; tries++) {
        await clock.advance(10_000);
        await workAll(book);
      }

      const of = (key: string): number[] =>
        messages.filter(({ subject }) => subject === key).map(({ data }) => (data as JobEndedPayload).attempt);
      assert.deepEqual([of(id), of(other.id)], [[1, 2, 3], [1]]);
    });

    test("a listener hears the changes of one record in their order", async (t) => {
      const Lamp = entity("lamp", { schema: z.object({ id: z.string(), level: z.number() }), key: "id" });
      const heard: [string | null, number][] = [];
      const hear = listener("hear", {
        on: event<{ value: { level: number } }>("record.lamp.updated"),
        ordered: true,
        run: ({ value }, { event: { key } }) => void heard.push([key, value.level]),
      });
      const { book } = await openTest(t, backend, { use: [Lamp, hear] });

      for (const level of [0, 1, 2]) await book.records.put(Lamp, { id: "hall", level });
      await workAll(book);

      assert.deepEqual(heard, [
        ["lamp:hall", 1],
        ["lamp:hall", 2],
      ]);
    });

    test("a sink takes what its predicate says, and what it does not take is no part of the outbox", async (t) => {
      const taken: unknown[] = [];
      const dear = sink("dear", {
        on: Paid,
        where: [where.above("total", 100), ({ orderId }) => orderId !== "o-3"],
        to: ({ data }) => void taken.push(data),
      });
      const { book } = await openTest(t, backend, { use: [dear], views: true });

      const small = await book.events.publish(Paid, { orderId: "o-1", total: 5 }, { key: "ada" });
      await book.events.publish(Paid, { orderId: "o-2", total: 500 }, { key: "ada" });
      await book.events.publish(Paid, { orderId: "o-3", total: 700 }, { key: "ada" });
      await workAll(book);

      assert.deepEqual(taken, [{ orderId: "o-2", total: 500 }]);
      assert.deepEqual((await book.events.get(small.id)).deliveries[0]?.status, "skipped");
      const out = await book.read((tx) => tx.sql<{ payload: string }>`select event_payload as payload from outbox`);
      assert.deepEqual(
        out.map(({ payload }) => JSON.parse(payload) as unknown),
        [{ orderId: "o-2", total: 500 }],
      );
      assert.match((await book.sinks.get("dear")).where ?? "", /^total > 100 and .*orderId/);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a sink's predicate that fails makes a dead letter, and one that needs the event before is refused", async (t) => {
      const odd = sink("odd", {
        on: "a.b",
        attempts: 1,
        where: () => {
          throw new Error("no such field");
        },
        to: () => undefined,
      });
      const { book } = await openTest(t, backend, { use: [odd] });

      await book.events.publish("a.b", {});
      await workAll(book);

      assert.equal((await book.deadLetters.list()).items[0]?.error.message, "no such field");
      const comparing = where.not(where.any(where.changed("price"), where.exists("id")));
      assert.throws(() => sink("new", { on: "a.b", where: comparing, to: () => undefined }), /by the one before it/);
    });

    test("a listener that a process without workers lists hears what is published before the first worker", async (t) => {
      const heard: unknown[] = [];
      const hear = listener("hear", { on: "a.b", run: (payload) => void heard.push(payload) });
      const { book: front, url } = await openTest(t, backend, { use: [hear], worker: false });

      await front.events.publish("a.b", { n: 1 });
      const { book } = await openTest(t, backend, { url, use: [hear] });
      await workAll(book);

      assert.deepEqual(heard, [{ n: 1 }]);
    });

    test("what waits for a listener leaves with it, and keeps no event in the book", async (t) => {
      const clock = manualClock();
      const hear = listener("hear", { on: "a.*", tenants: "all", run: () => undefined });
      const late = listener("late", { on: "a.*", from: "beginning", run: () => undefined });
      const { book, url } = await openTest(t, backend, { clock, use: [hear] });
      const acme = book.tenant("acme");
      for (const each of [book, book, acme]) await each.events.publish("a.b", {});
      const { book: other } = await openTest(t, backend, { url, clock, use: [late] });

      assert.deepEqual(await other.listeners.remove("late"), { cancelled: 0 });
      assert.deepEqual(await book.listeners.remove("hear", { tenants: "all" }), { cancelled: 3 });
      await book.events.publish("a.c", {});
      await clock.advance(60_000);

      const open = await book.read((tx) => tx.sql`select kind from daybook_line`);
      assert.deepEqual(open, []);
      assert.equal((await book.retain({ events: "1s", apply: true })).kept.unfinished, 0);
    });

    test("a listener that was removed while it ran can be skipped, and nothing of it waits", async (t) => {
      const gate = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const hear = listener("hear", {
        on: "a.b",
        backoff: ["1h"],
        async run() {
          begun.resolve();
          await gate.promise;
          throw new Error("no");
        },
      });
      const { book } = await openTest(t, backend, { use: [hear] });
      await book.events.publish("a.b", {});
      const worker = await book.startWorker();
      await begun.promise;

      assert.deepEqual(await book.listeners.remove("hear"), { cancelled: 0 });
      gate.resolve();
      await worker.idle();

      assert.deepEqual(await book.listeners.skip("hear"), { skipped: 0 });
      await assert.rejects(book.listeners.skip("gone"), /there is no listener "gone"/);
    });

    test("an id stands for one event: another topic or payload under it is a conflict", async (t) => {
      const { book } = await openTest(t, backend);
      await book.events.publish("a.b", { b: 1, a: [2] }, { id: "mine", dedupeKey: "k" });

      const again = await book.events.publish("a.b", { a: [2], b: 1 }, { id: "mine" });
      const others = [
        () => book.events.publish("a.b", { a: [3], b: 1 }, { id: "mine" }),
        () => book.events.publish("a.c", { a: [2], b: 1 }, { id: "mine" }),
        () => book.write((tx) => tx.events.publish("a.b", null, { id: "mine" })),
      ];

      assert.deepEqual([again.created, again.id], [false, "mine"]);
      for (const publish of others) await assert.rejects(publish, { code: "conflict", message: /mine is in the book/ });
      // A dedupe key says that something of its kind was said already, whatever it was.
      assert.equal((await book.events.publish("a.c", null, { dedupeKey: "k" })).id, "mine");
      assert.equal((await book.events.list()).items.length, 1);
    });

    test("a replay leaves replays out unless they are asked for", async (t) => {
      const { book } = await openTest(t, backend);
      for (const n of [1, 2]) await book.events.publish("a.b", { n });

      const counts: number[] = [];
      for (const dryRun of [true, false, true, false, true]) {
        counts.push((await book.events.replay({}, { dryRun })).count);
      }
      const all = await book.events.replay({ topic: "a.*", replays: true }, { dryRun: true });

      assert.deepEqual(counts, [2, 2, 2, 2, 2]);
      assert.equal(all.count, 6);
      const [newest] = (await book.events.list({ limit: 1 })).items;
      assert.equal((await book.events.replay(newest?.id ?? "")).events.length, 1);
    });

    test("a replay of too many events is counted, refused, and publishes nothing", async (t) => {
      const { book } = await openTest(t, backend);
      const { id } = await book.events.publish("a.b", null);
      await roomsOf(book).store.write((tx) =>
        tx.run(sql`insert into daybook_event (tenant_id, id, topic, payload, priority, published_at, available_at,
            root_event_id, chain_depth, deliveries)
          with recursive copy (n) as (select 1 union all select n + 1 from copy where n < 10000)
          select tenant_id, 'copy ' || n, topic, payload, priority, published_at, available_at, 'copy ' || n, 0, 0
          from copy cross join daybook_event event where event.id = ${id}`),
      );

      assert.equal((await book.events.replay({ topic: "a.*" }, { dryRun: true })).count, 10_001);
      await assert.rejects(book.events.replay({ topic: "a.*" }), { code: "invalid", message: /^10001 events/ });

      assert.equal((await book.events.replay({ replays: true }, { dryRun: true })).count, 10_001);
      await assert.rejects(book.events.replay({}, { dryRun: "no" } as never), { code: "invalid" });
    });

    test("the timer of a call that was cancelled before it was sent is not scheduled any more", async (t) => {
      const { book } = await openTest(t, backend, { views: true, worker: false });
      const { id } = await book.calls.submit({ method: "GET", url: "https://example.com", in: "1h" });
      const kept = await book.calls.submit({ method: "GET", url: "https://example.com", in: "1h" });
      await book.calls.cancel(id);

      const timers = await book.read((tx) => tx.sql`select service_call_id as id, state from timer_schedules`);

      assert.deepEqual(
        new Map(timers.map((each) => [each["id"], each["state"]])),
        new Map([
          [id, "Cancelled"],
          [kept.id, "Scheduled"],
        ]),
      );
    });
  });
}
