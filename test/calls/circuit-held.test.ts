import assert from "node:assert/strict";
import { test } from "node:test";
import { noteHost } from "../../src/calls/circuit.ts";
import { sql } from "../../src/storage/sql.ts";
import { openTestStore } from "../support/open-test.ts";
import { ok, openCalls, status, target, workAll } from "./target.ts";

test("postgres: a call that is locked when its host answers again goes with the next sweep", async (t) => {
  let answer = status(503);
  const server = await target(t, (...args) => answer(...args));
  const { book, url } = await openCalls(t, "postgres", { calls: { perHost: { concurrency: 1 } } });
  for (let n = 0; n < 7; n++) await book.calls.submit({ url: server.url });
  await workAll(book);
  const { store } = await openTestStore(t, "postgres", { url });
  const [held, gate] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  const holding = store.write(async (tx) => {
    const rows = await tx.all(sql`select seq from daybook_line where waits_for = 'order' for update`);
    held.resolve(rows.length);
    await gate.promise;
  });
  assert.equal(await held.promise, 1);

  await store.write((tx) => noteHost(tx, { tenant: "default", host: server.host, answered: true, failures: 0 }));
  gate.resolve();
  await holding;
  answer = ok;
  await workAll(book);

  const { items } = await book.calls.list({ status: "succeeded" });
  assert.equal(items.length, 2);
  assert.deepEqual(await book.read((tx) => tx.sql`select host from daybook_call_host`), []);
});
