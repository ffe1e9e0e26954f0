// The long forms of test/records-processes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { backends } from "../support/open-test.ts";
import { killAtStatements } from "../support/record-kills.ts";
import { appendAll, openClients } from "../support/record-writers.ts";

const appendMs = 20_000;

for (const backend of backends) {
  test(`${backend}: killed before every statement, a transaction is whole or nothing`, async (t) => {
    const tried = await killAtStatements(t, backend, { first: 1, stride: 1 });
    t.diagnostic(`${tried} boundaries`);
  });

  test(`${backend}: eight clients append for ${appendMs / 1000} s, and no append is lost`, async (t) => {
    const clients = await openClients(t, backend, 8);
    const until = systemClock.monotonic() + appendMs;

    const made = await appendAll(clients, () => systemClock.monotonic() < until);

    t.diagnostic(`${made} appends`);
    assert.ok(made > 0);
  });
}
