// The long forms of test/records-processes, and more writers than a call has room for arguments.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { entity } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
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

  test(`${backend}: 130,000 writers wait at the same time, and each is answered`, async (t) => {
    const Note = entity("note", { schema: z.object({ id: z.string() }), key: "id" });
    const { book } = await openTest(t, backend, { use: [Note], worker: false });
    const writers = Array.from({ length: 130_000 }, (_, index) => book.records.put(Note, { id: `n-${index}` }));
    const answers = Promise.allSettled(writers);

    assert.equal((await writers[0])?.revision, 1);
    await book.close();

    assert.equal((await answers).length, 130_000);
  });
}
