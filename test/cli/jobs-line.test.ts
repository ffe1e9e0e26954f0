import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { answer, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

const quick = job("quick", { run: () => undefined });

for (const backend of cliBackends) {
  test(`${backend}: a job is moved and prioritised from a shell, and says where it stands`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [quick] });
    const ids = (await book.jobs.enqueueMany(quick, [{}, {}, {}])).map(({ id }) => id);
    const [a = "", b = "", c = ""] = ids;
    const places = async (): Promise<unknown[]> =>
      Promise.all(ids.map(async (id) => (await answer(["jobs", "place", id], url))["place"]));

    const moved = await answer(["jobs", "move", c, "--before", a], url);
    assert.deepEqual([moved["id"], moved["priority"], await places()], [c, 0, [2, 3, 1]]);
    await answer(["jobs", "move", a, "--after", b], url);
    assert.deepEqual(await places(), [3, 2, 1]);
    await answer(["jobs", "move", a, "--first"], url);
    assert.deepEqual(await places(), [1, 3, 2]);
    const words = await runCli(["jobs", "move", a, "--last", "--book", url]);
    assert.match(words.stdout, new RegExp(`^${a} has position \\d+ in priority 0\n$`));
    assert.deepEqual(await places(), [3, 2, 1]);

    const prioritised = await answer(["jobs", "prioritise", b, "7"], url);
    assert.deepEqual([prioritised["priority"], await places()], [7, [3, 1, 2]]);
    assert.equal((await answer(["jobs", "prioritise", b, "-7"], url))["priority"], -7);
    const across = await refusal(["jobs", "move", a, "--before", b], url);
    assert.deepEqual(across.slice(0, 2), [5, "conflict"]);
    assert.match(across[2], /prioritise it to -7 first/);

    for (const args of [
      ["move", a, "--first"],
      ["prioritise", a, "1"],
      ["place", a],
    ]) {
      const theirs = await refusal(["jobs", ...args, "--tenant", "acme"], url);
      assert.deepEqual(theirs.slice(0, 2), [4, "not_found"], args.join(" "));
    }

    const json = await answer(["jobs", "place", a], url);
    assert.deepEqual(json, { id: a, status: "queued", waitsFor: null, place: 2, of: 3, startsAt: null });
    const stands = await runCli(["jobs", "place", a, "--book", url]);
    assert.equal(stands.stdout, "2 of 3 in line: nobody can say when it starts\n");
  });

  test(`${backend}: what has ended stands in no line, and is not moved, prioritised or edited`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [quick] });
    const { id } = await book.jobs.enqueue(quick, {});
    const worker = await book.startWorker();
    await worker.idle();
    await worker.stop();
    const { id: waits } = await book.jobs.enqueue(quick, {}, { in: "1h" });
    const { id: stands } = await book.jobs.enqueue(quick, {});

    const none = await answer(["jobs", "place", id], url);
    const words = await runCli(["jobs", "place", waits, "--book", url]);
    const estimated = await answer(["jobs", "place", stands], url);
    const refused = await Promise.all([
      refusal(["jobs", "move", id, "--first"], url),
      refusal(["jobs", "prioritise", id, "1"], url),
      refusal(["jobs", "edit", id, "--params", "{}"], url),
    ]);

    assert.deepEqual(none, { id, status: "completed", waitsFor: null, place: null, of: null, startsAt: null });
    assert.equal(words.stdout, `${waits} is waiting for its time and stands in no line\n`);
    assert.match(String(estimated["startsAt"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(
      refused.map(([exit]) => exit),
      [5, 5, 5],
    );
    assert.match(refused[2]?.[2] ?? "", /is completed and cannot be edited/);
  });

  test(`${backend}: params are edited, and checked by the definition that a file exports`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const { id } = await book.jobs.enqueue("count", { n: 1 });
    const folder = testFolder(t);
    const index = join(import.meta.dirname, "../../src/index.ts");
    const zod = join(import.meta.dirname, "../../node_modules/zod/index.js");
    writeFileSync(
      join(folder, "jobs.ts"),
      `import { job } from ${JSON.stringify(index)};
      import { z } from ${JSON.stringify(zod)};
      export const count = job("count", { params: z.object({ n: z.number() }), run: () => undefined });`,
    );

    const edited = await answer(["jobs", "edit", id, "--params", '{"n": 2}'], url);
    const checked = await answer(["jobs", "edit", id, "--params", '{"n": 3}', "--from", "jobs.ts"], url, {
      cwd: folder,
    });
    const wrong = await refusal(["jobs", "edit", id, "--params", '{"n": "x"}', "--from", "jobs.ts"], url, {
      cwd: folder,
    });
    const theirs = await refusal(["jobs", "edit", id, "--params", "{}", "--tenant", "acme"], url);

    assert.deepEqual(edited, { id, name: "count", status: "queued" });
    assert.deepEqual(checked, edited);
    assert.deepEqual(wrong.slice(0, 2), [2, "invalid"]);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
    assert.deepEqual((await book.jobs.get(id)).params, { n: 3 });
  });

  test(`${backend}: a queue is renumbered, after a dry run has said how much of it`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    await book.jobs.enqueue("a", {}, { queue: "mail" });
    await book.jobs.enqueue("a", {}, { queue: "mail" });

    const dry = await answer(["queues", "normalise", "mail", "--dry-run"], url);
    const done = await answer(["queues", "normalise", "mail"], url);
    const again = await runCli(["queues", "normalise", "mail", "--book", url]);
    const theirs = await refusal(["queues", "normalise", "mail", "--tenant", "acme"], url);

    assert.deepEqual(dry, { queue: "mail", dryRun: true, jobs: 2, changed: 2 });
    assert.deepEqual(done, { queue: "mail", dryRun: false, jobs: 2, changed: 2 });
    assert.equal(again.stdout, "0 of 2 open jobs got another number\n");
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
  });
}
