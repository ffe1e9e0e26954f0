import assert from "node:assert/strict";
import { test } from "node:test";
import { createAgents } from "../../src/calls/client/connector.ts";
import { allowList } from "../../src/calls/client/destination.ts";
import { systemClock } from "../../src/core/clock.ts";
import { cleanup } from "../support/open-test.ts";
import { target } from "./target.ts";

test("connections in use stay open, however many others are opened meanwhile", async (t) => {
  const server = await target(t);
  const agents = createAgents({ lookup: undefined, ca: [] }, systemClock);
  cleanup(t, () => agents.close());
  const listOf = (n: number) => allowList(["127.0.0.1", `10.0.0.${n}`]);

  const status = await agents.use(listOf(0), async (dispatcher) => {
    // Lists of sixty tenants: more than are kept.
    for (let n = 1; n <= 60; n++) await agents.use(listOf(n), () => Promise.resolve());
    const answer = await dispatcher.request({ origin: server.url, path: "/", method: "GET" });
    await answer.body.text();
    return answer.statusCode;
  });

  assert.equal(status, 200);
});
