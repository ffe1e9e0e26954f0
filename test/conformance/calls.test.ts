import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inOrder, ok, openCalls, status, target, workAll } from "../calls/target.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a call is sent once, and everything about it is recorded", async (t) => {
      const server = await target(t, (_request, response) => {
        response.writeHead(201, { "content-type": "application/json", "x-request-id": "r-1", "set-cookie": "sid=1" });
        response.end(JSON.stringify({ done: true }));
      });
      const { book, clock } = await openCalls(t, backend);

      const made = await book.calls.submit({
        name: "reserve stock",
        method: "POST",
        url: `${server.url}/reserve?color=red`,
        json: { orderId: "o-17" },
        headers: { "X-Trace": "abc" },
        tags: ["stock", "eu"],
      });
      assert.deepEqual([made.status, made.created, made.dueAt], ["scheduled", true, clock.now()]);
      await workAll(book);

      assert.deepEqual(
        server.received.map(({ method, path, body }) => [method, path, body]),
        [["POST", "/reserve?color=red", '{"orderId":"o-17"}']],
      );
      const headers = server.received[0]?.headers ?? {};
      assert.deepEqual(
        [headers["idempotency-key"], headers["content-type"], headers["x-trace"], headers["user-agent"]],
        [made.id, "application/json", "abc", "daybook"],
      );
      const call = await book.calls.get(made.id, { reveal: true });
      assert.deepEqual(
        [call.status, call.tags, call.outcome?.responseStatus, call.outcome?.attempts, call.jobId],
        ["succeeded", ["eu", "stock"], 201, 1, null],
      );
      assert.equal(call.attempts.length, 1);
      const [attempt] = call.attempts;
      assert.deepEqual(
        [attempt?.response?.said?.body, attempt?.response?.truncated, attempt?.error],
        ['{"done":true}', false, null],
      );
      const { "x-request-id": requestId, "set-cookie": cookie } = attempt?.response?.said?.headers ?? {};
      assert.deepEqual([requestId, cookie], ["r-1", "sid=1"]);
      assert.ok(attempt?.phases.totalMs !== null && attempt?.phases.connectMs !== null);
    });

    test("a call that is due later waits for its time, and one in the past is sent at once", async (t) => {
      const server = await target(t);
      const { book, clock } = await openCalls(t, backend);
      const later = await book.calls.submit({ url: server.url, in: "1h", name: "later" });
      await book.calls.submit({ url: server.url, at: "2020-01-01T00:00:00Z", name: "past" });

      await workAll(book);
      assert.equal(server.received.length, 1);
      assert.equal((await book.calls.get(later.id)).status, "scheduled");
      clock.step(3_600_000);
      await workAll(book);

      assert.equal(server.received.length, 2);
      const { status: state, startedAt, dueAt } = await book.calls.get(later.id);
      assert.deepEqual([state, startedAt], ["succeeded", dueAt]);
    });

    test("an answer that may differ next time is retried with the same key until attempts run out", async (t) => {
      const server = await target(t, inOrder(status(503, { "retry-after": "120" }), status(500), ok));
      const { book, clock } = await openCalls(t, backend);
      const { id } = await book.calls.submit({ url: server.url, retry: ["5s", "5s"] });
      await workAll(book);

      assert.equal((await book.calls.get(id)).status, "running");
      clock.step(60_000);
      await workAll(book);
      assert.equal(server.received.length, 1, "the server asked for two minutes");
      for (const ms of [60_000, 5000]) {
        clock.step(ms);
        await workAll(book);
      }

      const call = await book.calls.get(id);
      assert.deepEqual(
        [call.status, call.attempts.map(({ response }) => response?.status)],
        ["succeeded", [503, 500, 200]],
      );
      assert.deepEqual(new Set(server.received.map(({ headers }) => headers["idempotency-key"])), new Set([id]));
      assert.deepEqual(await book.doctor(), []);
    });

    test("a permanent refusal fails at once, and without retry so does any failure", async (t) => {
      const server = await target(t, inOrder(status(404), status(503), status(302, { location: "/elsewhere" })));
      const { book } = await openCalls(t, backend);
      const [gone, down, moved] = [
        await book.calls.submit({ url: `${server.url}/gone`, retry: "standard" }),
        await book.calls.submit({ url: `${server.url}/down`, in: 0 }),
        await book.calls.submit({ url: `${server.url}/moved`, retry: "standard" }),
      ];
      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      for (const [{ id }, code] of [
        [gone, 404],
        [down, 503],
        [moved, 302],
      ] as const) {
        const call = await book.calls.get(id);
        assert.deepEqual(
          [call.status, call.outcome?.responseStatus, call.outcome?.errorKind],
          ["failed", code, "status"],
        );
      }
      assert.equal(server.received.length, 3);
    });
  });
}
