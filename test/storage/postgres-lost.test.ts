// The connection is lost: before the commit the unit runs again, during the commit nobody knows.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { Client } from "pg";
import { manualClock } from "../../src/core/manual-clock.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Tx } from "../../src/storage/store.ts";
import { cleanup, openTestStore, testUrl } from "../support/open-test.ts";
import { createPairs, numbered, readPairs, unitOf, writePair } from "./pair.ts";
import { startProxy } from "./postgres-proxy.ts";

const kinds = ["user", "engine", "shared"] as const;

/** An operator's own connection. */
async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

const backendOf = async (tx: Tx): Promise<number> =>
  (await tx.get<{ pid: number }>(sql`select pg_backend_pid() as pid`))?.pid ?? 0;

for (const by of kinds) {
  describe(`${unitOf(by)}`, () => {
    test("runs again when its connection is ended before it commits", async (t) => {
      const { store, url } = await openTestStore(t, "postgres");
      await createPairs(store);
      const operator = await connect(t, url);
      let runs = 0;

      await store.write(
        async (tx) => {
          const pid = await backendOf(tx);
          await writePair(tx, "a");
          if (++runs > 1) return;
          // Waits until it is gone.
          await operator.query("select pg_terminate_backend($1, 5000)", [pid]);
          await tx.run(sql`insert into pair (id, half) values ('never', 1)`);
        },
        { by },
      );

      assert.equal(runs, 2);
      assert.deepEqual(await readPairs(store), ["a"]);
    });

    test("runs again even when it hides that its connection was lost", async (t) => {
      const { store, url } = await openTestStore(t, "postgres");
      await createPairs(store);
      const operator = await connect(t, url);
      let runs = 0;

      const written = await store.write(
        async (tx) => {
          const pid = await backendOf(tx);
          if (++runs === 1) await operator.query("select pg_terminate_backend($1, 5000)", [pid]);
          try {
            return await writePair(tx, "a");
          } catch {
            throw new Error("it hides the reason");
          }
        },
        { by },
      );

      assert.equal(written, "a");
      assert.equal(runs, 2);
    });

    test("has an unknown outcome when the commit does not reach the server", async (t) => {
      const proxy = await startProxy(t, await testUrl(t, "postgres"));
      const { store } = await openTestStore(t, "postgres", { url: proxy.url });
      await createPairs(store);

      proxy.cutAt("commit", "request");
      const writing = store.write((tx) => writePair(tx, "a"), { by });

      await assert.rejects(writing, { code: "unknown_outcome", message: /lost while committing.*Look before you/ });
      assert.deepEqual(await readPairs(store), []);
      await store.write((tx) => writePair(tx, "b"), { by });
      assert.deepEqual(await readPairs(store), ["b"]);
    });

    test("has an unknown outcome when the answer to its commit is lost", async (t) => {
      const proxy = await startProxy(t, await testUrl(t, "postgres"));
      const { store } = await openTestStore(t, "postgres", { url: proxy.url });
      await createPairs(store);

      proxy.cutAt("commit", "answer");
      const writing = store.write((tx) => writePair(tx, "a"), { by });

      await assert.rejects(writing, { code: "unknown_outcome" });
      assert.deepEqual(await readPairs(store), ["a"]);
    });
  });
}

test("when the commit of a shared group is lost, every unit of it is told so", async (t) => {
  const proxy = await startProxy(t, await testUrl(t, "postgres"));
  const { store } = await openTestStore(t, "postgres", { url: proxy.url });
  await createPairs(store);

  proxy.cutAt("commit", "answer");
  const outcomes = await Promise.allSettled(
    numbered(10).map((id) => store.write((tx) => writePair(tx, id), { by: "shared" })),
  );

  const codes = outcomes.map((outcome) => outcome.status === "rejected" && (outcome.reason as { code: string }).code);
  assert.deepEqual(new Set(codes), new Set(["unknown_outcome"]));
  assert.deepEqual(await readPairs(store), numbered(10));
});

test("a transaction in which something failed unnoticed is not acknowledged", async (t) => {
  const { store } = await openTestStore(t, "postgres");
  await createPairs(store);

  // It takes away the savepoint that guards each statement of a user, so that letting go of it fails.
  const writing = store.write(
    async (tx) => {
      await writePair(tx, "a");
      await tx.run(sql`release savepoint unit`);
    },
    { by: "user" },
  );

  await assert.rejects(writing, { code: "internal", message: /failed unnoticed, so nothing of it was kept/ });
  assert.deepEqual(await readPairs(store), []);
});

test("idle connections that the server ended are replaced without an error", async (t) => {
  const { store, url } = await openTestStore(t, "postgres");
  await createPairs(store);
  await Promise.all(numbered(8).map((id) => store.write((tx) => writePair(tx, id))));
  const operator = await connect(t, url);

  await operator.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where datname = current_database() and application_name = 'daybook'`,
  );
  const later = numbered(8).map((id) => `x${id}`);
  await Promise.all(later.map((id) => store.write((tx) => writePair(tx, id), { by: "user" })));
  await store.write((tx) => writePair(tx, "y"), { by: "shared" });

  assert.deepEqual(await readPairs(store), [...numbered(8), ...later, "y"]);
});

test("a server that stays away is reported as unavailable, after a bounded number of attempts", async (t) => {
  const clock = manualClock();
  const proxy = await startProxy(t, await testUrl(t, "postgres"));
  const { store } = await openTestStore(t, "postgres", { url: proxy.url, clock });
  await createPairs(store);
  await store.write((tx) => writePair(tx, "a"), { by: "shared" });
  const codes: string[] = [];

  proxy.down();
  for (const by of kinds) {
    store.write((tx) => writePair(tx, "b"), { by }).catch((error: { code: string }) => codes.push(error.code));
  }
  while (codes.length < kinds.length) await clock.advance(100);
  await assert.rejects(store.read(sql`select 1`), { code: "unavailable" });
  proxy.up();

  assert.deepEqual(new Set(codes), new Set(["unavailable"]));
  await store.write((tx) => writePair(tx, "c"));
  await store.write((tx) => writePair(tx, "d"), { by: "shared" });
  assert.deepEqual(await readPairs(store), ["a", "c", "d"]);
});

test("units that began while the server was away are written when it is back", async (t) => {
  const clock = manualClock();
  const proxy = await startProxy(t, await testUrl(t, "postgres"));
  const { store } = await openTestStore(t, "postgres", { url: proxy.url, clock });
  await createPairs(store);
  let settled = 0;

  proxy.down();
  const writes = kinds.map((by) => store.write((tx) => writePair(tx, by), { by }).finally(() => settled++));
  await clock.advance(5);
  proxy.up();
  while (settled < kinds.length) await clock.advance(5);
  await Promise.all(writes);

  assert.deepEqual(await readPairs(store), kinds.toSorted());
});
