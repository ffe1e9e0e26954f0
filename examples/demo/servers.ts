// The servers that the demo's calls go to, on this machine alone. They are as servers are: mostly quick, at times slow, and now and
// then they fail. For twenty minutes of the day the stock does not answer at all.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";
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

/** What is asked for, and how often it was: an answer follows from that, and not from who came first. */
type Asked = { readonly path: string; readonly about: string; readonly time: number };

function askApi({ path, about, time }: Asked): Answer {
  const now = world.clock.now();
  if (now >= world.outage.from && now < world.outage.to) {
    return {
      status: 503,
      ms: between(4000, 9000, "down", about, time),
      body: { error: "the stock database is moved" },
    };
  }
  const luck = chance("api", path, about, time);
  if (luck < 0.02) return { status: 429, ms: 20, body: { error: "too many requests" } };
  if (luck < 0.05) return { status: 500, ms: between(200, 900, about, time), body: { error: "NullPointerException" } };
  // Every fifteenth answer or so is slow.
  const ms = luck > 0.93 ? between(1500, 4500, "slow", about, time) : between(35, 260, "quick", about, time);
  if (path === "/prices") return { status: 200, ms, body: { currency: "EUR", changed: between(0, 7, "prices", time) } };
  return { status: 200, ms, body: { reserved: true, shelf: pick(["A-3", "B-1", "B-7", "C-2"], about) } };
}

function askHooks({ path, about, time }: Asked): Answer {
  const luck = chance("hooks", path, about, time);
  if (luck < 0.03) return { status: 502, ms: between(100, 400, about, time), body: { error: "bad gateway" } };
  return { status: 202, ms: between(15, 120, "hook", about, time), body: { accepted: true } };
}

/** What a request is about: an order, an invoice, or an event and its key. */
const Asking = z.object({ orderId: z.string(), id: z.string(), type: z.string(), subject: z.string() }).partial();

async function read(request: IncomingMessage, times: Map<string, number>): Promise<Asked> {
  const path = new URL(request.url ?? "/", "http://demo").pathname;
  const body = await text(request);
  const { orderId, id, type, subject } = Asking.parse(body === "" ? {} : JSON.parse(body));
  const about = orderId ?? (subject === undefined ? id : `${type} ${subject}`) ?? "";
  const time = (times.get(`${path} ${about}`) ?? 0) + 1;
  times.set(`${path} ${about}`, time);
  return { path, about, time };
}

async function start(port: number, answer: (asked: Asked) => Answer): Promise<Server> {
  const times = new Map<string, number>();
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    void read(request, times)
      .then(async (asked) => {
        const { status, ms, body } = answer(asked);
        await takes(ms, gone.signal);
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      })
      // Whoever asked is gone.
      .catch(() => response.destroy());
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
