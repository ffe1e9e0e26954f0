import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { createAgents, type Lookup } from "../../src/calls/client/connector.ts";
import { allowList } from "../../src/calls/client/destination.ts";
import { systemClock } from "../../src/core/clock.ts";
import { cleanup } from "../support/open-test.ts";
import { target } from "./target.ts";

test("connections in use stay open, however many others are opened meanwhile", async (t) => {
  const server = await target(t);
  const agents = createAgents(
    { lookup: undefined, ownAddresses: undefined, ca: [], responseBytesMax: 65_536 },
    systemClock,
  );
  cleanup(t, () => agents.close());
  const allow = allowList(["127.0.0.1"]);
  const whose = (n: number) => ({ tenant: `t${n}`, origin: server.url, allow, alone: false });

  const status = await agents.use(whose(0), async (dispatcher) => {
    // More tenants than are kept.
    for (let n = 1; n <= 510; n++) await agents.use(whose(n), () => Promise.resolve());
    const answer = await dispatcher.request({ origin: server.url, path: "/", method: "GET" });
    await answer.body.text();
    return answer.statusCode;
  });

  assert.equal(status, 200);
});

test(
  "of connections that no request uses a hundred stay open, those that were used last",
  { timeout: 20_000 },
  async (t) => {
    const open = new Set<Socket>();
    let made = 0;
    let closed: (() => void) | undefined;
    // A server that asks its callers to keep connections, as many do.
    const server = createServer((_request, response) => response.writeHead(200, { "keep-alive": "timeout=60" }).end());
    server.on("connection", (socket) => {
      made++;
      open.add(socket);
      socket.once("close", () => {
        open.delete(socket);
        closed?.();
      });
    });
    cleanup(t, () => {
      server.closeAllConnections();
      server.close();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const lookup: Lookup = (_host, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }]);
    const agents = createAgents({ lookup, ownAddresses: undefined, ca: [], responseBytesMax: 65_536 }, systemClock);
    cleanup(t, () => agents.close());
    const allow = allowList(["127.0.0.0/8"]);
    // Tenants, and hosts of one tenant.
    const send = (n: number): Promise<void> => {
      const [tenant, host] = n < 70 ? [`t${n}`, "127.0.0.1"] : ["t", `host-${n}.test`];
      const origin = `http://${host}:${port}`;
      return agents.use({ tenant, origin, allow, alone: false }, async (dispatcher) => {
        const { body } = await dispatcher.request({ origin, path: "/", method: "GET" });
        await body.text();
      });
    };

    for (let n = 0; n < 140; n++) await send(n);
    await new Promise<void>((resolve) => {
      closed = () => open.size <= 100 && resolve();
      closed();
    });

    assert.deepEqual([made, open.size], [140, 100]);
    for (let n = 40; n < 140; n++) await send(n);
    assert.equal(made, 140);
    await send(0);
    assert.equal(made, 141);
  },
);
