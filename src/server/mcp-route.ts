// /mcp: the verbs as tools of an assistant that has a token. A call is run as a request of the API is, with its audit, its deadline and
// its operations; what tools there are is decided by the server and by the token.
import type { Asking, Router } from "./book-routes.ts";
import type { Gate, Known } from "./gate.ts";
import { headersOfAll } from "./guard.ts";
import { mcpHandler } from "./mcp.ts";
import type { Allow, McpCaller } from "./mcp/tool.ts";
import { bodyBytesMax } from "./read-input.ts";
import { everyRoute } from "./routes.ts";
import { runInput, type Asked } from "./run-route.ts";

type Parts = {
  readonly allow: Allow;
  readonly prefix: string;
  readonly gate: Gate;
  /** What a request of this caller for a verb is run with. */
  ask(context: Asking, known: Known, route: Asked["route"]): Asked;
  failed(error: unknown, context: Asking): void;
};

/** The caller of a tool, and the request that it came with. */
type ToolCaller = McpCaller & { readonly known: Known; readonly context: Asking };

export function addMcp(router: Router, { allow, prefix, gate, ask, failed }: Parts): void {
  // The SDK takes a fifth of a second to load, which a server that no assistant asks does not spend.
  let handler: ReturnType<typeof mcpHandler<ToolCaller>> | undefined;

  async function open(): ReturnType<typeof mcpHandler<ToolCaller>> {
    const routes = await everyRoute();
    return mcpHandler<ToolCaller>({
      allow,
      bodyBytesMax,
      onDefect: (error, { context }) => failed(error, context),
      async run({ key, input, signal, caller: { known: who, context } }) {
        const route = routes.find((each) => each.key === key);
        if (route === undefined) throw new Error(`${key} has no route`);
        // The tool ends when its call is cancelled, which comes with another request.
        const request = new Request(context.req.url, { method: "POST", signal });
        return runInput({ ...ask(context, who, route), request }, input);
      },
    });
  }

  router.all(`${prefix}/mcp`, async (context) => {
    const who = await gate.known(context);
    const { role, tokenId } = who.caller;
    const handle = await (handler ??= open());
    const response = await handle(context.req.raw, { role, tokenId, tenant: who.tenant, known: who, context });
    for (const [name, value] of Object.entries(headersOfAll)) response.headers.set(name, value);
    response.headers.set("cache-control", "no-store");
    return response;
  });
}
