// An assistant for tests: the official client, which speaks with the handler in this process as it would over a network.
import type { TestContext } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ListToolsResultSchema, type CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { Book } from "../../src/index.ts";
import { mcpHandler, type McpOptions } from "../../src/server/mcp.ts";
import type { McpCaller } from "../../src/server/mcp/tool.ts";
import { cleanup } from "../support/open-test.ts";

export const everybody: McpCaller = { role: "admin", tenant: null };

export type Told = { readonly failed: boolean; readonly text: string; readonly value: Record<string, unknown> };

export type Assistant = {
  readonly client: Client;
  call(name: string, input?: Record<string, unknown>, signal?: AbortSignal): Promise<Told>;
  names(): Promise<string[]>;
};

/** Verbs run on this book, as the tenant of the caller. */
export function onBook(book: Book): McpOptions<McpCaller>["run"] {
  return ({ verb, input, signal, caller: { tenant } }) =>
    verb.run(tenant === null ? book : book.tenant(tenant), input, { signal, tenant });
}

export async function connect(
  t: TestContext,
  options: McpOptions<McpCaller>,
  caller: McpCaller = everybody,
): Promise<Assistant> {
  const handle = await mcpHandler(options);
  return connectBy(t, (request) => handle(request, caller));
}

export async function connectBy(
  t: TestContext,
  answer: (request: Request) => Promise<Response>,
  headers: Record<string, string> = {},
): Promise<Assistant> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL("http://127.0.0.1/mcp"), {
    requestInit: { headers },
    fetch: (url, init) => answer(new Request(url, init)),
  });
  await client.connect(transport);
  cleanup(t, () => client.close());
  return assistant(client);
}

export function assistant(client: Client): Assistant {
  return {
    client,
    async call(name, input = {}, signal) {
      const options = signal === undefined ? {} : { signal };
      const result = (await client.callTool({ name, arguments: input }, undefined, options)) as CallToolResult;
      const [first] = result.content;
      const text = first?.type === "text" ? first.text : "";
      return { failed: result.isError === true, text, value: result.structuredContent ?? {} };
    },
    // Not client.listTools(): that compiles the schemas of all answers, which takes a second.
    async names() {
      const { tools } = await client.request({ method: "tools/list" }, ListToolsResultSchema);
      return tools.map(({ name }) => name);
    },
  };
}
