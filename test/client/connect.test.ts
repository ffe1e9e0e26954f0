import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connect } from "../../src/client/connect.ts";
import { DaybookError, event, isDaybookError, job } from "../../src/index.ts";
import { createApp } from "../../src/server/app.ts";
import { openTest } from "../support/open-test.ts";
import { json, problem, stub } from "./stub.ts";

const made = { id: "j-1", name: "send-receipt", status: "queued", created: true };
const fast = { backoffMs: 1 };
const page = (ids: readonly string[], next: string | null): object => ({ items: ids.map((id) => ({ id })), next });

test("a verb is asked by its route, with what it is given in the path, the query or the body", async (t) => {
  const { url, seen } = await stub(t, json({}));
  const book = connect(`${url}/`, { token: "dbk_1", tenant: "acme" });

  await book.jobs.list({ status: ["failed", "cancelled"], since: 0, retried: false, name: "ä&b" });
  await book.jobs.cancel("a/b c");
  await book.queues.limit("mail", { concurrency: 3 });
  await book.records.show("placed", { from: "ada", to: "o-17" }, { asOf: "16" });
  await book.info();
  await book.schedules.preview({ every: 60_000, at: new Date(0) });

  assert.deepEqual(
    seen.map(({ line, body }) => (body === "" ? line : `${line} ${body}`)),
    [
      "GET /api/v1/jobs?status=failed&status=cancelled&since=1970-01-01T00%3A00%3A00.000Z&retried=false&name=%C3%A4%26b",
      "POST /api/v1/jobs/a%2Fb%20c/cancel {}",
      'POST /api/v1/queues/mail/limit {"concurrency":3}',
      "GET /api/v1/records/placed/record?asOf=16&key=ada&key=o-17",
      "GET /api/v1/info",
      "GET /api/v1/schedule-preview?every=60000ms&at=1970-01-01T00%3A00%3A00.000Z",
    ],
  );
  for (const { headers } of seen) {
    assert.deepEqual([headers.authorization, headers["daybook-tenant"]], ["Bearer dbk_1", "acme"]);
  }
});

test("a definition stands for its name, its params are its own, and the job that it made has a way to its result", async (t) => {
  const sendReceipt = job("send-receipt", { run: (_: { orderId: string; name: string }) => 17 });
  const OrderPaid = event<{ orderId: string }>("order.paid");
  const { url, seen } = await stub(
    t,
    json(made),
    problem(504, "timeout"),
    json({ id: "j-1", lastId: "j-2", status: "completed", result: 17 }),
    json({ id: "e-1", created: true, deliveries: 0, live: 0 }),
  );
  const book = connect(url, { token: () => Promise.resolve("dbk_2") });

  const params = { orderId: "o-17", name: "ada" };
  const found = await book.jobs.enqueue(sendReceipt, params, { in: 5000, keyScope: { window: "1h" }, key: "o-17" });
  const result: number = await found.result();
  await book.events.publish(OrderPaid, { orderId: "o-17" }, { idempotencyKey: "mine" });

  assert.deepEqual([found, result], [made, 17]);
  assert.deepEqual(JSON.parse(seen[0]?.body ?? ""), {
    name: "send-receipt",
    params,
    in: "5000ms",
    keyScope: "1h",
    key: "o-17",
  });
  assert.deepEqual(
    seen.slice(1).map(({ line }) => line),
    [
      ...[
        "GET /api/v1/jobs/j-1/result?wait=true&timeout=20000ms",
        "GET /api/v1/jobs/j-1/result?wait=true&timeout=20000ms",
      ],
      "POST /api/v1/events",
    ],
  );
  assert.equal(seen[3]?.body, '{"topic":"order.paid","payload":{"orderId":"o-17"}}');
  assert.equal(seen[3]?.headers["idempotency-key"], "mine");
});

test("times are numbers, also in what is nested, and what is the user's stays as it is", async (t) => {
  const at = "2026-11-01T00:00:00.000Z";
  const job = (time: unknown): object => ({
    id: "j-1",
    createdAt: time,
    startedAt: null,
    params: { createdAt: at, at },
    run: { endedAt: time },
    chain: [{ id: "j-1", createdAt: time }],
    logs: [{ at: time, message: at }],
  });
  const { url } = await stub(t, json(job(at)));

  const shown: unknown = await connect(url).jobs.show("j-1");

  assert.deepEqual(shown, job(Date.parse(at)));
});

test("a list is a page, and goes through all pages when it is iterated", async (t) => {
  const { url, seen } = await stub(
    t,
    json(page(["a", "b"], "c1")),
    json(page(["a", "b"], "c1")),
    json(page(["c"], null)),
  );
  const book = connect(url);

  const first = await book.jobs.list({ limit: 2 });
  const all: string[] = [];
  for await (const { id } of book.jobs.list({ limit: 2 })) all.push(id);

  assert.deepEqual([first.items.length, first.next, all], [2, "c1", ["a", "b", "c"]]);
  assert.equal(seen[2]?.line, "GET /api/v1/jobs?limit=2&after=c1");
});

test("what is refused is the error that the library throws, and is not sent again", async (t) => {
  const { url, seen } = await stub(
    t,
    problem(404, "not_found", {}, { id: "j-1" }),
    problem(409, "conflict"),
    (response) => response.writeHead(418, { "content-type": "text/html" }).end("<h1>a proxy</h1>"),
  );
  const book = connect(url, fast);

  const errors = [];
  for (const id of ["1", "2", "3"]) errors.push(await book.jobs.show(id).catch((error: unknown) => error));

  assert.ok(errors.every(isDaybookError));
  assert.ok(errors[0] instanceof DaybookError);
  assert.deepEqual(
    errors.map((each) => each instanceof DaybookError && [each.code, each.message, each.details]),
    [
      ["not_found", "it is not_found", { id: "j-1", status: 404 }],
      ["conflict", "it is conflict", { status: 409 }],
      ["invalid", "the server answered 418: <h1>a proxy</h1>", { status: 418 }],
    ],
  );
  assert.equal(seen.length, 3);
});

test("what a busy server or a broken connection did not answer is sent again, with the same key", async (t) => {
  const { url, seen } = await stub(
    t,
    problem(503, "busy", { "retry-after": "0" }),
    (response) => response.destroy(),
    problem(429, "busy"),
    problem(409, "conflict", { "retry-after": "0" }),
    json({ ...made, status: "cancelled" }),
  );

  const cancelled = await connect(url, fast).jobs.cancel("j-1");

  const keys = new Set(seen.map(({ headers }) => headers["idempotency-key"]));
  assert.deepEqual([cancelled.status, seen.length, keys.size], ["cancelled", 5, 1]);
  assert.match([...keys][0]?.toString() ?? "", /^[0-9a-f]{32}$/);
});

test("an answer that breaks off is asked for again, with the same key", async (t) => {
  const cut = (response: ServerResponse): void => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 100 });
    response.write('{"id":', () => response.destroy());
  };
  const { url, seen } = await stub(t, cut, cut, json({ ...made, status: "cancelled" }));

  const cancelled = await connect(url, fast).jobs.cancel("j-1");

  const keys = new Set(seen.map(({ headers }) => headers["idempotency-key"]));
  assert.deepEqual([cancelled.status, seen.length, keys.size], ["cancelled", 3, 1]);
});

test("a change that was sent and not answered may have been made, and that is said", async (t) => {
  const gone = await stub(t, (response) => response.destroy());
  const nobody = createServer().listen(0, "127.0.0.1");
  await once(nobody, "listening");
  const free = `http://127.0.0.1:${(nobody.address() as AddressInfo).port}`;
  nobody.close();
  await once(nobody, "close");
  const few = { ...fast, attempts: 2 };

  const lost = connect(gone.url, few).jobs.cancel("j-1");
  const unsent = connect(free, few).jobs.cancel("j-1");
  const read = connect(gone.url, few).jobs.show("j-1");

  await Promise.all([
    assert.rejects(lost, { code: "unknown_outcome", message: /may or may not have been done/ }),
    assert.rejects(unsent, { code: "unavailable" }),
    assert.rejects(read, { code: "unavailable" }),
  ]);
});

test("what is under way is waited for, however often that must be asked", async (t) => {
  const busy = problem(409, "conflict", { "retry-after": "0" });
  const { url, seen } = await stub(t, busy, busy, busy, json({ ...made, status: "cancelled" }));

  const cancelled = await connect(url, { ...fast, attempts: 1 }).jobs.cancel("j-1");

  assert.deepEqual([cancelled.status, seen.length], ["cancelled", 4]);
});

test("a server that sends us on, or is no server of ours, is said, and nothing else is taken for its answer", async (t) => {
  const { url, seen } = await stub(t, (response, { line }) => {
    if (line.includes("/there")) return response.end("{}");
    if (line.includes("/jobs/j-1")) return response.writeHead(301, { location: "https://daybook.example/there" }).end();
    return response.writeHead(200, { "content-type": "text/html" }).end("<h1>Log in</h1>");
  });
  const book = connect(url, fast);

  const moved = book.jobs.cancel("j-1");
  const page = book.jobs.list();

  await Promise.all([
    assert.rejects(moved, { code: "unavailable", message: /sends us on to https:\/\/daybook\.example\/there/ }),
    assert.rejects(page, { code: "unavailable", message: /is that its address\? It says "<h1>Log in<\/h1>"/ }),
  ]);
  assert.equal(seen.length, 2);
});

test("each call has a key of its own, and a read has none", async (t) => {
  const { url, seen } = await stub(t, json(made));
  const book = connect(url);

  await book.jobs.cancel("j-1");
  await book.jobs.cancel("j-1");
  await book.jobs.show("j-1");

  const [one, other, none] = seen.map(({ headers }) => headers["idempotency-key"]);
  assert.notEqual(one, other);
  assert.equal(none, undefined);
});

test("a server that stays away is unavailable, one that does not answer is a timeout, and both are tried as often as asked", async (t) => {
  const gone = await stub(t, (response) => response.destroy());
  let asked = 0;
  const silent = async ({ signal }: Request): Promise<never> => {
    asked++;
    await once(signal, "abort");
    throw signal.reason;
  };

  const away = connect(gone.url, { ...fast, attempts: 3 }).jobs.list();
  const late = connect(gone.url, { ...fast, attempts: 2, timeoutMs: 5, fetch: silent }).jobs.list();

  await Promise.all([assert.rejects(away, { code: "unavailable" }), assert.rejects(late, { code: "timeout" })]);
  assert.deepEqual([gone.seen.length, asked], [3, 2]);
  // Nor does a result wait for ever where nobody answers.
  const result = connect(gone.url, { ...fast, attempts: 2, timeoutMs: 5, fetch: silent }).jobs.result("j-1");
  await assert.rejects(result, { code: "timeout" });
});

test("a signal ends a request and the wait for the next one, with its own reason", async (t) => {
  const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const silent = await stub(t, () => both[0]?.resolve());
  const busy = await stub(t, (...asked) => {
    problem(503, "busy", { "retry-after": "30" })(...asked);
    both[1]?.resolve();
  });
  const reason = new Error("enough");
  const over = new AbortController();

  const asked = connect(silent.url).jobs.list({}, { signal: over.signal });
  const waiting = connect(busy.url).jobs.list({}, { signal: over.signal });
  void Promise.all(both.map(({ promise }) => promise)).then(() => over.abort(reason));

  await Promise.all([assert.rejects(asked, reason), assert.rejects(waiting, reason)]);
  await assert.rejects(connect(silent.url).jobs.list({}, { signal: AbortSignal.abort(reason) }), reason);
  assert.equal(busy.seen.length, 1);
});

test("a slip is refused before anything is sent", async (t) => {
  const { url, seen } = await stub(t, json({}));
  const book = connect(url);
  const slips = [
    book.jobs.list({ name: undefined as unknown as string }),
    book.jobs.list({ status: [] }),
    book.jobs.cancel(undefined as unknown as string),
    book.jobs.cancel(".."),
    book.jobs.cancel("\ud800"),
    book.jobs.enqueue("a", { total: Number.NaN }),
    book.jobs.enqueue("a", { at: () => 1 }),
    book.jobs.enqueue("a", {}, { tags: undefined as unknown as [] }),
    book.jobs.result(7 as unknown as string),
    book.jobs.result("a", { timeout: "soon" }),
    connect(url, { token: "a\nb" }).info(),
  ];

  for (const slip of await Promise.allSettled(slips)) {
    assert.equal(slip.status === "rejected" && (slip.reason as DaybookError).code, "invalid", JSON.stringify(slip));
  }
  assert.throws(() => void book.jobs.list("failed" as unknown as object), { code: "invalid" });
  for (const bad of ["shop.db", "file:///a", "http://user:pass@host", ""]) {
    assert.throws(() => connect(bad), { code: "invalid" });
  }
  assert.deepEqual(seen, []);
});

test("what takes minutes is waited for, and its end is the answer or the error", async (t) => {
  const begun = json({ id: "op-1", status: "running" }, 202, { location: "/api/v1/operations/op-1" });
  const evictions = [{ what: "runs", at: "1970-01-01T00:00:00.007Z" }];
  const { url, seen } = await stub(
    t,
    begun,
    json({ status: "running" }),
    json({ status: "completed", result: { evictions } }),
    begun,
    json({ status: "failed", error: { code: "conflict", message: "somebody else does" } }),
  );
  const book = connect(url);

  const done: unknown = await book.retain({ apply: true });
  const failed = book.retain({ apply: true });

  assert.deepEqual(done, { evictions: [{ what: "runs", at: 7 }] });
  await assert.rejects(failed, { code: "conflict", message: "somebody else does" });
  assert.equal(seen[1]?.line, "GET /api/v1/operations/op-1");
});

test("what takes minutes is also waited for on a server that stands below a path", async (t) => {
  const { book } = await openTest(t, "sqlite");
  const app = createApp(book, { prefix: "/daybook" });
  const { secret: token } = await book.tokens.create({ role: "admin", tenant: null });
  const there = connect("http://localhost/daybook/", { token, fetch: (request) => app.fetch(request) });

  const { evictions } = await there.retain({ apply: true });
  await app.close();

  assert.deepEqual(evictions, []);
});
