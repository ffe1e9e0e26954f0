import assert from "node:assert/strict";
import { test } from "node:test";
import { createAgents } from "../../src/calls/client/connector.ts";
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
  const whose = (n: number) => ({ tenant: `t${n}`, allow, alone: false });

  const status = await agents.use(whose(0), async (dispatcher) => {
    // More tenants than are kept.
    for (let n = 1; n <= 510; n++) await agents.use(whose(n), () => Promise.resolve());
    const answer = await dispatcher.request({ origin: server.url, path: "/", method: "GET" });
    await answer.body.text();
    return answer.statusCode;
  });

  assert.equal(status, 200);
});
