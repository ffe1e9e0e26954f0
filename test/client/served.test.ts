// The client and the server, together.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { connect } from "../../src/client/connect.ts";
import { entity, event, job, type Book, type OpenOptions } from "../../src/index.ts";
import { openServer } from "../support/open-server.ts";
import { backends, type Backend } from "../support/open-test.ts";

const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string(), name: z.string() }),
  run: ({ orderId }) => ({ sentFor: orderId }),
});
const Order = entity("order", { schema: z.object({ id: z.string(), name: z.string(), at: z.number() }), key: "id" });
const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });

type Opened = { readonly book: Book; readonly over: ReturnType<typeof connect>; readonly seen: Request[] };

/** A book, and the same book over HTTP as an operator sees it. */
async function connected(t: TestContext, backend: Backend, options: OpenOptions = {}): Promise<Opened> {
  const { app, book, tokens } = await openServer(t, backend, { use: [sendReceipt, Order], ...options });
  const seen: Request[] = [];
  const fetch = (request: Request): Promise<Response> => {
    seen.push(request);
    return app.fetch(request);
  };
  return { book, over: connect("http://127.0.0.1", { token: tokens.operate, fetch, backoffMs: 1 }), seen };
}

for (const backend of backends) {
  test(`a job is made, waited for and looked at over HTTP as in the library (${backend})`, async (t) => {
    const { book, over } = await connected(t, backend);
    const params = { orderId: "o-17", name: "ada" };

    const made = await over.jobs.enqueue(sendReceipt, params, { key: "o-17", tags: ["a"], at: new Date(0) });
    const worker = await book.startWorker();
    const { sentFor } = await made.result({ timeout: "30s" });
    const { chain: _chain, logs: _logs, ...shown } = await over.jobs.show(made.id);

    assert.equal(sentFor, "o-17");
    assert.deepEqual(shown, JSON.parse(JSON.stringify(await book.jobs.get(made.id))));
    await worker.stop();
  });

  test(`the same idempotency key and params give the same job, whatever request carries them (${backend})`, async (t) => {
    const { book, over } = await connected(t, backend);

    const options = { idempotencyKey: "this one é" };
    const params = { orderId: "o-17", name: "ada" };

    const one = await over.jobs.enqueue(sendReceipt, params, options);
    const same = await over.jobs.enqueue(sendReceipt, params, options);
    const inLibrary = await book.jobs.enqueue(sendReceipt, params, options);
    const other = over.jobs.enqueue(sendReceipt, { ...params, name: "bob" }, options);

    await assert.rejects(other, { code: "conflict" });
    assert.deepEqual([same.id, inLibrary.id, (await book.jobs.list()).items.length], [one.id, one.id, 1]);
  });

  test(`pages, records, events and what is refused are those of the library (${backend})`, async (t) => {
    const { book, over } = await connected(t, backend);
    for (let index = 0; index < 5; index++) await over.jobs.enqueue("later", { index });

    const listed: unknown[] = [];
    for await (const each of over.jobs.list({ limit: 2, since: 0 })) listed.push(each);
    const document = { id: "o-17", name: "an order", at: 5 };
    const put = await over.records.put(Order, document, { actor: "ada" });
    const entry = await over.records.show(Order, "o-17");
    const published = await over.events.publish(OrderPaid, { orderId: "o-17" }, { headers: { version: "2" } });

    assert.deepEqual(listed, JSON.parse(JSON.stringify((await book.jobs.list()).items)));
    assert.deepEqual([put.revision, entry.value], [1, document]);
    assert.equal((await book.events.get(published.id)).headers["version"], "2");
    await assert.rejects(over.jobs.show("019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e"), { code: "not_found" });
    await assert.rejects(over.records.put(Order, document, { ifRevision: 7 }), { code: "conflict" });
    await assert.rejects(over.info(), { code: "forbidden" });
  });
}
