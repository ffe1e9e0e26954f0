import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../src/storage/sql.ts";
import { attach } from "../../src/telemetry/attach.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { startSession } from "../../src/telemetry/session.ts";
import { openTestStore } from "../support/open-test.ts";
import { clockThatSleeps } from "../support/session-row.ts";

test("the time that an answer takes does not count as silence of others", async (t) => {
  const { clock, sleep } = clockThatSleeps();
  const { store } = await openTestStore(t, "sqlite", { clock });
  const slow: typeof store = {
    ...store,
    async read(statement) {
      const rows = await store.read<never>(statement);
      sleep(9000);
      return rows;
    },
  };
  const { watch } = await attach(slow, { metadata: "{}" });
  const { id } = await store.write((tx) => startSession(tx, thisProcess(), "{}"));

  for (let count = 0; count < 8; count++) {
    await store.write(() => undefined); // its own beat
    await watch.look();
  }

  assert.deepEqual(await store.read(sql`select status from daybook_session where id = ${id}`), [{ status: "running" }]);
});
