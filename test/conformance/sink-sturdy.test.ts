import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { event, job, listener, sink, type Book, type CloudEvent } from "../../src/index.ts";
import { inOrder, ok, openCalls, status, target, workAll, type Answer, type Target } from "../calls/target.ts";
import { backends } from "../support/open-test.ts";

/** What is still to go out, as the seed's dispatcher asks. */
const waiting = async (book: Book): Promise<number> => {
  const [row] = await book.read(
    (tx) => tx.sql<{ n: number }>`select count(*) as n from outbox where published_at is null`,
  );
  return Number(row?.n);
};

const bodies = (server: Target): CloudEvent[] => server.received.map(({ body }) => JSON.parse(body) as CloudEvent);
const said = (messages: readonly CloudEvent[]): string[] =>
  messages.map(({ subject, data }) => `${subject} ${(data as { n: number }).n}`);

for (const backend of backends) {
  describe(backend, () => {
    test("a dead letter holds back its own key only, until it is redriven or discarded", async (t) => {
      const server = await target(t, inOrder(status(500), status(404), ok));
      const hook = sink("hook", { on: "o.*", attempts: 1, to: { webhook: { url: server.url } } });
      const { book } = await openCalls(t, backend, { views: true, use: [hook] });
      const worker = await book.startWorker({ concurrency: 1 });
      for (const key of ["a", "b", "c"]) await book.events.publish("o.x", { n: 0 }, { key });
      await worker.idle();
      for (const key of ["a", "b", "c"]) await book.events.publish("o.x", { n: 1 }, { key });
      await worker.idle();
      assert.deepEqual(said(bodies(server)), ["a 0", "b 0", "c 0", "c 1"]);
      const { items } = await book.deadLetters.list({ listener: "sink:hook" });
      const letters = new Map(items.map((letter) => [/\d+$/.exec(letter.error.message)?.[0], letter.id]));
      assert.equal(await waiting(book), 4);

      await book.deadLetters.redrive(letters.get("500") ?? "");
      await worker.idle();
      await book.deadLetters.discard(letters.get("404") ?? "", "they know it");
      await worker.idle();

      assert.deepEqual(said(bodies(server)).slice(4), ["a 0", "a 1", "b 1"]);
      assert.equal(await waiting(book), 0, "what was given up is not still to go out");
      const ids = bodies(server).map(({ id }) => id);
      assert.equal(ids[4], ids[0]);
    });

    test("a redriven dead letter whose event the sink takes no more is discarded, and its key goes on", async (t) => {
      const sent: CloudEvent[] = [];
      let isNew = false;
      const own = sink("own", {
        on: "o.*",
        attempts: 1,
        where: (said) => !isNew || (said as { n: number }).n > 0,
        to: (message) => {
          if (!isNew) throw new Error("no");
          sent.push(message);
        },
      });
      const { book } = await openCalls(t, backend, { views: true, use: [own] });
      const { id: event } = await book.events.publish("o.x", { n: 0 }, { key: "a" });
      await workAll(book);
      isNew = true;
      await book.events.publish("o.x", { n: 1 }, { key: "a" });
      const [letter] = (await book.deadLetters.list()).items;

      const { jobId } = await book.deadLetters.redrive(letter?.id ?? "");
      await book.jobs.cancel(jobId);
      assert.equal((await book.deadLetters.get(letter?.id ?? "")).status, "dead");
      await book.deadLetters.redrive(letter?.id ?? "");
      await workAll(book);

      const { status: ended, reason } = await book.deadLetters.get(letter?.id ?? "");
      assert.deepEqual([ended, reason], ["discarded", "its sink does not take this event"]);
      assert.deepEqual(said(sent), ["a 1"]);
      const { status: all, deliveries } = await book.events.get(event);
      assert.deepEqual([all, deliveries[0]?.status, await waiting(book)], ["acked", "skipped", 0]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a paused sink collects; a rewound one sends the same ids in order; after a skip nothing is left to send", async (t) => {
      const sent: CloudEvent[] = [];
      const own = sink("own", { on: "o.*", to: (message) => void sent.push(message) });
      const { book, clock } = await openCalls(t, backend, { views: true, use: [own] });
      for (const n of [0, 1]) await book.events.publish("o.x", { n }, { key: "a" });
      await workAll(book);
      await book.sinks.pause("own", "they move");
      await book.events.publish("o.x", { n: 2 }, { key: "a" });
      await workAll(book);
      const paused = await book.sinks.get("own");
      assert.deepEqual(
        [paused.name, paused.paused?.note, paused.lag.events, paused.lastPublishedAt, sent.length],
        ["own", "they move", 1, clock.now(), 2],
      );
      assert.equal(await waiting(book), 1);

      await book.listeners.skip("sink:own");
      assert.equal(await waiting(book), 0, "what was skipped is not still to go out");
      await book.sinks.resume("own");
      await book.listeners.rewind("sink:own", "beginning");
      await workAll(book);

      assert.deepEqual(said(sent), ["a 0", "a 1", "a 0", "a 1", "a 2"]);
      assert.deepEqual([sent[2]?.id, sent[3]?.id], [sent[0]?.id, sent[1]?.id]);
      await assert.rejects(book.sinks.get("none"), /there is no sink "none"/);
      await assert.rejects(book.sinks.pause("none"), /there is no sink "none"/);
      assert.deepEqual(
        (await book.sinks.list()).map(({ name }) => name),
        ["own"],
      );
    });

    test("a sink of all tenants keeps them apart, also where they chose the same ids, and ids may be any text", async (t) => {
      const server = await target(t);
      const hook = sink("hook", {
        on: "o.*",
        tenants: "all",
        to: { webhook: { url: server.url, secret: "a secret of both sides" } },
      });
      const { book } = await openCalls(t, backend, { views: true, use: [hook] });
      const acme = book.tenant("acme");
      for (const seen of [book, acme]) await seen.events.publish("o.x", { n: 1 }, { id: "é\n1", key: "k" });
      await book.events.publish("o.x", { n: 2 }, { id: "acme/1" });
      await acme.events.publish("o.x", { n: 3 }, { id: "1" });
      await acme.sinks.pause("hook");
      await workAll(book);
      assert.equal(server.received.length, 2, "acme's is paused, and only acme's");
      await acme.sinks.resume("hook");
      await workAll(book);

      assert.deepEqual(
        server.received.map(({ headers }) => String(headers["webhook-id"])).toSorted(),
        ["%C3%A9%0A1", "acme%2F1", "acme/%C3%A9%0A1", "acme/1"].toSorted(),
      );
      assert.deepEqual(
        server.received.map(({ headers }) => headers["idempotency-key"]),
        server.received.map(({ headers }) => headers["webhook-id"]),
      );
      assert.deepEqual(bodies(server).filter(({ source }) => source === "daybook:acme").length, 2);
    });

    test("a sink sends the stored payload, whatever a schema makes of it, however big and deep it is", async (t) => {
      const server = await target(t);
      const Seen = event("o.seen", { schema: z.object({ at: z.coerce.date() }) });
      const hook = sink("hook", { on: [Seen, "o.*"], attempts: 1, to: { webhook: { url: server.url } } });
      const { book } = await openCalls(t, backend, { views: true, use: [hook] });
      let deep: unknown = 1;
      for (let depth = 0; depth < 63; depth++) deep = [deep];
      const big = { text: "x".repeat(1_048_576 - '{"text":""}'.length) };
      const all = [{ at: "2026-01-15T00:00:00Z" }, big, deep];
      await book.events.publish(Seen, { at: "2026-01-15T00:00:00Z" }, { key: "a" });
      for (const payload of [big, deep]) await book.events.publish("o.x", payload, { key: "a" });
      await workAll(book);

      assert.deepEqual((await book.deadLetters.list()).items, []);
      assert.ok(bodies(server).every(({ data }, index) => JSON.stringify(data) === JSON.stringify(all[index])));
      assert.equal(server.received.length, 3);
    });

    test("a receiver that hangs leaves places for other work, and closing the book then loses nothing and counts no attempt", async (t) => {
      const clock = systemClock; // its workers wait for time to pass
      let answer: Answer = () => undefined;
      const server = await target(t, (...args) => answer(...args));
      const hook = sink("hook", { on: "o.*", attempts: 1, to: { webhook: { url: server.url } } });
      const quick = job("quick", { run: () => "done" });
      const { book, url } = await openCalls(t, backend, {
        views: true,
        use: [hook, quick],
        worker: { grace: 0 },
        clock,
      });
      for (let n = 0; n < 12; n++) await book.events.publish("o.x", { n });
      await book.startWorker({ concurrency: 10 });
      await server.until(6);
      const { result } = await book.jobs.enqueue(quick, undefined);
      assert.equal(await result(), "done");
      await book.close();

      answer = ok;
      const { book: next } = await openCalls(t, backend, { views: true, use: [hook, quick], url, clock });
      await workAll(next);
      assert.deepEqual(await next.deadLetters.list().then(({ items }) => items), []);
      assert.equal(await waiting(next), 0);
      assert.equal(new Set(bodies(server).map(({ id }) => id)).size, 12);
    });

    test("a receiver that never answers times out, and the next message of its key follows", async (t) => {
      const server = await target(
        t,
        inOrder(() => undefined, ok),
      );
      const hook = sink("hook", { on: "o.*", timeout: "5s", backoff: ["1s"], to: { webhook: { url: server.url } } });
      const own = sink("own", { on: "o.*", to: () => new Map([[hook, server]]) });
      const { book, clock } = await openCalls(t, backend, { views: true, use: [hook, own] });
      for (const n of [0, 1]) await book.events.publish("o.x", { n }, { key: "a" });
      const worker = await book.startWorker();
      await server.until(1);
      await clock.advance(5000);
      await worker.idle();
      await clock.advance(1000);
      await worker.idle();

      assert.deepEqual(said(bodies(server)), ["a 0", "a 0", "a 1"]);
      const { items } = await book.runs.list({ status: "timed_out" });
      assert.equal(items.length, 1);
      assert.equal((await book.sinks.get("own")).lag.events, 0, "what a function gives back is not kept");
    });

    test("a sink that code no longer lists collects, and two processes that list it send each event once and in order", async (t) => {
      const sent: CloudEvent[] = [];
      const own = sink("own", { on: ["o.*", "call.*"], to: (message) => void sent.push(message) });
      const clock = systemClock; // each process looks now and then for what others did
      const { book, url } = await openCalls(t, backend, { views: true, use: [own], clock });
      await book.close();
      const { book: without } = await openCalls(t, backend, { views: true, url, clock });
      for (let n = 0; n < 20; n++) {
        for (const key of ["a", "b", "c"]) await without.events.publish("o.x", { n }, { key });
      }
      await workAll(without);
      const { lag, hosted } = await without.sinks.get("own");
      assert.deepEqual([lag.events, hosted, sent.length], [60, false, 0]);

      const here = await Promise.all([1, 2].map(() => openCalls(t, backend, { views: true, use: [own], url, clock })));
      const workers = await Promise.all(here.map(({ book: each }) => each.startWorker({ concurrency: 2 })));
      while ((await waiting(without)) > 0) for (const worker of workers) await worker.idle();

      for (const key of ["a", "b", "c"]) {
        const of = sent.filter(({ subject }) => subject === key);
        assert.deepEqual(
          said(of),
          Array.from({ length: 20 }, (_, n) => `${key} ${n}`),
        );
      }
      const { id } = await without.calls.submit({ url: "http://127.0.0.1:1/", in: "1h" });
      await without.calls.cancel(id);
      while ((await waiting(without)) > 0) for (const worker of workers) await worker.idle();
      assert.deepEqual(
        sent.slice(60).map(({ type, subject }) => [type, subject]),
        ["call.submitted", "call.cancelled"].map((type) => [type, id]),
      );
    });
  });
}

test("an invalid sink is refused where it is defined", () => {
  const to = { webhook: { url: "https://example.org/" } };
  assert.throws(() => sink("", { on: "a.b", to }), /sink name "" is empty/);
  assert.throws(
    () => sink("x", { on: "a.b", to: { webhook: { ...to.webhook, secrets: ["a"] } as never } }),
    /"secret"/,
  );
  const both = { ...to, broker: { publish: async () => undefined } };
  assert.throws(() => sink("x", { on: "a.b", to: both }), /goes nowhere: "to" is one of/);
  assert.throws(() => sink("x", { on: "a.b", to, tenant: "all" } as never), /tenants/);
  assert.throws(() => listener("sink:x", { on: "a.b", run: () => undefined }), /define it by sink\(\)/);
});
