// /mcp as the server mounts it: who may come in, what their tokens let them have, and what is written of what they did.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { toolName } from "../../src/server/mcp/tool.ts";
import { mayCall } from "../../src/server/policy.ts";
import { everyVerb } from "../../src/verbs/table.ts";
import { backends } from "../support/open-test.ts";
import { openServer, origin, type Role, type TestServer } from "../support/open-server.ts";
import { connectBy, type Assistant } from "./mcp-client.ts";

const verbs = (await everyVerb()).map(([, verb]) => verb).filter(({ local }) => local !== true);

function come(
  t: TestContext,
  { app }: TestServer,
  token: string,
  headers: Record<string, string> = {},
): Promise<Assistant> {
  return connectBy(t, (request) => app.fetch(request), { authorization: `Bearer ${token}`, ...headers });
}

async function knock({ app }: TestServer, headers: Record<string, string>): Promise<Response> {
  const usual = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  return app.fetch(new Request(`${origin}/mcp`, { method: "POST", body, headers: { ...usual, ...headers } }));
}

test("the tools of a token are the verbs that its role may call, as far as the server allows assistants", async (t) => {
  const allowed = {
    read: ["read"],
    operate: ["read", "operate", "worker"],
    admin: ["read", "operate", "admin", "worker"],
  };

  for (const [mcp, roles] of Object.entries(allowed) as [keyof typeof allowed, Role[]][]) {
    const server = await openServer(t, "sqlite", { app: { mcp } });
    const callers = [
      ...(["read", "operate", "admin", "worker"] as const).map((role) => ({ role, tenant: "default" })),
      ...(["read", "operate", "admin"] as const).map((role) => ({ role, tenant: null })),
    ];
    for (const caller of callers) {
      const { role, tenant } = caller;
      const token = await server.token(tenant === null ? { role } : { role, tenant });

      const names = await (await come(t, server, token)).names();

      const expected = verbs.filter((verb) => mayCall(verb, caller) && roles.includes(verb.role)).map(toolName);
      assert.deepEqual(names, expected, `${role} of ${tenant ?? "the book"}, at a server that allows ${mcp}`);
    }
  }
});

test("without a known token, for another host or from a page of another site nobody comes in", async (t) => {
  const server = await openServer(t, "sqlite");
  const { id, secret } = await server.book.tokens.create({ role: "admin", tenant: null });
  await server.book.tokens.revoke(id);
  const known = { authorization: `Bearer ${server.tokens.read}` };

  const statuses = [
    await knock(server, {}),
    await knock(server, { authorization: "Bearer dbk_nobody" }),
    await knock(server, { authorization: `Bearer ${secret}` }),
    await knock(server, { ...known, host: "rebound.example" }),
    await knock(server, { ...known, origin: "https://evil.example" }),
    await knock(server, { ...known, "daybook-tenant": "acme" }),
    await knock(server, known),
  ].map(({ status, headers }) => [status, headers.get("content-security-policy") !== null]);

  assert.deepEqual(
    statuses,
    [401, 401, 401, 403, 403, 403, 200].map((status) => [status, true]),
  );
});

for (const backend of backends) {
  test(`${backend}: what an assistant changes is in the audit with its token, and belongs to its tenant`, async (t) => {
    const server = await openServer(t, backend, { app: { mcp: "operate" } });
    const { id: tokenId, secret } = await server.book.tokens.create({
      role: "operate",
      tenant: "acme",
      name: "helper",
    });
    const { call } = await come(t, server, secret);

    const made = await call("jobs_enqueue", { name: "send-receipt", params: { orderId: "o-17" } });
    const id = String(made.value["id"]);
    const bad = await call("jobs_cancel", { id: "nobody" });
    const shown = await call("jobs_show", { id });
    const { items } = await server.book.tenant("acme").audit.list();

    assert.equal(shown.value["name"], "send-receipt", made.text);
    assert.match(bad.text, /^not_found: /);
    const told = items.map(({ verb, by, tenant, subject }) => [verb, by.tokenId, tenant, subject]);
    assert.deepEqual(told, [
      ["jobs.cancel", tokenId, "acme", "nobody"],
      ["jobs.enqueue", tokenId, "acme", null],
    ]);
    assert.equal((await server.book.jobs.list()).items.length, 0);
  });

  test(`${backend}: what may take minutes is an operation to look at`, async (t) => {
    const server = await openServer(t, backend, { app: { mcp: "admin" } });
    const { call } = await come(t, server, server.tokens.book);

    const dry = await call("retain", { jobs: "1d" });
    const begun = await call("retain", { jobs: "1d", apply: true });
    const operation = await server.book.operations.get(String(begun.value["id"]));

    assert.equal(dry.value["dryRun"], true, dry.text);
    assert.equal(operation.verb, "book.retain", begun.text);
  });
}

test("a server that refuses changes gives assistants what reads, whatever it allows them", async (t) => {
  const server = await openServer(t, "sqlite", { app: { mcp: "admin", readOnly: true } });
  const { call, names } = await come(t, server, server.tokens.book);

  assert.ok(!(await names()).includes("jobs_enqueue"));
  assert.match((await call("jobs_enqueue", { name: "a" })).text, /^forbidden: .* only reads/);
});
