import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sink, type Book, type CloudEvent } from "../../src/index.ts";
import { inOrder, ok, openCalls, status, target, workAll } from "../calls/target.ts";
import { backends } from "../support/open-test.ts";

const outbox = (book: Book): Promise<{ aggregate_id: string; event_type: string; out: number; sink: string }[]> =>
  book.read(
    (tx) => tx.sql`select aggregate_id, event_type, case when published_at is null then 0 else 1 end as out, sink
      from outbox order by id, sink`,
  );

for (const backend of backends) {
  describe(backend, () => {
    test("a webhook gets each event in the order of its key, signed, and the same id when it is sent again", async (t) => {
      const server = await target(t, inOrder(status(503), ok));
      const warehouse = sink("warehouse", {
        on: "order.>",
        backoff: ["1s"],
        to: {
          webhook: { url: server.url, secret: "a secret of both sides", headers: { authorization: "Bearer abc123" } },
        },
      });
      const { book, clock } = await openCalls(t, backend, { views: true, use: [warehouse] });
      const ids: string[] = [];
      for (const topic of ["order.made", "order.paid", "order.sent"]) {
        ids.push((await book.events.publish(topic, { n: ids.length }, { key: "o-17" })).id);
      }
      await workAll(book);
      assert.equal(server.received.length, 1, "what comes after waits for the one that failed");
      assert.deepEqual(
        (await outbox(book)).map(({ out }) => Number(out)),
        [0, 0, 0],
      );
      clock.step(1000);
      await workAll(book);

      const messages = server.received.map(({ body }) => JSON.parse(body) as CloudEvent);
      assert.deepEqual(
        messages.map(({ id }) => id),
        [ids[0], ...ids],
      );
      const { time: _time, ...message } = messages[1] as CloudEvent;
      assert.deepEqual(message, {
        specversion: "1.0",
        id: ids[0],
        source: "daybook:default",
        type: "order.made",
        subject: "o-17",
        datacontenttype: "application/json",
        data: { n: 0 },
      });
      const headers = server.received[0]?.headers ?? {};
      assert.deepEqual(
        [headers["webhook-id"], headers["content-type"], headers["authorization"]],
        [ids[0], "application/cloudevents+json", "Bearer abc123"],
      );
      assert.match(String(headers["webhook-signature"]), /^v1,/);
      assert.deepEqual(
        (await outbox(book)).map((row) => [row.aggregate_id, row.event_type, Number(row.out), row.sink]),
        ["order.made", "order.paid", "order.sent"].map((topic) => ["o-17", topic, 1, "warehouse"]),
      );
    });

    test("a sink may reach what calls may reach, and a message that it cannot deliver becomes a dead letter", async (t) => {
      const server = await target(t);
      const to = { webhook: { url: `http://localhost:${server.port}/` } };
      const blocked = sink("blocked", { on: "a.b", attempts: 1, to });
      const { book } = await openCalls(t, backend, { views: true, use: [blocked], calls: { allow: [] } });
      await book.events.publish("a.b", {});
      await workAll(book);

      const { items } = await book.deadLetters.list();
      assert.equal(server.received.length, 0);
      assert.match(items[0]?.error?.message ?? "", /the destination is not allowed$/);
    });

    test("a function and a broker are given the message, each event at least once", async (t) => {
      const [called, sent]: [CloudEvent[], unknown[]] = [[], []];
      const own = sink("own", { on: "a.*", to: (message) => void called.push(message) });
      const broker = sink("broker", {
        on: "a.*",
        to: { broker: { publish: async (message, { tenant }) => void sent.push([message.id, tenant]) } },
      });
      const { book } = await openCalls(t, backend, { views: true, use: [own, broker] });
      const { id } = await book.events.publish("a.b", { n: 1 });
      await workAll(book);

      assert.deepEqual([called.map((message) => message.data), sent], [[{ n: 1 }], [[id, "default"]]]);
      assert.throws(() => sink("nowhere", { on: "a.b", to: {} as never }), /goes nowhere/);
      assert.throws(() => sink("bad", { on: "a.b", to: { webhook: { url: "ftp://x/" } } }), /by http and https/);
    });
  });
}
