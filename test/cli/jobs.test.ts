import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import { backends, openTest, testFolder } from "../support/open-test.ts";
import { runCli } from "./run-cli.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { until } from "./until.ts";

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const failing = job("charge", {
  attempts: 2,
  backoff: ["0s"],
  run(_params, { log, attempt }) {
    log("charging", { attempt });
    throw new TypeError("\u001B[2Jno\ncard");
  },
});

const shipping = job("ship", {
  async run(_params, { book }) {
    await book.jobs.enqueue(notifying, {});
    return { parcels: 2 };
  },
});

const notifying = job("notify", { run: () => undefined });

for (const backend of backends) {
  test(`${backend}: a job is enqueued with all that a shell can say about it`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const given = ["--queue", "mail", "--priority", "-5", "--at", "2050-01-31T09:30:00+01:00", "--key", "o-17"];
    const more = ["--key-scope", "2h", "--idempotency-key", "i-1", "--tag", "eu", "--tag", "b2b", "--attempts", "2"];

    const made = await answer(
      ["jobs", "enqueue", "send", "--params", '{"n": 1}', ...given, ...more, "--timeout", "30s"],
      url,
    );

    const { warning, ...rest } = made;
    assert.match(String(warning), /was never hosted/);
    assert.deepEqual({ ...rest, id: "" }, { id: "", name: "send", status: "waiting", created: true });
    const found = await book.jobs.get(String(made["id"]));
    const { name, queue, status, waitsFor, priority, params, key, tags, attempts, availableAt } = found;
    assert.deepEqual(
      { name, queue, status, waitsFor, priority, params, key, tags, attempts, availableAt },
      {
        name: "send",
        queue: "mail",
        status: "waiting",
        waitsFor: "time",
        priority: -5,
        params: { n: 1 },
        key: "o-17",
        tags: ["b2b", "eu"],
        attempts: 2,
        availableAt: Date.parse("2050-01-31T08:30:00Z"),
      },
    );
    assert.deepEqual((await book.sessions.list()).items.length, 1, "the command is no session");
  });

  test(`${backend}: a key that is taken keeps, replaces or refuses`, async (t) => {
    const { url } = await openTest(t, backend);
    const send = (policy: string, params: string): string[] => [
      ...["jobs", "enqueue", "send", "--in", "1h", "--key", "k", "--on-conflict", policy, "--params", params],
    ];
    const first = await answer(send("error", '{"n": 1}'), url);

    const kept = await answer(send("keep", '{"n": 2}'), url);
    const replaced = await answer(send("replace", '{"n": 3}'), url);
    const refused = await refusal(send("error", '{"n": 4}'), url);
    const words = await runCli([...send("keep", "{}"), "--book", url]);

    assert.deepEqual([kept["id"], kept["created"]], [first["id"], false]);
    assert.deepEqual([replaced["id"], replaced["created"]], [first["id"], false]);
    assert.deepEqual(refused.slice(0, 2), [5, "conflict"]);
    assert.match(words.stdout, /has the key already, so none was made: waiting\n/);
    const shown = await answer(["jobs", "show", String(first["id"])], url);
    assert.deepEqual(shown["params"], { n: 3 });
  });

  test(`${backend}: jobs are listed newest first, page by page, by what one asks for`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const ids: string[] = [];
    for (const [name, options] of [
      ["a", { tags: ["x"] }],
      ["b", { queue: "mail", key: "it's" }],
      ["b", { in: "1h" }],
    ] as const) {
      ids.push((await book.jobs.enqueue(name, {}, options)).id);
    }
    const list = async (...args: string[]): Promise<unknown[]> =>
      items(await answer(["jobs", "list", ...args], url)).map((each) => ids.indexOf(String(each["id"])));

    const first = await answer(["jobs", "list", "--limit", "1"], url);
    const words = await runCli(["jobs", "list", "--book", url, "--name", "b", "--limit", "1"]);

    assert.deepEqual(await list(), [2, 1, 0]);
    assert.deepEqual(await list("--status", "waiting,running"), [2]);
    assert.deepEqual(await list("--queue", "mail"), [1]);
    assert.deepEqual(await list("--name", "b", "--status", "queued"), [1]);
    assert.deepEqual(await list("--key", "it's"), [1]);
    assert.deepEqual(await list("--tag", "x"), [0]);
    assert.deepEqual(await list("--after", String(first["next"])), [1, 0]);
    for (const each of items(first)) assert.match(String(each["createdAt"]), iso);
    assert.match(words.stdout, /^id\tname\tqueue\tstatus\ttry\tcreated\tnote\n/);
    assert.match(words.stdout, new RegExp(`${ids[2]}\\tb\\tdefault\\twaiting\\t1/4\\t\\S+\\tstarts \\S+`));
    const [, more = ""] = /^There are more: daybook (.*)\n$/.exec(words.stderr) ?? [];
    assert.match(more, /^jobs list .*--name b --limit 1 --after [\w-]+$/);
    const page = await runCli(more.split(" "), { env: { DAYBOOK_BOOK: url } });
    assert.match(page.stdout, new RegExp(`\n${ids[1]}\\tb\\tmail\\t`));
  });

  test(`${backend}: a tenant sees, cancels and retries its own jobs only`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const { id } = await book.tenant("acme").jobs.enqueue("a", {});

    const theirs = await answer(["jobs", "list", "--tenant", "acme"], url);
    const ours = await answer(["jobs", "list"], url);

    assert.deepEqual([items(theirs).length, items(ours).length], [1, 0]);
    for (const verb of ["show", "explain", "cancel", "retry"]) {
      assert.deepEqual((await refusal(["jobs", verb, id], url)).slice(0, 2), [4, "not_found"], verb);
    }
    assert.equal((await answer(["jobs", "cancel", id, "--tenant", "acme"], url))["status"], "cancelled");
  });

  test(`${backend}: a job is shown with its chain, its error, its logs and its cause`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [failing, shipping, notifying] });
    const { id } = await book.jobs.enqueue(failing, { order: 17 });
    const shipped = await book.jobs.enqueue(shipping, {});
    await (await book.startWorker()).idle();
    const chain = (await book.jobs.chain(id)).map((each) => each.id);
    const [notified] = (await book.jobs.list({ name: "notify" })).items;

    const json = await answer(["jobs", "show", id], url);
    const words = await runCli(["jobs", "show", chain.at(-1) ?? "", "--book", url]);
    const caused = await answer(["jobs", "show", notified?.id ?? ""], url);
    const done = await runCli(["jobs", "show", shipped.id, "--book", url]);

    const run = json["run"] as { status: string; endedAt: string; error: { type: string; message: string } };
    assert.deepEqual([json["status"], json["retriedBy"], run.status], ["failed", chain[1], "error"]);
    assert.deepEqual([run.error.type, run.error.message], ["TypeError", "\u001B[2Jno\ncard"]);
    assert.match(run.endedAt, iso);
    assert.deepEqual(
      (json["chain"] as { id: string }[]).map((each) => each.id),
      chain,
    );
    const [line] = json["logs"] as { at: string; message: string; fields: unknown }[];
    assert.deepEqual([line?.message, line?.fields], ["charging", { attempt: 1 }]);
    assert.match(String(line?.at), iso);
    assert.ok(!words.stdout.includes("\u001B"));
    assert.match(words.stdout, /\nattempt\t2 of 2\n/);
    assert.match(words.stdout, new RegExp(`\nretry of\\t${chain[0]}\n`));
    assert.match(words.stdout, /params\n\{\n {2}"order": 17\n\}\n\nerror\nTypeError: no\ncard\n +at /);
    assert.match(words.stdout, /logs\nat\tlevel\tmessage\tfields\n\S+\tinfo\tcharging\t\{"attempt":2\}\n$/);
    assert.deepEqual(caused["cause"], { runId: notified?.cause?.runId, rootRunId: notified?.cause?.rootRunId });
    assert.match(done.stdout, /result\n\{\n {2}"parcels": 2\n\}\n$/);
  });

  test(`${backend}: a running job shows how far it is and is asked to end`, async (t) => {
    const started = Promise.withResolvers<void>();
    const copying = job("copy", {
      async run(_params, { progress, signal }) {
        progress(0.4, "2 of 5");
        started.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw signal.reason;
      },
    });
    const { book, url } = await openTest(t, backend, { use: [copying] });
    const { id } = await book.jobs.enqueue(copying, {});
    const worker = await book.startWorker();
    await started.promise;
    await until(async () => (await book.jobs.get(id)).progress !== null);

    const shown = await runCli(["jobs", "show", id, "--book", url]);
    const listed = await runCli(["jobs", "list", "--book", url]);
    const explained = await answer(["jobs", "explain", id], url);
    const cancelled = await answer(["jobs", "cancel", id], url);
    await worker.idle();

    assert.match(shown.stdout, /\nprogress\t40 %: 2 of 5\n/);
    assert.match(shown.stdout, new RegExp(`\nsession\\t${String(book.sessionId)}\n`));
    assert.match(listed.stdout, /\trunning\t.*\t40 %: 2 of 5\n/);
    assert.equal(explained["reason"], "running");
    assert.deepEqual(cancelled, { id, status: "cancelling" });
    assert.equal((await book.jobs.get(id)).status, "cancelled");
    const [code, kind, message] = await refusal(["jobs", "cancel", id], url);
    assert.deepEqual([code, kind], [5, "conflict"]);
    assert.match(message, /is cancelled and cannot be cancelled/);
  });

  test(`${backend}: a chain that has ended is retried once more, and not while it is open or done`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [failing, notifying] });
    const { id } = await book.jobs.enqueue(failing, {});
    const { id: done } = await book.jobs.enqueue(notifying, {});
    const worker = await book.startWorker();
    await worker.idle();
    await worker.stop();

    const retried = await answer(["jobs", "retry", id], url);
    const again = await refusal(["jobs", "retry", id], url);
    const completed = await refusal(["jobs", "retry", done], url);

    const chain = await book.jobs.chain(id);
    assert.equal(chain.at(-1)?.id, retried["id"]);
    assert.deepEqual([chain.at(-1)?.attempt, chain.at(-1)?.origin], [3, "manual"]);
    assert.deepEqual(again.slice(0, 2), [5, "conflict"]);
    assert.deepEqual(completed.slice(0, 2), [5, "conflict"]);
    assert.match(completed[2], /enqueue a new job to do it again/);
  });

  test(`${backend}: runs are listed and shown with their logs`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [failing, shipping, notifying] });
    await book.jobs.enqueue(failing, {});
    await book.jobs.enqueue(shipping, {});
    await (await book.startWorker()).idle();
    const [newest] = (await book.runs.list({ name: "charge" })).items;

    const errors = await answer(["runs", "list", "--status", "error"], url);
    const named = await answer(["runs", "list", "--name", "ship"], url);
    const words = await runCli(["runs", "list", "--book", url, "--status", "error", "--limit", "1"]);
    const shown = await answer(["runs", "show", newest?.id ?? ""], url);
    const shownWords = await runCli(["runs", "show", newest?.id ?? "", "--book", url]);

    const failed = await runCli(["jobs", "list", "--book", url, "--status", "failed"]);
    const forGood = await runCli(["jobs", "list", "--book", url, "--status", "failed", "--no-retried"]);

    assert.match(failed.stdout, /\t2\/2\t.*\tTypeError: no card\n[^]*\t1\/2\t.*\ttried again; TypeError: no card\n/);
    assert.match(forGood.stdout, /\t2\/2\t.*\tTypeError: no card\n/);
    assert.doesNotMatch(forGood.stdout, /\t1\/2\t/);
    assert.deepEqual([items(errors).length, items(named).length], [2, 1]);
    assert.match(String(items(named)[0]?.["startedAt"]), iso);
    assert.match(words.stdout, /^id\tname\tstatus\ttry\tstarted\ttook\terror\n.*\tTypeError: no card\n/);
    assert.match(words.stderr, /There are more: daybook runs list .*--status error --limit 1 --after \S+\n$/);
    assert.equal((shown["logs"] as { message: string }[])[0]?.message, "charging");
    assert.match(
      shownWords.stdout,
      /status\terror\n[^]*error\nTypeError: no\ncard\n[^]*logs\n.*\n\S+\tinfo\tcharging\t/,
    );
  });
}

test("params come from a file, from standard input, or are none", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  const folder = testFolder(t);
  writeFileSync(join(folder, "month.json"), '{ "month": 11 }\n');
  const enqueue = async (...args: string[]): Promise<unknown> => {
    const made = await answer(["jobs", "enqueue", "sum", ...args], url, { cwd: folder, input: "[1, 2]" });
    return (await book.jobs.get(String(made["id"]))).params;
  };

  assert.deepEqual(await enqueue("--params", "@month.json"), { month: 11 });
  assert.deepEqual(await enqueue("--params", "-"), [1, 2]);
  assert.deepEqual(await enqueue(), {});
});

test("a name that nobody runs is said at once to a person", async (t) => {
  const { url } = await openTest(t, "sqlite");

  const { code, stdout } = await runCli(["jobs", "enqueue", "sned", "--book", url]);

  assert.equal(code, 0);
  assert.match(
    stdout,
    /is enqueued: queued\njob "sned" was never hosted by this book: it waits for a program that lists it/,
  );
});
