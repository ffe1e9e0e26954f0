import assert from "node:assert/strict";
import { test } from "node:test";
import { migrations } from "../../src/open/migrations.ts";
import { backends, openTest, testUrl } from "../support/open-test.ts";
import { parsed, runCli } from "./run-cli.ts";
import { tamper } from "../support/tamper.ts";

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const newest = migrations.at(-1)?.number ?? 0;
const names = migrations.map(({ number, name }) => ({ number, name }));

for (const backend of backends) {
  test(`${backend}: migrate lists what is pending, makes the book, and does nothing a second time`, async (t) => {
    const url = await testUrl(t, backend);

    const dry = await runCli(["migrate", "--book", url, "--dry-run", "--json"]);
    const stillMissing = await runCli(["info", "--book", url]);
    const first = await runCli(["migrate", "--book", url, "--json"]);
    const second = await runCli(["migrate", "--book", url, "--json"]);
    const dryAfter = await runCli(["migrate", "--book", url, "--dry-run"]);

    assert.deepEqual(parsed(dry.stdout), { dryRun: true, created: true, applied: [], pending: names });
    assert.notEqual(stillMissing.code, 0, "a dry run must not make the book");
    const { location, ...rest } = parsed(first.stdout);
    assert.equal(typeof location, "string");
    assert.deepEqual(rest, { dryRun: false, created: true, schemaVersion: newest, applied: names, pending: [] });
    assert.deepEqual(parsed(second.stdout)["applied"], []);
    assert.deepEqual([dry.code, first.code, second.code, dryAfter.code], [0, 0, 0, 0]);
    assert.equal(dryAfter.stdout, "nothing is pending\n");
  });

  test(`${backend}: migrate tells people what it applied`, async (t) => {
    const url = await testUrl(t, backend);

    const first = await runCli(["migrate", "--book", url]);
    const second = await runCli(["migrate", "--book", url]);

    assert.match(first.stdout, new RegExp(`^applied:\n  1 session\n[^]*was made and has schema version ${newest}\n$`));
    assert.match(second.stdout, new RegExp(`is up to date: schema version ${newest}\n$`));
  });

  test(`${backend}: info shows what the book is and who has it open, without joining them`, async (t) => {
    const { book, url } = await openTest(t, backend);

    const { code, stdout } = await runCli(["info", "--book", url, "--json"]);
    const { stdout: words } = await runCli(["info", "--book", url]);

    const about = parsed(stdout);
    assert.equal(code, 0);
    assert.equal(about["location"], book.location);
    assert.equal(about["dialect"], backend);
    assert.equal(about["schemaVersion"], newest);
    assert.equal(about["sessionsRunning"], 1);
    for (const each of about["migrations"] as { appliedAt: string }[]) assert.match(each.appliedAt, iso);
    assert.match(words, backend === "sqlite" ? /\nengine\tSQLite 3\./ : /\nengine\tPostgreSQL 18/);
    assert.match(words, /\nsessions\t1 running\n/);
    assert.match(words, /\n1\tsession\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\n/);
    assert.equal((await book.sessions.list()).items.length, 1);
  });

  test(`${backend}: sessions are listed newest first, page by page`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const second = await openTest(t, backend, { url });

    const all = await runCli(["sessions", "--book", url, "--json"]);
    const first = parsed((await runCli(["sessions", "--book", url, "--json", "--limit", "1"])).stdout);
    const after = String(first["next"]);
    const rest = parsed((await runCli(["sessions", "--book", url, "--json", "--after", after])).stdout);
    const words = await runCli(["sessions", "--book", url, "--limit", "1"]);

    const items = parsed(all.stdout)["items"] as Record<string, unknown>[];
    // Both sessions live, so their beats move on from one command to the next.
    const ids = (page: Record<string, unknown>): unknown[] =>
      (page["items"] as Record<string, unknown>[]).map((each) => each["id"]);
    assert.deepEqual(ids({ items }), [second.book.sessionId, book.sessionId]);
    for (const each of items) assert.match(String(each["startedAt"]), iso);
    assert.deepEqual(items[0]?.["stoppedAt"], null);
    assert.deepEqual(ids(first), [second.book.sessionId]);
    assert.deepEqual([ids(rest), rest["next"]], [[book.sessionId], null]);
    assert.match(words.stdout, /^id\tkind\thost\tpid\tstatus\tstarted\tlast beat\tstopped\tdropped\terror\n/);
    assert.match(words.stdout, new RegExp(`${String(second.book.sessionId)}\t.*\trunning\t`));
    assert.match(words.stderr, new RegExp(`daybook sessions list .*--limit 1 --after ${after}\n$`));
  });

  test(`${backend}: a session's error is shown without what would command the terminal`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const message = "\u001B[2Jno\nsuch\u0007 thing";
    await tamper(
      book,
      (tx) => tx.sql`insert into daybook_session
          (id, host, pid, started_at, last_heartbeat_at, stopped_at, status, error_type, error_message)
        values ('dead', 'h', 7, ${tx.now}, ${tx.now}, ${tx.now}, 'error', 'TypeError', ${message})`,
    );

    const words = await runCli(["sessions", "--book", url]);
    const json = await runCli(["sessions", "--book", url, "--json"]);

    assert.match(words.stdout, /dead\tprocess\th\t7\terror\t.*\tTypeError: no such thing\n/);
    assert.ok(!/[\u0007\u001B]/.test(words.stdout));
    const [first] = parsed(json.stdout)["items"] as { error: { message: string } | null }[];
    assert.equal(first?.error?.message, message);
  });

  test(`${backend}: doctor counts its checks when all hold`, async (t) => {
    const { url } = await openTest(t, backend);

    const words = await runCli(["doctor", "--book", url]);
    const json = await runCli(["doctor", "--book", url, "--json"]);

    assert.deepEqual([words.code, json.code], [0, 0]);
    const { checks, findings } = parsed(json.stdout);
    assert.deepEqual(findings, []);
    assert.equal(words.stdout, `all ${String(checks)} checks hold\n`);
  });

  test(`${backend}: doctor shows what it finds with advice, and ends with 20`, async (t) => {
    const { book, url } = await openTest(t, backend);
    await tamper(
      book,
      (tx) => tx.sql`insert into daybook_session (id, host, pid, started_at, last_heartbeat_at, stopped_at, status)
        values ('back-in-time', 'h', 7, 2000, 2000, 1000, 'success')`,
    );

    const words = await runCli(["doctor", "--book", url]);
    const json = await runCli(["doctor", "--book", url, "--json"]);

    assert.deepEqual([words.code, json.code], [20, 20]);
    assert.match(words.stdout, /^T5 does not hold: a session does not stop before it started \(1 found\)/);
    assert.match(words.stdout, /back-in-time\n +→ .+\n\n1 of \d+ checks found something\n$/);
    const [finding] = parsed(json.stdout)["findings"] as { promise: string; count: number; advice: string }[];
    assert.equal(finding?.promise, "T5");
    assert.equal(finding?.count, 1);
  });
}
