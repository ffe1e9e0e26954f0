// The servers that the demo's calls go to, on this machine alone. They are as servers are: mostly quick, at times slow, and now and
// then they fail. For twenty minutes of the day the stock does not answer at all.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { between, chance, pick } from "./chance.ts";
import { takes, world } from "./world.ts";

type Answer = { readonly status: number; readonly ms: number; readonly body: unknown };

export type Servers = { close(): Promise<void> };

/** Starts both; a port that is taken is left to whoever has it, and a free one is used. */
export async function startServers(): Promise<Servers> {
  const [api, hooks] = await Promise.all([start(4601, askApi), start(4602, askHooks)]);
  [world.api, world.hooks] = [urlOf(api), urlOf(hooks)];
  return {
    async close() {
      for (const server of [api, hooks]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

/** What `calls: { allow }` needs, since calls go to public addresses unless something else is opened. */
export function allowed(): string[] {
  return [world.api, world.hooks].map((url) => new URL(url).host);
}

let asked = 0;

function askApi(request: IncomingMessage): Answer {
  const { pathname } = new URL(request.url ?? "/", "http://demo");
  const at = ++asked;
  const now = world.clock.now();
  if (pathname === "/reserve" && now >= world.outage.from && now < world.outage.to) {
    return { status: 503, ms: between(4000, 9000, "down", at), body: { error: "the stock database is being moved" } };
  }
  const luck = chance("api", pathname, at);
  if (luck < 0.02) return { status: 429, ms: 20, body: { error: "too many requests" } };
  if (luck < 0.05) return { status: 500, ms: between(200, 900, "broken", at), body: { error: "NullPointerException" } };
  // Every fifteenth answer or so is slow.
  const ms = luck > 0.93 ? between(1500, 4500, "slow", at) : between(35, 260, "quick", at);
  if (pathname === "/prices")
    return { status: 200, ms, body: { currency: "EUR", changed: between(0, 7, "prices", at) } };
  return { status: 200, ms, body: { reserved: true, shelf: pick(["A-3", "B-1", "B-7", "C-2"], at) } };
}

function askHooks(request: IncomingMessage): Answer {
  const at = ++asked;
  const luck = chance("hooks", request.url ?? "", at);
  if (luck < 0.03) return { status: 502, ms: between(100, 400, "gateway", at), body: { error: "bad gateway" } };
  return { status: 202, ms: between(15, 120, "hook", at), body: { accepted: true } };
}

async function start(port: number, answer: (request: IncomingMessage) => Answer): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => {
      const { status, ms, body } = answer(request);
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      void takes(ms, gone.signal)
        .then(() => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)))
        .catch(() => undefined);
    });
  });
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  return server;
}

function urlOf(server: Server): string {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the demo's server does not listen");
  return `http://127.0.0.1:${address.port}`;
}
