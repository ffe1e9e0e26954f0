// Logins, other names of routes, several books, monitoring, and the app inside a server of somebody's own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { roomsOf } from "../../src/open/rooms.ts";
import { createApp } from "../../src/server/app.ts";
import { backends, cleanup, openTest, testFolder } from "../support/open-test.ts";
import { openServer, origin, readStream } from "../support/open-server.ts";

const cookieOf = (response: Response): string => (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";

for (const backend of backends) {
  test(`a link logs a browser in once, by a cookie that no script reads and no other site sends (${backend})`, async (t) => {
    const { app, ask } = await openServer(t, backend);
    const link = `/login/${await app.link()}`;

    const first = await ask("GET", link, { token: "" });
    const second = await ask("GET", link, { token: "" });
    const cookie = cookieOf(first);
    const caller = await ask("GET", "/caller", { token: "", headers: { cookie } });

    assert.equal(first.status, 303);
    assert.match(first.headers.get("set-cookie") ?? "", /; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
    assert.equal(second.status, 401);
    assert.partialDeepStrictEqual(await caller.json(), { role: "admin", tenant: null });
  });

  test(`a login ends by logging out and with its token (${backend})`, async (t) => {
    const { ask, book } = await openServer(t, backend);
    const { secret, id } = await book.tokens.create({ role: "read", tenant: "default" });
    const logIn = async (): Promise<string> =>
      cookieOf(await ask("POST", "/login", { token: "", body: { token: secret } }));
    const statusOf = async (cookie: string): Promise<number> =>
      (await ask("GET", "/jobs", { token: "", headers: { cookie } })).status;
    const [one, other] = [await logIn(), await logIn()];
    assert.deepEqual([await statusOf(one), await statusOf(other)], [200, 200]);

    await ask("POST", "/logout", { token: "", headers: { cookie: one } });
    assert.deepEqual([await statusOf(one), await statusOf(other)], [401, 200]);
    await book.tokens.revoke(id);

    assert.equal(await statusOf(other), 401);
  });

  test(`calls are submitted, listed and shown under the name that another design gave them (${backend})`, async (t) => {
    const { ask, json, token } = await openServer(t, backend, { calls: { allow: ["127.0.0.1"] } });
    const base = "/tenants/default/service-calls";

    const made = await ask("POST", base, { body: { url: "http://127.0.0.1:9/", in: "1h" } });
    const { id } = (await made.json()) as { id: string };
    const listed = await json<{ items: { id: string }[] }>("GET", base);

    assert.equal(made.status, 202);
    assert.equal(made.headers.get("location"), `/api/v1${base}/${id}`);
    assert.deepEqual(
      listed.items.map((each) => each.id),
      [id],
    );
    assert.equal((await json<{ status: string }>("GET", `${base}/${id}`)).status, "scheduled");
    assert.equal((await ask("GET", base, { token: await token({ role: "admin", tenant: "acme" }) })).status, 403);
  });

  test(`the work of the process is started and stopped by who looks after the book (${backend})`, async (t) => {
    const { ask, json, tokens } = await openServer(t, backend);
    const status = (): Promise<{ status: string }> => json("GET", "/scheduler/status", { token: tokens.book });

    assert.equal((await status()).status, "stopped");
    await json("POST", "/scheduler/start", { token: tokens.book });
    assert.equal((await status()).status, "running");
    await json("POST", "/scheduler/stop", { token: tokens.book });

    assert.equal((await status()).status, "stopped");
    assert.equal((await ask("POST", "/scheduler/start", { token: tokens.admin })).status, 403);
  });
}

test("what may take minutes is an operation that is looked at until it has ended, and a backup goes to the book's own folder", async (t) => {
  const { ask, json, tokens, book } = await openServer(t, "sqlite");
  const token = tokens.book;

  const begun = await ask("POST", "/backups", { token, body: { keep: 1 } });
  const path = (begun.headers.get("location") ?? "").replace("/api/v1", "");
  let operation: { status: string; result: { name: string } | null };
  do {
    await setImmediate();
    operation = await json("GET", path, { token });
  } while (operation.status === "running");

  assert.equal(begun.status, 202);
  assert.equal(operation.status, "completed");
  assert.match(operation.result?.name ?? "", /^\d{4}-.*Z\.db$/);
  assert.deepEqual(
    (await book.backups.list()).map(({ name }) => name),
    [operation.result?.name],
  );
  assert.equal((await ask("POST", "/backups", { token, body: { path: "/tmp/x.db" } })).status, 400);
});

test("each book of several is served under its name, with tokens of its own", async (t) => {
  const [{ book: shop }, { book: home }] = [await openTest(t, "sqlite"), await openTest(t, "sqlite")];
  const app = createApp({ shop, home });
  cleanup(t, () => app.close());
  const { secret } = await home.tokens.create({ role: "read", tenant: "default" });
  const statusOf = async (path: string): Promise<number> =>
    (await app.fetch(new Request(`${origin}${path}`, { headers: { authorization: `Bearer ${secret}` } }))).status;

  assert.equal(await statusOf("/books/home/api/v1/jobs"), 200);
  assert.equal(await statusOf("/books/shop/api/v1/jobs"), 401);
  assert.equal(await statusOf("/api/v1/jobs"), 401);
  assert.equal(await statusOf("/books/garden/api/v1/jobs"), 404);
  assert.match(await app.link("home"), /^dbo_/);
});

async function listening(t: TestContext, handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("the app stands in a plain server of node:http, below a path, beside other pages", async (t) => {
  const { book } = await openTest(t, "sqlite");
  const app = createApp(book, { prefix: "/daybook" });
  cleanup(t, () => app.close());
  const answer = getRequestListener((request) => app.fetch(request), { overrideGlobalObjects: false });
  const url = await listening(t, (request, response) => {
    if (request.url?.startsWith("/daybook/") === true) void answer(request, response);
    else response.end("the shop");
  });
  const { secret } = await book.tokens.create({ role: "operate", tenant: "default" });
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };

  const stream = await fetch(`${url}/daybook/api/v1/stream?topic=job.created`, {
    headers: { ...headers, "last-event-id": "j0" },
  });
  const made = await fetch(`${url}/daybook/api/v1/jobs`, { method: "POST", headers, body: '{"name":"x"}' });
  const { id } = (await made.json()) as { id: string };
  const fact = (await readStream(stream).next()).value as unknown;

  assert.equal((await book.jobs.get(id)).name, "x");
  assert.partialDeepStrictEqual(fact, { event: "job.created", data: { id, name: "x" } });
  assert.equal(await (await fetch(url)).text(), "the shop");
  assert.equal((await fetch(`${url}/daybook/health/ready`)).status, 200);
  assert.deepEqual(
    ((await (await fetch(`${url}/daybook/api/v1/openapi.json`)).json()) as { servers: { url: string }[] }).servers[0]
      ?.url,
    "/daybook",
  );
  assert.equal((await fetch(`${url}/daybook/api/v1/jobs`)).status, 401);
});

test("a monitor is told that the process lives, that it is ready, and its numbers if it has a token", async (t) => {
  const { app, book, ask, tokens } = await openServer(t, "sqlite");
  const metrics = await app.fetch(
    new Request(`${origin}/metrics`, { headers: { authorization: `Bearer ${tokens.read}` } }),
  );

  assert.deepEqual(await (await ask("GET", "/health/live", { token: "" })).json(), { status: "live" });
  assert.deepEqual(await (await ask("GET", "/health/ready", { token: "" })).json(), { status: "ready" });
  assert.match(await metrics.text(), /^daybook_server_streams 0$/m);
  assert.equal((await app.fetch(new Request(`${origin}/metrics`))).status, 401);
  await book.close();

  assert.equal((await ask("GET", "/health/live", { token: "" })).status, 200);
  assert.equal((await ask("GET", "/health/ready", { token: "" })).status, 503);
});

test("each change stands in the audit with who made it, from where and what became of it, and no secret", async (t) => {
  const { app, book, json, tokens } = await openServer(t, "sqlite");
  const { id } = await json<{ id: string }>("POST", "/jobs", { body: { name: "x", params: { password: "hunter2" } } });
  const headers = { authorization: `Bearer ${tokens.operate}` };
  for (let index = 0; index < 2; index++) {
    await app.fetch(new Request(`${origin}/api/v1/jobs/${id}/cancel`, { method: "POST", headers }), {
      address: "10.0.0.9",
    });
  }
  await json("GET", `/jobs/${id}`);
  await app.close();
  await roomsOf(book).access.audit.flush();

  const { items } = await book.audit.list();

  assert.deepEqual(
    items.map(({ verb, subject, from, outcome }) => ({ verb, subject, from, status: outcome?.status })),
    [
      { verb: "jobs.cancel", subject: id, from: "10.0.0.9", status: 409 },
      { verb: "jobs.cancel", subject: id, from: "10.0.0.9", status: 200 },
      { verb: "jobs.enqueue", subject: null, from: "", status: 200 },
    ],
  );
  assert.doesNotMatch(JSON.stringify(items), /hunter2/);
});

test("who logged in and out, started work and began an operation stands in the audit with what they were answered", async (t) => {
  const { app, book, ask, json, tokens } = await openServer(t, "sqlite");
  const cookie = cookieOf(await ask("GET", `/login/${await app.link()}`, { token: "" }));
  const token = tokens.book;

  await ask("POST", "/login", { token: "", body: { token } });
  await ask("POST", "/login", { token: "", body: { token: token.slice(0, -1) } });
  await json("POST", "/scheduler/start", { token });
  await json("GET", "/scheduler/status", { token });
  await json("POST", "/scheduler/stop", { token });
  await json("POST", "/jobs/cancel-all", { body: { apply: true } });
  await ask("POST", "/logout", { token: "", headers: { cookie } });
  await app.close();
  await roomsOf(book).access.audit.flush();

  const { items } = await book.audit.list();
  const id = token.slice(4, 14);
  assert.deepEqual(
    items.toReversed().map(({ verb, by, outcome }) => [verb, by.name, outcome?.status]),
    [
      ["login", "one-time link", 200],
      ["login", id, 200],
      ["scheduler.start", id, 200],
      ["scheduler.stop", id, 200],
      ["jobs.cancelAll", tokens.operate.slice(4, 14), 202],
      ["logout", "one-time link", 200],
    ],
  );
});

test("what went wrong on this machine is told to its owner, and its paths to no caller", async (t) => {
  const folder = testFolder(t);
  const { json, tokens, book } = await openServer(t, "sqlite", { files: folder });
  const token = tokens.book;
  writeFileSync(join(folder, "backups"), "a file where the folder should be");
  const endOf = async (): Promise<{ code: string; message: string } | null> => {
    const { id } = await json<{ id: string }>("POST", "/backups", { token, body: {} });
    for (;;) {
      const { status, error } = await json<{ status: string; error: { code: string; message: string } | null }>(
        "GET",
        `/operations/${id}`,
        { token },
      );
      if (status !== "running") return error;
      await setImmediate();
    }
  };

  const inTheWay = await endOf();
  rmSync(join(folder, "backups"));
  mkdirSync(join(folder, "backups"));
  // A name that is there may be gone when it is looked at.
  symlinkSync(join(folder, "nothing"), join(folder, "backups", "2026-01-01T00-00-00-000Z.db"));

  assert.notEqual(inTheWay, null);
  assert.doesNotMatch(JSON.stringify(inTheWay), new RegExp(RegExp.escape(folder)));
  assert.deepEqual(await book.backups.list(), []);
  assert.equal(await endOf(), null);
});
