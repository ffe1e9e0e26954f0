// Idempotency-Key: a request that is sent twice takes effect once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { DaybookError, entity } from "../../src/index.ts";
import { keptReply } from "../../src/server/kept-reply.ts";
import { backends } from "../support/open-test.ts";
import { openServer } from "../support/open-server.ts";

const Order = entity("order", { schema: z.object({ id: z.string() }), key: "id" });

for (const backend of backends) {
  test(`the same key in parallel has one effect, and each caller is told of it or to ask again (${backend})`, async (t) => {
    const { ask, book } = await openServer(t, backend);
    const once = (): Promise<Response> =>
      ask("POST", "/events", { body: { topic: "order.paid" }, headers: { "idempotency-key": "k-1" } });

    const answers = await Promise.all(Array.from({ length: 20 }, once));
    const again = await once();

    assert.equal((await book.events.list()).items.length, 1);
    for (const { status, headers } of answers) {
      assert.ok(status === 200 || (status === 409 && headers.get("retry-after") === "1"), String(status));
    }
    assert.equal(again.status, 200);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
  });

  test(`a kept reply is the same to the byte, and its key is refused for another request (${backend})`, async (t) => {
    const { ask, tokens, token } = await openServer(t, backend);
    const headers = { "idempotency-key": "k-1" };
    const body = { topic: "order.paid" };
    const first = await ask("POST", "/events", { body, headers });
    const text = await first.text();

    const same = await ask("POST", "/events", { body, headers });
    const otherBody = await ask("POST", "/events", { body: { topic: "order.sent" }, headers });
    const otherRoute = await ask("POST", "/jobs", { body: { name: "x" }, headers });
    const otherToken = await ask("POST", "/events", { body, headers, token: tokens.admin });
    const otherTenant = await ask("POST", "/events", {
      body,
      headers,
      token: await token({ role: "operate", tenant: "acme" }),
    });

    assert.equal(await same.text(), text);
    assert.equal(otherBody.status, 409);
    assert.equal(otherRoute.status, 409);
    assert.equal(otherToken.headers.get("idempotency-replayed"), null);
    assert.equal(otherTenant.headers.get("idempotency-replayed"), null);
  });

  test(`a key of a change at one revision is refused for the same change at another (${backend})`, async (t) => {
    const { ask } = await openServer(t, backend, { use: [Order] });
    const put = (headers: Record<string, string>): Promise<Response> =>
      ask("PUT", "/records/order", { body: { document: { id: "o-1" } }, headers });
    await put({});

    const first = await put({ "idempotency-key": "k", "if-match": '"7"' });
    const other = await put({ "idempotency-key": "k", "if-match": '"1"' });

    assert.match(await first.text(), /revision/);
    assert.match(await other.text(), /was used for another request/);
  });

  test(`a refusal is kept like any other reply (${backend})`, async (t) => {
    const { ask, json } = await openServer(t, backend);
    const { id } = await json<{ id: string }>("POST", "/jobs", { body: { name: "x" } });
    await json("POST", `/jobs/${id}/cancel`);
    const again = (): Promise<Response> => ask("POST", `/jobs/${id}/cancel`, { headers: { "idempotency-key": "k" } });

    const first = await again();
    const second = await again();

    assert.equal(first.status, 409);
    assert.equal(await second.text(), await first.text());
    assert.equal(second.headers.get("idempotency-replayed"), "true");
  });
}

test("what was done is said to its caller also if its reply cannot be kept", async () => {
  const refuse = async (): Promise<never> => Promise.reject(new DaybookError("busy", "held"));
  const replies = { begin: async () => ({ state: "fresh", id: "r" }) as const, finish: refuse, drop: refuse };
  const caller = { tokenId: "t", name: "t", tenant: null, role: "admin", queues: null, names: null } as const;
  const reply = { status: 200, headers: {}, body: '{"id":"j-1"}' };

  const said = await keptReply(
    { replies },
    { key: "k", caller, tenant: "default", route: "POST /jobs", body: "{}" },
    async () => reply,
  );

  assert.equal(said, reply);
});
