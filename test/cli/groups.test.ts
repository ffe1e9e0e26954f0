import assert from "node:assert/strict";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, parsed, runCli, startCli } from "./run-cli.ts";

const quick = job("quick", { run: () => undefined });
const failing = job("fail", {
  attempts: 1,
  run() {
    throw new Error("no paper");
  },
});

for (const backend of cliBackends) {
  test(`${backend}: a group is listed and shown with its progress and its jobs`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [quick, failing] });
    const made = await book.groups.create({ name: "night", mode: "sequential", onFailure: "skip" }, (group) => {
      group.add(quick, {});
      group.add(failing, {});
      group.add(quick, {});
    });
    const open = await answer(["groups", "list", "--status", "open"], url);
    await (await book.startWorker()).idle();
    await book.groups.create({ mode: "parallel" }, (group) => group.add("quick", {}, { in: "1h" }));

    const shown = await answer(["groups", "show", made.id], url);
    const words = await runCli(["groups", "show", made.id, "--book", url]);
    const partial = await answer(["groups", "list", "--status", "partial"], url);
    const listed = await runCli(["groups", "list", "--limit", "1", "--book", url]);
    const theirs = await refusal(["groups", "show", made.id, "--tenant", "acme"], url);
    const none = await answer(["groups", "list", "--tenant", "acme"], url);

    const zero = { waiting: 0, queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0, skipped: 0 };
    assert.deepEqual(
      items(open).map((each) => [each["id"], each["progress"]]),
      [[made.id, { ...zero, total: 3, queued: 1, waiting: 2 }]],
    );
    assert.deepEqual(
      [shown["name"], shown["mode"], shown["onFailure"], shown["status"]],
      ["night", "sequential", "skip", "partial"],
    );
    assert.deepEqual(shown["progress"], { ...zero, total: 3, completed: 1, failed: 1, skipped: 1 });
    assert.deepEqual(
      shown["members"],
      (["completed", "failed", "skipped"] as const).map((status, slot) => {
        const { id, name } = made.jobs[slot] ?? { id: "", name: "" };
        return { slot, id, name, status, attempt: 1 };
      }),
    );
    assert.match(String(shown["finishedAt"]), /Z$/);
    assert.match(words.stdout, /mode\tsequential, on failure skip\nstatus\tpartial\n/);
    assert.match(words.stdout, /progress\t1 of 3 completed, 1 failed, 1 skipped\n/);
    assert.match(words.stdout, new RegExp(`\n2\t${made.jobs[1]?.id}\tfail\tfailed\t1\n3\t\\S+\tquick\tskipped\t1\n$`));
    assert.equal(items(partial).length, 1);
    assert.match(listed.stdout, /^id\tname\tmode\ton failure\tstatus\tcreated\tprogress\n.*\tparallel\tstop\topen\t/);
    assert.match(listed.stderr, /^There are more: daybook groups list .*--after \S+\n$/);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
    assert.deepEqual(none, { items: [], next: null });
  });

  test(`${backend}: a group is cancelled once, and waited for until it has ended`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [quick] });
    const made = await book.groups.create({ mode: "parallel" }, (group) => {
      group.add(quick, {});
      group.add(quick, {});
    });
    const other = await book.groups.create({ mode: "parallel" }, (group) => group.add(quick, {}));

    const late = await refusal(["groups", "wait", made.id, "--timeout", "1ms"], url);
    const theirs = await refusal(["groups", "cancel", made.id, "--tenant", "acme"], url);
    const cancelled = await answer(["groups", "cancel", made.id], url);
    const again = await refusal(["groups", "cancel", made.id], url);
    const ended = await runCli(["groups", "wait", made.id, "--book", url, "--json"]);
    const waiting = startCli(["groups", "wait", other.id, "--timeout", "1m", "--book", url]);
    await book.startWorker();
    const { code, stdout } = await waiting.ended;

    assert.deepEqual(late.slice(0, 2), [10, "timeout"]);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
    assert.deepEqual(cancelled, { id: made.id, status: "cancelled" });
    assert.deepEqual(again.slice(0, 2), [5, "conflict"]);
    assert.deepEqual([ended.code, parsed(ended.stdout)["status"]], [22, "cancelled"]);
    assert.equal(code, 0);
    assert.match(stdout, /status\tcompleted\nprogress\t1 of 1 completed\n/);
  });
}
