import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "../../src/storage/sql.ts";
import { notePruning } from "../../src/telemetry/retention/remove.ts";
import { backends, openTestStore } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a prune of more rows than a call has arguments is noted with its first and its last", async (t) => {
      const { store } = await openTestStore(t, backend);
      const made = Array.from({ length: 200_000 }, (_, index) => 1_000_000 - index);

      await store.write((tx) => notePruning(tx, { tenant: "default", what: "job", filter: "{}", removed: 1, made }));

      assert.deepEqual(await store.read(sql`select first_at, last_at from daybook_pruning`), [
        { first_at: 800_001, last_at: 1_000_000 },
      ]);
    });

    test("a prune of what has no time of its own is noted without one", async (t) => {
      const { store } = await openTestStore(t, backend);

      await store.write((tx) => notePruning(tx, { tenant: "default", what: "reservation", filter: "{}", removed: 1 }));

      assert.deepEqual(await store.read(sql`select first_at, last_at from daybook_pruning`), [
        { first_at: null, last_at: null },
      ]);
    });
  });
}
