// What the compiler knows of the client, from the same definitions and verbs as the library.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { connect } from "../../src/client/connect.ts";
import { entity, event, job, type Enqueued, type JobRecord } from "../../src/index.ts";

const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string() }),
  run: ({ orderId }) => ({ sentFor: orderId }),
});
const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
const Order = entity("order", { schema: z.object({ id: z.string(), total: z.number() }), key: "id" });

test("the compiler knows params, results, fields and answers of every call", () => {
  const book = connect("http://127.0.0.1:1");
  const calls = {
    enqueue: async () => {
      const made = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { key: "o-17", at: new Date(0) });
      const { sentFor }: { sentFor: string } = await made.result({ timeout: "30s" });
      const named = await book.jobs.enqueue<typeof sendReceipt>("send-receipt", { orderId: sentFor });
      const same: { sentFor: string } = await book.jobs.result(named);
      // @ts-expect-error the result is not a number
      const wrong: number = await named.result();
      const any: Enqueued = await book.jobs.enqueue("other", { anything: 1 }, { keyScope: { window: 1000 } });
      // @ts-expect-error the order is missing
      await book.jobs.enqueue(sendReceipt, {});
      // @ts-expect-error an order is a text
      await book.jobs.enqueue<typeof sendReceipt>("send-receipt", { orderId: 1 });
      // @ts-expect-error there is no such option
      await book.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { colour: "red" });
      return [same, any, wrong];
    },
    list: async () => {
      const { items, next } = await book.jobs.list({ status: ["failed"], since: 1, until: new Date(0) });
      const first: JobRecord | undefined = items[0];
      const created: number | undefined = first?.createdAt;
      const cursor: string | null = next;
      for await (const each of book.jobs.list()) await book.jobs.cancel(each.id, {}, { idempotencyKey: "k" });
      // @ts-expect-error there is no such status
      await book.jobs.list({ status: ["asleep"] });
      // @ts-expect-error an id is needed
      await book.jobs.cancel();
      return [created, cursor];
    },
    others: async () => {
      await book.jobs.move("id", { before: "other" });
      await book.jobs.prioritise("id", 7);
      await book.events.publish(OrderPaid, { orderId: "o-17" }, { in: 1000 });
      await book.records.put(Order, { id: "o-17", total: 40 }, { actor: "ada" });
      await book.records.show("order", "o-17");
      await book.records.show(Order, ["o-17"], { asOf: "16" });
      await book.records.unlink("placed", { from: "ada", to: "o-17" });
      await book.tenant("acme").queues.pause("mail", { note: "a test" });
      const metrics: string = await book.metrics();
      for await (const { topic } of book.events.tail({ topic: "order.*" })) assert.equal(typeof topic, "string");
      // @ts-expect-error an order is a text
      await book.events.publish(OrderPaid, { orderId: 1 });
      // @ts-expect-error the total is missing
      await book.records.put(Order, { id: "o-17" });
      // @ts-expect-error only the command line writes files
      const backup: unknown = book.backup;
      return [metrics, backup];
    },
  };

  assert.equal(Object.keys(calls).length, 3);
});
