// The runs of one listener in the views of the first design are found by an index, however many others there are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { app } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { rawSql } from "../../src/storage/sql.ts";
import { backends, openTest } from "../support/open-test.ts";
import { insertRuns } from "../telemetry/raw-run.ts";

const kitchen = app("kitchen", { setup: (home) => void home.on("light.*", { name: "lights" }, () => undefined) });

const asked = `select hi.id from handler_invocations hi join listeners l on l.id = hi.listener_id
  where l.app_key = 'kitchen' and l.instance_index = 0 and l.name = 'lights' order by hi.execution_start_dtme desc limit 50`;

for (const backend of backends) {
  test(`${backend}: the last runs of a listener are read by its name, and no others`, async (t) => {
    const { book } = await openTest(t, backend, { use: [kitchen], views: true });
    const { store } = roomsOf(book);
    const own = { kind: "listener", app: "kitchen", instance: 0, durationMs: 1 };
    const names = Array.from({ length: 2000 }, (_, n) => (n % 40 === 0 ? "lights" : `other-${n % 40}`));
    await insertRuns(
      store,
      names.map((name, n) => ({ ...own, name, registration: name, startedAt: 1_700_000_000_000 + n })),
    );
    await store.write((tx) => tx.run(rawSql(backend === "sqlite" ? "analyze" : "analyze daybook_run")));

    const explain = backend === "sqlite" ? "explain query plan" : "explain";
    const plan = JSON.stringify(await store.readHeavy(rawSql(`${explain} ${asked}`)));
    const found = await store.readHeavy(rawSql(asked));

    assert.match(
      plan,
      backend === "sqlite" ? /runs_registered \(tenant_id=\? AND <expr>=\?\)/ : /Index Cond[^}]*COALESCE/,
    );
    assert.equal(found.length, 50);
  });
}
