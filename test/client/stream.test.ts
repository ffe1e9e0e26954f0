import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect } from "../../src/client/connect.ts";
import { eventsOf, linesOf, type ServerSent } from "../../src/client/read-events.ts";
import { events, problem, stub } from "./stub.ts";

function bodyOf(...parts: readonly (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return ReadableStream.from(parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part)));
}

test("events are read however they are cut into parts and whatever ends their lines", async () => {
  const text =
    '\uFEFF: hello\r\nretry: 7\r\nid: 1\nevent: job.done\r\ndata: {"a":\r\ndata:"ä"}\r\n\r\ndata\n\nevent: x\n\nid: 2\rdata: z\r\r';
  const bytes = new TextEncoder().encode(text);

  for (const size of [1, 2, 3, 5, 1000]) {
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.slice(at * size, (at + 1) * size),
    );
    const found: ServerSent[] = [];
    for await (const each of eventsOf(bodyOf(...parts, "\n"))) found.push(each);

    assert.deepEqual(found, [
      { name: "job.done", data: '{"a":\n"ä"}', id: "1", retryMs: 7 },
      { name: "message", data: "", id: "1", retryMs: 7 },
      { name: "message", data: "z", id: "2", retryMs: 7 },
    ]);
  }
});

test("an event that was cut off is not told, and the last line of a text is", async () => {
  const found: string[] = [];
  for await (const { data } of eventsOf(bodyOf("data: 1\n\ndata: 2\n"))) found.push(data);
  for await (const line of linesOf(bodyOf("a\nb"), { last: true })) found.push(line);

  assert.deepEqual(found, ["1", "a", "b"]);
});

test("the live stream goes on where it broke off, also after a server that was away", async (t) => {
  const fact = (id: number): string => `id: ${id}\nevent: job.completed\ndata: {"n":${id}}\n\n`;
  const { url, seen } = await stub(
    t,
    events(`retry: 1\n\n${fact(1)}${fact(2)}id: 3\nevent: job.comp`, "broken"),
    problem(503, "closed", { "retry-after": "0" }),
    (response) => response.destroy(),
    events(`${fact(3)}event: slow\ndata: {}\n\n${fact(9)}`, "open"),
    events(fact(4), "open"),
  );

  const facts: unknown[] = [];
  for await (const each of connect(url, { backoffMs: 1 }).stream({
    topics: ["job.completed", "call.failed"],
    after: "0",
  })) {
    facts.push(each);
    if (facts.length === 4) break;
  }

  assert.deepEqual(
    facts,
    [1, 2, 3, 4].map((n) => ({ name: "job.completed", id: String(n), data: { n } })),
  );
  assert.equal(seen[0]?.line, "GET /api/v1/stream?topic=job.completed&topic=call.failed");
  assert.deepEqual(
    seen.map(({ headers }) => headers["last-event-id"]),
    ["0", "2", "2", "2", "3"],
  );
});

test("a connection on which nothing is heard for a minute is dead, and is taken up anew", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const listening = Promise.withResolvers<void>();
  const silent = new ReadableStream({ pull: () => listening.resolve() }, { highWaterMark: 0 });
  const bodies = [silent, bodyOf("data: 1\n\n")];
  const fetch = async (): Promise<Response> => new Response(bodies.shift() ?? null);

  const heard = connect("http://127.0.0.1:1", { fetch }).stream().next();
  await listening.promise;
  t.mock.timers.tick(59_999);
  await nextTurn();
  assert.equal(bodies.length, 1);
  for (let seconds = 0; seconds < 10; seconds++, await nextTurn()) t.mock.timers.tick(1000);

  assert.equal(bodies.length, 0);
  assert.deepEqual(await heard, { done: false, value: { name: "message", id: null, data: 1 } });
});

test("the live stream ends with the error of a token that was revoked, and quietly by its signal", async (t) => {
  const revoked = await stub(t, events("retry: 1\n\n", "ended"), problem(401, "unauthorized"));
  const open = await stub(t, events("data: 1\n\n", "open"));
  const over = new AbortController();

  const heard = async (): Promise<unknown> => {
    for await (const each of connect(revoked.url, { backoffMs: 1 }).stream()) return each;
    return undefined;
  };
  await assert.rejects(heard(), { code: "unauthorized" });
  const facts: unknown[] = [];
  for await (const each of connect(open.url).stream({ signal: over.signal })) {
    facts.push(each);
    over.abort();
  }

  assert.deepEqual(facts, [{ name: "message", id: null, data: 1 }]);
});

test("a server that never was there is an error, and facts that were missed are told", async (t) => {
  const gone = await stub(t, (response) => response.destroy());
  const reset = await stub(t, events("event: reset\nid: 9\ndata: {}\n\n", "open"));

  await assert.rejects(connect(gone.url, { backoffMs: 1, attempts: 2 }).stream().next(), { code: "unavailable" });
  const first = await connect(reset.url).stream({ after: "1" }).next();

  assert.deepEqual(first, { done: false, value: { name: "reset", id: "9", data: {} } });
});

test("a verb that streams gives its items with their times until it ends, and says so when it fails or breaks off", async (t) => {
  const item = `event: item\ndata: {"id":"e-1","topic":"a","publishedAt":"1970-01-01T00:00:00.005Z"}\n\n`;
  const problem = JSON.stringify({ code: "busy", detail: "not now", status: 503 });
  const { url, seen } = await stub(
    t,
    events(`: daybook\n\n${item}event: end\ndata: {}\n\n`, "open"),
    events(item, "broken"),
    events(item, "ended"),
    events(`event: error\ndata: ${problem}\n\n`, "open"),
  );
  const book = connect(url);

  const found: unknown[] = [];
  const follow = async (topic: string): Promise<void> => {
    for await (const each of book.events.tail({ topic })) found.push(each);
  };
  await follow("a");
  await assert.rejects(follow("b"), { code: "unavailable", message: /^events\.tail broke off/ });
  await assert.rejects(follow("c"), { code: "unavailable", message: "events.tail broke off" });
  await assert.rejects(follow("d"), { code: "busy", message: "not now" });

  assert.deepEqual(found, Array(3).fill({ id: "e-1", topic: "a", publishedAt: 5 }));
  assert.equal(seen[0]?.line, "GET /api/v1/event-stream?topic=a");
});
