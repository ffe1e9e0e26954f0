// The commands that look at how things went, as a program and as a person uses them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { rawSql } from "../../src/storage/sql.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { startSession } from "../../src/telemetry/session.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { openTestStore } from "../support/open-test.ts";
import { insertRuns } from "../telemetry/raw-run.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

const hour = 3_600_000;

for (const backend of cliBackends) {
  test(`${backend}: summaries, overview, errors, the slowest, lists, logs, metrics and retention answer`, async (t) => {
    const { store, url } = await openTestStore(t, backend);
    const now = systemClock.now();
    const key = await store.write((tx) => startSession(tx, thisProcess(), "{}"));
    const lamp = { sessionSeq: key.seq, name: "lamp", app: "home", instance: 0, registration: "lamp" };
    const error = { type: "TypeError", message: "no bulb 7" };
    const ids = await insertRuns(store, [
      { ...lamp, startedAt: now - 200 * hour, durationMs: 3 },
      { ...lamp, startedAt: now - hour, durationMs: 5 },
      { ...lamp, startedAt: now - hour, durationMs: 900, status: "error", error },
      { name: "door", startedAt: now - hour, durationMs: 1 },
      { name: "door", startedAt: now - hour, durationMs: 1, tenant: "acme" },
    ]);
    await store.write((tx) =>
      tx.run(
        rawSql(`insert into daybook_run_log (tenant_id, run_id, logged_at, level, message)
        values ('default', '${ids[2]}', ${now}, 'warn', 'flickers')`),
      ),
    );
    await foldRuns(store);

    const summary = items(await answer(["runs", "summary"], url));
    const overview = await answer(["runs", "overview", "--since", "3h"], url);
    const errors = items(await answer(["errors", "--app", "home"], url));
    const slow = items(await answer(["runs", "slow", "--limit", "1"], url));
    const list = items(await answer(["runs", "list", "--name", "lamp", "--kind", "listener", "--since", "2h"], url));
    const logs = items(await answer(["logs", "--level", "warn"], url));
    await answer(["runs", "pin", ids[0] ?? "", "--note", "first light"], url);
    const pinned = await answer(["retain"], url);
    await answer(["runs", "unpin", ids[0] ?? ""], url);
    const dry = await answer(["retain"], url);
    const done = await answer(["retain", "--apply"], url);
    const metrics = await runCli(["metrics", "--book", url]);
    const session = await answer(["sessions", "show", key.id], url);
    const listed = items(await answer(["sessions"], url));

    assert.deepEqual(
      summary.map(({ name, app, runs, errors: failed, health }) => [name, app, runs, failed, health]),
      [
        ["door", null, 1, 0, "excellent"],
        ["lamp", { key: "home", instance: 0 }, 2, 1, "critical"],
      ],
    );
    assert.equal((summary[1]?.["lastError"] as { runId?: string } | undefined)?.runId, ids[2]);
    assert.deepEqual([overview["runs"], overview["errors"]], [3, 1]);
    assert.match(String(overview["since"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/);
    assert.deepEqual(
      errors.map(({ runs, name }) => [runs, name]),
      [[1, "lamp"]],
    );
    assert.deepEqual(
      slow.map(({ id }) => id),
      [ids[2]],
    );
    assert.deepEqual(
      list.map(({ id }) => id),
      [ids[2], ids[1]],
    );
    assert.deepEqual(
      logs.map(({ message, name }) => [message, name]),
      [["flickers", "lamp"]],
    );
    assert.deepEqual([pinned["runs"], dry["runs"], dry["dryRun"], done["runs"]], [0, 1, true, 1]);
    assert.match(
      metrics.stdout,
      /^daybook_runs_total\{kind="listener",name="lamp",app="home",instance="0",status="error"\} 1$/m,
    );
    assert.doesNotMatch(metrics.stdout, /acme/);
    assert.deepEqual([session["runs"], session["errors"], items(session).length], [3, 1, 1]);
    assert.deepEqual(
      listed.map(({ id }) => id),
      [key.id],
    );
  });
}

test("people get tables, and slips are answered with what was meant", async (t) => {
  const { store, url } = await openTestStore(t, "sqlite");
  const startedAt = systemClock.now() - hour;
  await insertRuns(store, [
    { name: "lamp", startedAt, durationMs: 7, status: "error", error: { type: "E", message: "dark" } },
  ]);
  await foldRuns(store);

  const summary = await runCli(["runs", "summary", "--book", url]);
  const overview = await runCli(["runs", "overview", "--book", url]);
  const errors = await runCli(["errors", "--book", url]);
  const quiet = await runCli(["runs", "overview", "--app", "nobody", "--book", url]);
  const none = await runCli(["runs", "slow", "--app", "nobody", "--book", url]);
  const retain = await runCli(["retain", "--book", url]);

  assert.match(summary.stdout, /^listener\tlamp\t\t1\t1\tcritical 0.0 %\t\S+ ms\t.+\t\S+ E: dark$/m);
  assert.match(overview.stdout, /^all\t1\t1\tcritical 0.0 %\t/m);
  assert.match(overview.stdout, /\n *[▁-█] *\n$/);
  assert.match(quiet.stdout, /\nall\t0\t0\t\t\t\t\n$/);
  assert.match(errors.stdout, /^1\t\S+Z\tlistener\tlamp\t\tE: dark\t\S+$/m);
  assert.equal(none.stdout, "took\tid\tkind\tname\tapp\tstatus\tstarted\n");
  assert.match(retain.stdout, /^nothing would be removed\nby: [^\n]+\n$/);
  assert.deepEqual((await refusal(["runs", "summary", "--since", "yesterday"], url))[1], "invalid");
  assert.deepEqual((await refusal(["runs", "list", "--session", "nobody"], url))[1], "not_found");
});
