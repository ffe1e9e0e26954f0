// Nobody waits for a lock without bound: a writer says `busy`, as it does on SQLite.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { limits } from "../../src/core/limits.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { sql } from "../../src/storage/sql.ts";
import { openTestStore, testUrl, cleanup } from "../support/open-test.ts";
import { createPairs, unitOf, writePair } from "./pair.ts";

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

/** So short that a test may wait for it; the book leaves a limit of the operator's own as it is. */
function impatient(url: string): string {
  const changed = new URL(url);
  changed.searchParams.set("options", "-c lock_timeout=50ms");
  return changed.href;
}

for (const by of ["user", "engine", "shared"] as const) {
  test(`${unitOf(by)} waits ${limits.busyMsMax} ms for a lock`, async (t) => {
    const { store } = await openTestStore(t, "postgres");

    const setting = await store.write((tx) => tx.get(sql`select current_setting('lock_timeout') as wait`), { by });

    assert.deepEqual(setting, { wait: `${limits.busyMsMax / 1000}s` });
  });

  test(`${unitOf(by)} that finds a row locked for too long is busy, and is done later`, async (t) => {
    const url = await testUrl(t, "postgres");
    const { store } = await openTestStore(t, "postgres", { url: impatient(url) });
    await createPairs(store);
    const other = await connect(t, url);
    await other.query("begin; lock table daybook.pair in access exclusive mode");

    await assert.rejects(
      store.write((tx) => writePair(tx, "a"), { by }),
      { code: "busy", message: /55P03.*another transaction holds the lock: try again/ },
    );
    await other.query("rollback");

    assert.equal(await store.write((tx) => writePair(tx, "a"), { by }), "a");
  });
}

test("a migration that another process holds up for too long is busy", async (t) => {
  const url = await testUrl(t, "postgres");
  const other = await connect(t, url);
  await other.query("begin");
  await other.query("select pg_advisory_xact_lock(hashtextextended('daybook:migrate', 0))");

  await assert.rejects(openStore(impatient(url), migrations), { code: "busy" });
  await other.query("rollback");

  await (await openStore(impatient(url), migrations)).close();
});
