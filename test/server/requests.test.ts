// Requests of verbs over HTTP: how they are read, refused and answered.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { DaybookError, entity, type ErrorCode } from "../../src/index.ts";
import { problemOf } from "../../src/server/problem.ts";
import { backends } from "../support/open-test.ts";
import { openServer } from "../support/open-server.ts";

type Problem = { readonly code: string; readonly status: number; readonly detail: string; readonly type: string };
type Job = { readonly id: string; readonly name: string; readonly status: string; readonly createdAt: string };

for (const backend of backends) {
  test(`a job is enqueued, listed, shown and cancelled over HTTP (${backend})`, async (t) => {
    const { json } = await openServer(t, backend);

    const { id } = await json<Job>("POST", "/jobs", { body: { name: "send-receipt", params: { orderId: "o-17" } } });
    const shown = await json<Job>("GET", `/jobs/${id}`);
    const listed = await json<{ items: Job[]; next: string | null }>("GET", "/jobs?name=send-receipt&limit=5");
    await json("POST", `/jobs/${id}/cancel`);

    assert.equal(shown.name, "send-receipt");
    assert.match(shown.createdAt, /^\d{4}-\d\d-\d\dT.*Z$/);
    assert.deepEqual(
      listed.items.map((each) => each.id),
      [id],
    );
    assert.equal((await json<Job>("GET", `/jobs/${id}`)).status, "cancelled");
  });

  test(`a page goes on by its cursor, which is of use to its own tenant and list alone (${backend})`, async (t) => {
    const { json, ask, token } = await openServer(t, backend);
    const other = await token({ role: "operate", tenant: "acme" });
    for (let index = 0; index < 3; index++) await json("POST", "/jobs", { body: { name: `job-${index}` } });

    const first = await json<{ items: Job[]; next: string }>("GET", "/jobs?limit=2");
    const rest = await json<{ items: Job[]; next: string | null }>("GET", `/jobs?limit=2&after=${first.next}`);

    assert.equal(first.items.length + rest.items.length, 3);
    assert.equal(rest.next, null);
    assert.equal((await ask("GET", `/jobs?limit=2&after=${first.next}`, { token: other })).status, 400);
    assert.equal((await ask("GET", `/jobs?limit=2&after=${first.next.slice(1)}`)).status, 400);
  });

  test(`one tenant's token does not see, change or name what is another's (${backend})`, async (t) => {
    const { json, ask, token } = await openServer(t, backend);
    const other = await token({ role: "admin", tenant: "acme" });
    const { id } = await json<Job>("POST", "/jobs", { body: { name: "send-receipt" } });
    const unknown = id.replaceAll(/[0-9a-f]{4}$/g, "0000");

    for (const [method, path] of [
      ["GET", ""],
      ["POST", "/cancel"],
      ["GET", "/explanation"],
    ] as const) {
      const theirs = await ask(method, `/jobs/${id}${path}`, { token: other });
      const nobodys = await ask(method, `/jobs/${unknown}${path}`, { token: other });
      assert.equal(theirs.status, 404);
      assert.equal((await theirs.text()).replaceAll(id, "?"), (await nobodys.text()).replaceAll(unknown, "?"));
    }
    const named = await ask("GET", "/jobs", { token: other, headers: { "daybook-tenant": "default" } });
    assert.equal(named.status, 403);
  });

  test(`a token of the book speaks for the tenant that it names (${backend})`, async (t) => {
    const { json, tokens } = await openServer(t, backend);
    const headers = { "daybook-tenant": "acme" };

    await json("POST", "/jobs", { token: tokens.book, headers, body: { name: "send-receipt" } });

    assert.equal((await json<{ items: Job[] }>("GET", "/jobs", { token: tokens.book, headers })).items.length, 1);
    assert.equal((await json<{ items: Job[] }>("GET", "/jobs", { token: tokens.book })).items.length, 0);
  });

  test(`a record is changed only at the revision that If-Match names (${backend})`, async (t) => {
    const Order = entity("order", { schema: z.object({ id: z.string(), total: z.number().optional() }), key: "id" });
    const { json, ask } = await openServer(t, backend, { use: [Order] });
    await json("PUT", "/records/order", { body: { document: { id: "o-1", total: 1 } } });

    const read = await ask("GET", "/records/order/record?key=o-1");
    const etag = read.headers.get("etag") ?? "";
    const body = { document: { id: "o-1", total: 2 } };
    const first = await ask("PUT", "/records/order", { body, headers: { "if-match": etag } });
    const second = await ask("PUT", "/records/order", {
      body: { document: { id: "o-1", total: 3 } },
      headers: { "if-match": etag },
    });

    assert.equal(etag, '"1"');
    assert.equal(first.status, 200, await first.text());
    assert.equal(second.status, 409);
    assert.equal(
      (await ask("GET", "/records/order/record?key=o-1", { headers: { "if-none-match": '"2"' } })).status,
      304,
    );
  });
}

test("what is wrong with a request is said as a problem with a code, the value and what to do", async (t) => {
  const { ask } = await openServer(t, "sqlite");
  const cases: [method: string, path: string, ask: Parameters<typeof ask>[2], status: number, said: RegExp][] = [
    ["POST", "/jobs", { body: { nam: "x" } }, 400, /did you mean name\?/],
    ["POST", "/jobs", { body: { name: 7 } }, 400, /name is 7/],
    ["POST", "/jobs", { body: "[" }, 400, /the body/],
    ["POST", "/jobs", { body: '{"name":"a","name":"b"}' }, 400, /given twice/],
    ["POST", "/jobs", { body: '{"__proto__":{"name":"a"}}' }, 400, /__proto__/],
    ["POST", "/jobs", { body: "[".repeat(10_000) }, 400, /nested deeper/],
    ["POST", "/jobs", { body: "{}", headers: { "content-type": "text/plain" } }, 415, /application\/json/],
    ["POST", "/jobs?name=x", { body: {} }, 400, /query/],
    ["GET", "/jobs?limit=501", {}, 400, /limit/],
    ["GET", "/jobs?limit=1&limit=2", {}, 400, /2 times/],
    ["GET", "/jobs?limt=5", {}, 400, /did you mean limit\?/],
    ["GET", "/jobs?after=%00", {}, 400, /cursor/],
    ["GET", "/nothing", {}, 404, /there is no GET/],
    ["DELETE", "/jobs", {}, 405, /takes GET, POST, HEAD/],
    ["POST", "/jobs", { body: { name: "x" }, headers: { "idempotency-key": "a b" } }, 400, /Idempotency-Key/],
    ["POST", "/jobs", { body: { name: "x" }, headers: { "if-match": '"1"' } }, 400, /If-Match/],
    ["POST", "/jobs", { body: { name: "x" }, token: "dbk_nobody" }, 401, /unknown, expired or revoked/],
    ["POST", "/jobs", { body: { name: "x" }, token: "" }, 401, /nobody is named/],
    ["GET", "/doctor", {}, 403, /a token of the book with the role admin/],
  ];

  for (const [method, path, asked, status, said] of cases) {
    const response = await ask(method, path, asked);
    const problem = (await response.json()) as Problem;
    assert.equal(response.status, status, `${method} ${path}: ${problem.detail}`);
    assert.equal(response.headers.get("content-type"), "application/problem+json");
    assert.equal(problem.status, status);
    assert.match(problem.detail, said);
    assert.doesNotMatch(JSON.stringify(problem), /\/src\/|node_modules|select |at file:/);
  }
});

test("a body of 200 MB is refused before it is read", async (t) => {
  const { app, tokens } = await openServer(t, "sqlite");
  let given = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      given += 1_048_576;
      if (given > 200 * 1_048_576) controller.close();
      else controller.enqueue(new Uint8Array(1_048_576).fill(32));
    },
  });
  const headers = { authorization: `Bearer ${tokens.operate}`, "content-type": "application/json" };

  const request = new Request("http://127.0.0.1/api/v1/jobs", { method: "POST", headers, body, duplex: "half" });
  const response = await app.fetch(request);

  assert.equal(response.status, 413);
  assert.ok(given < 8 * 1_048_576, `${given} bytes were read`);
});

test("a request for another host or from another site's page is refused, and no page of another origin may read", async (t) => {
  const { ask } = await openServer(t, "sqlite", { app: { origins: ["https://ops.example"] } });
  const of = async (headers: Record<string, string>, method = "POST"): Promise<number> =>
    (await ask(method, "/jobs", { headers, ...(method === "POST" ? { body: { name: "x" } } : {}) })).status;

  assert.equal(await of({ host: "rebound.example" }, "GET"), 403);
  assert.equal(await of({ host: "127.0.0.1:4600" }, "GET"), 200);
  assert.equal(await of({ origin: "https://evil.example" }), 403);
  assert.equal(await of({ origin: "null" }), 403);
  assert.equal(await of({ "sec-fetch-site": "cross-site" }), 403);
  assert.equal(await of({ origin: "http://127.0.0.1" }), 200);
  assert.equal(await of({ origin: "https://ops.example" }), 200);
  const read = await ask("GET", "/jobs", { headers: { origin: "https://evil.example" } });
  assert.equal(read.headers.get("access-control-allow-origin"), null);
  assert.match(read.headers.get("content-security-policy") ?? "", /default-src 'none'/);
});

test("who fails to log in too often from one address is told to wait, and who is known is not", async (t) => {
  const { app, tokens } = await openServer(t, "sqlite");
  const of = async (token: string, address: string): Promise<Response> =>
    app.fetch(new Request("http://127.0.0.1/api/v1/caller", { headers: { authorization: `Bearer ${token}` } }), {
      address,
    });

  for (let index = 0; index < 20; index++) assert.equal((await of(`dbk_${index}`, "10.0.0.1")).status, 401);
  const late = await of("dbk_21", "10.0.0.1");

  assert.equal(late.status, 429);
  assert.match(late.headers.get("retry-after") ?? "", /^\d+$/);
  assert.equal((await of(tokens.read, "10.0.0.1")).status, 200);
  assert.equal((await of("dbk_22", "10.0.0.2")).status, 401);
});

test("a read-only server reads, also for admins, and refuses each change", async (t) => {
  const { ask, tokens } = await openServer(t, "sqlite", { app: { readOnly: true } });
  const statusOf = async (method: string, path: string): Promise<number> =>
    (await ask(method, path, { token: tokens.book, ...(method === "POST" ? { body: {} } : {}) })).status;

  for (const path of ["/jobs", "/audit", "/tokens", "/doctor", "/scheduler/status"]) {
    assert.equal(await statusOf("GET", path), 200, path);
  }
  for (const path of ["/jobs", "/jobs/cancel-all", "/backups", "/scheduler/start"]) {
    assert.equal(await statusOf("POST", path), 403, path);
  }
});

test("more requests at once than allowed are told to come again", async (t) => {
  const { ask } = await openServer(t, "sqlite", { app: { requestsMax: 2 } });

  const answers = await Promise.all(Array.from({ length: 6 }, () => ask("GET", "/jobs")));

  const busy = answers.filter(({ status }) => status === 503);
  assert.ok(busy.length >= 3 && answers.some(({ status }) => status === 200));
  assert.equal(busy[0]?.headers.get("retry-after"), "1");
  assert.equal((await ask("GET", "/jobs")).status, 200);
});

test("a tenant that waits with many requests leaves the others room", async (t) => {
  const { ask, json, token } = await openServer(t, "sqlite", { app: { requestsMax: 6 } });
  const other = await token({ role: "read", tenant: "acme" });
  const { id } = await json<Job>("POST", "/jobs", { body: { name: "x" } });
  const leave = new AbortController();
  const waiting = Array.from({ length: 3 }, () => ask("GET", `/jobs/${id}/result?wait=true`, { signal: leave.signal }));

  const mine = await ask("GET", "/jobs");
  const theirs = await ask("GET", "/jobs", { token: other });

  assert.equal(mine.status, 503);
  assert.equal(mine.headers.get("retry-after"), "1");
  assert.equal(theirs.status, 200);
  leave.abort();
  await Promise.all(waiting);
  assert.equal((await ask("GET", "/jobs")).status, 200);
});

test("a body that ends before it is whole is the caller's fault, and no failure of the server", async (t) => {
  const told: unknown[] = [];
  const say = (fields: object): void => void told.push(fields);
  const { app, tokens } = await openServer(t, "sqlite", { app: { log: { info: say, warn: say, error: say } } });
  const body = new ReadableStream({
    pull: (controller) => controller.error(new Error("aborted")),
  });
  const headers = { authorization: `Bearer ${tokens.operate}`, "content-type": "application/json" };

  const request = new Request("http://127.0.0.1/api/v1/jobs", { method: "POST", headers, body, duplex: "half" });
  const response = await app.fetch(request);

  assert.equal(response.status, 400);
  assert.equal(told.length, 1);
});

test("what the database says of itself, and of this process, is told to no caller", () => {
  const cases: [code: ErrorCode, details: Record<string, unknown>, status: number][] = [
    ["busy", { sqlite: 5 }, 503],
    ["conflict", { sqlite: 2067 }, 409],
    ["forbidden", { sqlite: 8 }, 503],
    ["unauthorized", { sqlstate: "28P01" }, 503],
    ["not_found", { sqlstate: "3D000" }, 503],
    ["unavailable", {}, 503],
    ["internal", {}, 500],
  ];

  for (const [code, details, status] of cases) {
    const { problem, headers } = problemOf(new DaybookError(code, "locked: /srv/shop.db, select 1", { details }));
    assert.equal(problem.status, status, code);
    assert.doesNotMatch(JSON.stringify(problem), /srv|select|sql/);
    assert.equal(headers["retry-after"], status === 503 ? "1" : undefined);
  }
  const { problem } = problemOf(new DaybookError("conflict", "it has ended", { details: { id: "a", path: "/srv" } }));
  assert.deepEqual([problem.detail, problem.details], ["it has ended", { id: "a" }]);
});

test("who waits when the server ends is told to ask again, and nobody is waited for", async (t) => {
  const { app, ask, json } = await openServer(t, "sqlite");
  const { id } = await json<Job>("POST", "/jobs", { body: { name: "x" } });

  const waiting = ask("GET", `/jobs/${id}/result?wait=true`);
  await json("GET", "/jobs");
  await app.close();

  const { status, headers } = await waiting;
  assert.deepEqual([status, headers.get("retry-after")], [503, "1"]);
});
