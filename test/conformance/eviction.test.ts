import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "../../src/storage/sql.ts";
import { account } from "../../src/telemetry/retention/remove.ts";
import { backends, openTestStore } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a removal of more rows than a call has arguments is noted with its oldest and its newest", async (t) => {
      const { store } = await openTestStore(t, backend);
      const made = Array.from({ length: 200_000 }, (_, index) => 1_000_000 - index);

      await store.write((tx) => account(tx, "default", [{ what: "job", reason: "age", removed: 1, made }]));

      assert.deepEqual(await store.read(sql`select from_at, until_at from daybook_eviction`), [
        { from_at: 800_001, until_at: 1_000_000 },
      ]);
    });
  });
}
