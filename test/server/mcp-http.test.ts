// The handler behind a plain node:http server, with the official client and with requests that no client would send.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as ask } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { getRequestListener } from "@hono/node-server";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { mcpHandler, type McpOptions } from "../../src/server/mcp.ts";
import type { McpCaller } from "../../src/server/mcp/tool.ts";
import { cleanup, openTest } from "../support/open-test.ts";
import { assistant, everybody, onBook } from "./mcp-client.ts";

async function serve(t: TestContext, options: McpOptions<McpCaller>): Promise<URL> {
  const handle = await mcpHandler(options);
  const listener = getRequestListener((request) => handle(request, everybody));
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(t, () => server.closeAllConnections());
  cleanup(t, () => void server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

test("the official client works over a real connection, and what it leaves is nothing", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });
  const url = await serve(t, { allow: "operate", run: onBook(book) });
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport);
  cleanup(t, () => client.close());
  const { call } = assistant(client);

  const made = await call("jobs_enqueue", { name: "send-receipt" });
  const listed = await call("jobs_list");
  await transport.terminateSession();

  assert.equal(client.getServerVersion()?.name, "daybook");
  assert.match(client.getInstructions() ?? "", /durable backend/);
  assert.deepEqual(
    (listed.value["items"] as { id: string }[]).map(({ id }) => id),
    [made.value["id"]],
  );
});

test("who hangs up has the call ended", async (t) => {
  const begun = Promise.withResolvers<AbortSignal>();
  const url = await serve(t, {
    allow: "read",
    run({ signal }) {
      begun.resolve(signal);
      return new Promise(() => undefined);
    },
  });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "jobs_list" } });
  const accept = "application/json, text/event-stream";

  const request = ask(url, { method: "POST", headers: { accept, "content-type": "application/json" } });
  request.on("error", () => undefined).end(body);
  const signal = await begun.promise;
  request.destroy();

  if (!signal.aborted) await once(signal, "abort");
  assert.equal(signal.aborted, true);
});

test("what is no message of the protocol is refused, and the next one is answered", async () => {
  const { ran, send } = await raw();
  const call = (name: unknown, args: unknown): string =>
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

  const statuses = [
    await send("", { method: "GET" }),
    await send("", { method: "DELETE" }),
    await send(list, { headers: { accept: "text/html" } }),
    await send(list, { headers: { "content-type": "text/plain" } }),
    await send(list, { headers: { "mcp-protocol-version": "1999-01-01" } }),
    await send("{"),
    await send(deep),
    await send("null"),
    await send(JSON.stringify(Array.from({ length: 101 }, () => JSON.parse(list) as unknown))),
    await send(`"${"x".repeat(5_000_000)}"`),
  ].map(({ status }) => status);
  const messages = await Promise.all([
    send(call("jobs_list", { name: "\u0000" })),
    send(call("jobs_list", "all")),
    send(call(7, {})),
    send(call("jobs_enqueue", { name: "a", params: JSON.parse(`{"__proto__":{"a":1}}`) as unknown })),
    send(call("jobs_list", JSON.parse(deep.slice(50_000, 150_000)) as unknown)),
    send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"constructor","arguments":{}}}`),
    send(list),
  ]);

  assert.deepEqual(statuses, [405, 405, 406, 415, 400, 400, 400, 400, 400, 413]);
  assert.deepEqual(
    messages.map(({ status }) => status),
    messages.map(() => 200),
  );
  for (const { text } of messages) assert.doesNotMatch(text, /\/src\/|node_modules|    at /);
  assert.match(messages.at(-1)?.text ?? "", /"name":"jobs_list"/);
  // A name of NUL is a text; the library would refuse it.
  assert.deepEqual(ran, ["jobs.list"]);
});

async function raw(): Promise<{
  ran: string[];
  send(
    body: string,
    init?: { method?: string; headers?: Record<string, string> },
  ): Promise<{ status: number; text: string }>;
}> {
  const ran: string[] = [];
  const handle = await mcpHandler({
    allow: "read",
    run({ key }) {
      ran.push(key);
      return { items: [], next: null };
    },
  });
  return {
    ran,
    async send(body, { method = "POST", headers = {} } = {}) {
      const usual = { accept: "application/json, text/event-stream", "content-type": "application/json" };
      const given = method === "POST" ? { body } : {};
      const request = new Request("http://127.0.0.1/mcp", { method, headers: { ...usual, ...headers }, ...given });
      const response = await handle(request, everybody);
      return { status: response.status, text: await response.text() };
    },
  };
}
