// Tokens, the audit, operations and bulk commands from a shell.
import assert from "node:assert/strict";
import { test } from "node:test";
import { progressText } from "../../src/cli/progress-line.ts";
import { openTest } from "../support/open-test.ts";
import { answer } from "./answer-of.ts";
import { runCli } from "./run-cli.ts";

const caller = { tokenId: "abc", name: "ops", tenant: null, role: "admin", queues: null, names: null } as const;
const note = { caller, verb: "jobs.cancel", subject: "j-1", input: { id: "j-1" }, from: "127.0.0.1", requestId: "r" };

test("a token is made, listed and revoked from a shell, and its secret is shown once", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  const words = await runCli(["tokens", "create", "reports", "--tenant", "acme", "--role", "read", "--book", url]);
  const [secret = ""] = /dbk_\S+/.exec(words.stdout) ?? [];

  assert.match(words.stdout, /^of\tacme$/m);
  assert.deepEqual((await book.access.identify(secret))?.tenant, "acme");
  const whole = await answer(["tokens", "create", "--whole-book", "--role", "admin", "--expires", "1d"], url);
  const worker = await answer(
    ["tokens", "create", "--for", "b", "--role", "worker", "--queues", "x", "--queues", "y"],
    url,
  );
  assert.deepEqual([whole["tenant"], worker["tenant"], worker["queues"]], [null, "b", ["x", "y"]]);
  assert.match(String(whole["expiresAt"]), /^\d{4}-.*Z$/);

  const listed = await runCli(["tokens", "list", "--book", url]);
  assert.equal(listed.stdout.split("\n").length, 5);
  assert.ok(!listed.stdout.includes("dbk_") && listed.stdout.includes("the whole book"));
  const ofAcme = await answer(["tokens", "list", "--for", "acme"], url);
  const [{ id } = { id: "" }] = ofAcme["items"] as { id: string }[];
  const revoked = await runCli(["tokens", "revoke", id, "--book", url]);
  assert.match(revoked.stdout, /^ends\trevoked$/m);
  assert.equal(await book.access.identify(secret), null);
  assert.equal((await runCli(["tokens", "revoke", "nobody", "--book", url])).code, 4);
});

test("a token of nobody, or of two, is refused", async (t) => {
  const { url } = await openTest(t, "sqlite");
  const create = (...more: string[]) => runCli(["tokens", "create", "--book", url, ...more]);

  const nobody = await create("--role", "read");
  const both = await create("--role", "read", "--for", "a", "--whole-book");
  const notWorker = await create("--role", "read", "--for", "a", "--queues", "x");

  for (const { code } of [nobody, both, notWorker]) assert.equal(code, 2);
  assert.match(nobody.stderr, /say whose it is/);
  assert.match(both.stderr, /not both/);
  assert.match(notWorker.stderr, /tokens of workers/);
});

test("the audit and operations are looked at from a shell, as a tenant or as the whole book", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  const id = await book.access.note({ ...note, tenant: "acme" });
  book.access.outcome(id, { status: 409, code: "conflict" });
  await book.access.note({ ...note, tenant: null, verb: "book.backup", subject: null });
  const of = { verb: "jobs.cancelAll", tenant: "acme", caller, input: { queue: "mail" } };
  const operation = await book.access.operations.start(of, ({ signal, progress }) => {
    progress(3, 10);
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve({ count: 3 })));
  });
  await book.audit.list();

  const audit = await runCli(["audit", "--book", url]);
  const json = await answer(["audit", "list", "--verb", "jobs.cancel"], url);
  const shown = await runCli(["operations", "show", operation.id, "--book", url]);
  const cancelled = await runCli(["operations", "cancel", operation.id, "--book", url]);
  const running = await answer(["operations", "list"], url);

  assert.match(audit.stdout, /ops \(admin\)\t\tbook\.backup\t\t127/);
  assert.match(audit.stdout, /ops \(admin\)\tacme\tjobs\.cancel\tj-1\t127\.0\.0\.1\tconflict/);
  const [first] = json["items"] as { at: string; input: unknown }[];
  assert.match(first?.at ?? "", /Z$/);
  assert.deepEqual(first?.input, { id: "j-1" });
  assert.match(shown.stdout, /^by\tops$/m);
  assert.equal(cancelled.stdout, `${operation.id} was asked to end\n`);
  assert.equal((running["items"] as unknown[]).length, 1);
});

test("many jobs are cancelled, tried again and deleted from a shell, once it is told to", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  for (let n = 0; n < 3; n++) await book.jobs.enqueue("mail", {}, { queue: "a" });
  await book.jobs.enqueue("mail", {}, { queue: "b" });

  const would = await runCli(["jobs", "cancel-all", "--queue", "a", "--book", url]);
  const did = await runCli(["jobs", "cancel-all", "--queue", "a", "--apply", "--book", url]);
  const retried = await answer(["jobs", "retry-all", "--status", "cancelled", "--apply"], url);
  await runCli(["jobs", "cancel-all", "--apply", "--book", url]);
  const wouldGo = await answer(["jobs", "delete-all"], url);
  const gone = await answer(["jobs", "delete-all", "--queue", "b", "--apply"], url);

  assert.equal(would.stdout, "3 jobs would be cancelled; cancel them with --apply\n");
  assert.equal(did.stdout, "3 jobs cancelled or asked to end\n");
  assert.deepEqual(retried, { dryRun: false, count: 3, passed: 0, stopped: false });
  assert.deepEqual([wouldGo["dryRun"], wouldGo["jobs"]], [true, 7]);
  assert.deepEqual([gone["dryRun"], gone["jobs"]], [false, 1]);
  assert.equal((await book.jobs.list()).items.length, 6);
});

test("how far a verb is, is a bar once it is known of how much", () => {
  assert.equal(progressText(7, null), "7");
  assert.equal(progressText(0, 0), "0");
  assert.equal(progressText(50, 200), `${"█".repeat(5)}${"░".repeat(15)} 25 %, 50 of 200`);
  assert.equal(progressText(9, 8), `${"█".repeat(20)} 100 %, 9 of 8`);
});
