import assert from "node:assert/strict";
import { test } from "node:test";
import { openTest } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

for (const backend of cliBackends) {
  test(`${backend}: a template is created, shown, edited, archived and restored`, async (t) => {
    const { url } = await openTest(t, backend);
    const given = ["--queue", "mail", "--priority", "-5", "--attempts", "8", "--timeout", "30s", "--losses", "1"];

    const made = await answer(
      [
        ...["templates", "create", "reminder", "--job", "send", "--params", '{"copies": 2}', ...given],
        ...["--backoff", "1s, 1m"],
      ],
      url,
    );
    const taken = await refusal(["templates", "create", "reminder", "--job", "send"], url);
    const words = await runCli(["templates", "show", "reminder", "--book", url]);
    const edited = await answer(
      ["templates", "edit", "reminder", "--params", "{}", "--priority", "none", "--backoff", '{"base": "2s"}'],
      url,
    );
    const archived = await answer(["templates", "archive", "reminder"], url);
    const restored = await answer(["templates", "restore", "reminder"], url);
    const theirs = await refusal(["templates", "show", "reminder", "--tenant", "acme"], url);
    const misspelt = await refusal(["templates", "archive", "remindr"], url);

    const settings = { queue: "mail", priority: -5, attempts: 8, timeoutMs: 30_000, losses: 1, backoff: ["1s", "1m"] };
    const { id: _id, createdAt, updatedAt, ...rest } = made;
    assert.deepEqual(rest, {
      name: "reminder",
      job: "send",
      params: { copies: 2 },
      ...settings,
      notify: null,
      archivedAt: null,
      revision: 1,
    });
    assert.deepEqual([updatedAt, /^\d{4}-.*Z$/.test(String(createdAt))], [createdAt, true]);
    assert.deepEqual(taken.slice(0, 2), [5, "conflict"]);
    assert.match(words.stdout, /^template\treminder\njob\tsend\nqueue\tmail\npriority\t-5\nattempts\t8\n/);
    assert.match(words.stdout, /timeout\t30s\n[^]*params\n\{\n {2}"copies": 2\n\}\n$/);
    assert.deepEqual(
      [edited["params"], edited["priority"], edited["queue"], edited["backoff"], edited["revision"]],
      [{}, null, "mail", { base: "2s" }, 2],
    );
    assert.match(String(archived["archivedAt"]), /Z$/);
    assert.equal(restored["archivedAt"], null);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
    assert.match(misspelt[2], /there is no template "remindr": did you mean "reminder"\?/);
  });

  test(`${backend}: a job is made from a template, its params laid over the defaults`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    await book.templates.create("reminder", { job: "send", params: { copies: 2, to: "ada" }, priority: 5 });
    await book.templates.create("list", { job: "send", params: [1, 2] as never });

    const plain = await answer(["jobs", "enqueue", "--template", "list"], url);
    const made = await answer(
      ["jobs", "enqueue", "--template", "reminder", "--params", '{"to": "bob"}', "--queue", "mail"],
      url,
    );
    const words = await runCli(["jobs", "enqueue", "--template", "reminder", "--book", url]);
    await answer(["templates", "archive", "reminder"], url);
    const refused = await refusal(["jobs", "enqueue", "--template", "reminder"], url);

    const { params, priority, queue, template, name } = await book.jobs.get(String(made["id"]));
    assert.deepEqual(
      { params, priority, queue, template, name },
      { params: { copies: 2, to: "bob" }, priority: 5, queue: "mail", template: "reminder", name: "send" },
    );
    assert.deepEqual((await book.jobs.get(String(plain["id"]))).params, [1, 2]);
    assert.match(words.stdout, /is enqueued: queued\n/);
    assert.deepEqual(refused.slice(0, 2), [5, "conflict"]);
    assert.match(refused[2], /template "reminder" makes no new jobs, it was archived at/);
    const shown = await runCli(["jobs", "show", String(made["id"]), "--book", url]);
    assert.match(shown.stdout, /\ntemplate\treminder\n/);
  });

  test(`${backend}: templates are listed newest first, page by page, archived or not`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    for (const name of ["a", "b", "c"]) await book.templates.create(name, { job: "send" });
    await book.templates.archive("b");
    await book.tenant("acme").templates.create("theirs", { job: "send" });
    const list = async (...args: string[]): Promise<unknown[]> =>
      items(await answer(["templates", "list", ...args], url)).map((each) => each["name"]);

    const first = await answer(["templates", "list", "--limit", "2"], url);
    const words = await runCli(["templates", "list", "--book", url, "--no-archived", "--limit", "1"]);

    assert.deepEqual(await list(), ["c", "b", "a"]);
    assert.deepEqual(await list("--archived"), ["b"]);
    assert.deepEqual(await list("--no-archived"), ["c", "a"]);
    assert.deepEqual(await list("--after", String(first["next"])), ["a"]);
    assert.match(words.stdout, /^name\tjob\tqueue\tupdated\tarchived\tparams\nc\tsend\t/);
    assert.match(words.stderr, /^There are more: daybook templates list .*--no-archived .*--after \S+\n$/);
  });
}
