import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { target, testKey } from "../calls/target.ts";
import { testFolder, testUrl } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";
import { until } from "./until.ts";

const env = { DAYBOOK_KEY: testKey };

for (const backend of cliBackends) {
  test(`${backend}: calls are submitted, steered, sent by daybook run, and shown without their secrets`, async (t) => {
    const server = await target(t, ({ path }, response) => void response.end(`done: ${path}`));
    const url = await testUrl(t, backend);
    const cwd = testFolder(t);
    writeFileSync(join(cwd, "daybook.config.ts"), `export default { calls: { allow: ["127.0.0.1"] } };`);
    await runCli(["migrate", "--book", url]);
    const say = (...args: string[]): Promise<Record<string, unknown>> => answer(["calls", ...args], url, { env });
    const read = async (verb: string, id: string, settings = {}): Promise<string> =>
      (await runCli(["calls", verb, id, "--book", url], settings)).stdout;

    const headers = ["--header", "authorization: Bearer geheim-17", "--header", "accept: text/plain"];
    const made = await say("submit", `${server.url}/now`, "--json-body", '{"a":1}', "--tag", "x", ...headers);
    const later = await say("submit", `${server.url}/later`, "--in", "1h", "--name", "later", "--retry");
    const [id, other] = [String(made["id"]), String(later["id"])];
    const moved = await say("reschedule", other, "--at", "2040-01-01T00:00:00Z");
    assert.equal(moved["dueAt"], "2040-01-01T00:00:00.000Z");
    const running = startCli(["run", "--book", url], { cwd, env });
    await until(async () => (await say("show", id))["status"] === "succeeded");
    running.child.kill("SIGTERM");
    const { stdout, stderr } = await running.ended;

    assert.deepEqual([server.received.length, server.received[0]?.headers.authorization], [1, "Bearer geheim-17"]);
    const page = await read("show", id);
    assert.match(page, /submitted\t20[^]*due\t20[^]*started\t20[^]*finished\t20/);
    assert.match(
      page,
      /\n\nrequest\n[^]*authorization: \[hidden\]\n[^]*\n\nattempt 1\nat\t20\S+\noutcome\tanswered with 200\ntook\t[^]*\nanswer\t10 B\n$/,
    );
    const curl = await read("curl", id, { env });
    assert.match(
      curl,
      /^curl \\\n {2}-X POST \\\n[^]*-H 'accept: text\/plain'[^]*-H 'authorization: Bearer geheim-17'/,
    );
    assert.match(curl, /--data-raw '\{"a":1\}' \\\n {2}'http:\/\/127\.0\.0\.1:\d+\/now'\n$/);
    const revealed = await read("reveal", id, { env });
    assert.match(revealed, /\nrequest\tPOST \S+\/now\n[^]*\nauthorization: Bearer geheim-17\n[^]*\ndone: \/now\n$/);
    for (const text of [page, stdout, stderr]) assert.ok(!text.includes("geheim") && !text.includes("/now"), text);
    const listed = (await say("list", "--tag", "x"))["items"] as { id: string }[];
    assert.deepEqual(
      listed.map((each) => each.id),
      [id],
    );
    const table = await runCli(["calls", "list", "--status", "succeeded,failed", "--book", url]);
    assert.match(
      table.stdout,
      /^id\tname\tstatus\tdue\trequest\toutcome\n\S+\tPOST \S+\tsucceeded\t20\S+\tPOST \S+\/\[hidden\]\tstatus 200\n$/,
    );
    const why = await runCli(["calls", "explain", other, "--book", url]);
    assert.match(why.stdout, /^scheduled: time\n/);
    const again = await say("resend", id, "--in", "1h");
    assert.equal((await say("cancel", String(again["id"])))["status"], "cancelled");
    const would = await runCli(["calls", "delete", id, "--book", url]);
    assert.equal(would.stdout, `${id} would be removed; remove it with --apply\n`);
    assert.deepEqual(await say("delete", id, "--apply"), { id, dryRun: false, count: 1 });
    assert.deepEqual((await refusal(["calls", "delete", other, "--apply"], url)).slice(0, 2), [5, "conflict"]);
    assert.equal((await refusal(["calls", "show", id], url))[1], "not_found");
    assert.equal((await refusal(["calls", "show", other, "--tenant", "acme"], url))[1], "not_found");
    assert.deepEqual(items(await answer(["tenants"], url)), [{ tenant: "default", queues: 1, jobs: 1, calls: 1 }]);
  });
}

test("what is sealed with an old key is counted, sealed with the new one, and says when its key is not given", async (t) => {
  const url = await testUrl(t, "sqlite");
  await runCli(["migrate", "--book", url]);
  const fresh = Buffer.alloc(32, 9).toString("base64");
  const { id } = await answer(["calls", "submit", "https://a.example", "--header", "cookie: geheim"], url, { env });
  const reseal = (key: string, ...more: string[]) =>
    runCli(["reseal", "--book", url, ...more], { env: { DAYBOOK_KEY: key } });

  const without = await reseal(fresh);
  const would = await reseal(`${fresh},${testKey}`);
  const done = await reseal(`${fresh},${testKey}`, "--apply");
  const after = await answer(["calls", "reveal", String(id)], url, { env: { DAYBOOK_KEY: fresh } });

  assert.equal(without.code, 20);
  assert.match(
    without.stdout,
    /^0 requests, 0 answers and 0 notices would be sealed .*\n1 sealed with key \w{8}, which is not given\n$/,
  );
  assert.match(
    would.stdout,
    /^1 request, 0 answers and 0 notices would be sealed with key \w{8}; seal them with --apply\n$/,
  );
  assert.match(done.stdout, /^1 request, 0 answers and 0 notices sealed with key \w{8}\n$/);
  assert.match(JSON.stringify(after["request"]), /"cookie":"geheim"/);
});

test("the same idempotency key and request again are the same call, and another request is a conflict", async (t) => {
  const url = await testUrl(t, "sqlite");
  await runCli(["migrate", "--book", url]);
  const submit = ["calls", "submit", "https://a.example", "--idempotency-key", "o-17"];

  const first = await answer([...submit, "--correlation-id", "c-1"], url);
  const again = await answer(submit, url);
  const words = await runCli([...submit, "--book", url]);
  const other = await refusal([...submit, "--method", "DELETE"], url);
  const found = items(await answer(["calls", "list", "--correlation-id", "c-1"], url));

  assert.deepEqual([first["created"], again["created"], again["id"]], [true, false, first["id"]]);
  assert.equal(words.stdout, `${String(first["id"])} was submitted before: scheduled\n`);
  assert.deepEqual(other.slice(0, 2), [5, "conflict"]);
  assert.deepEqual(
    found.map((each) => each["id"]),
    [first["id"]],
  );
  assert.match(
    (await refusal(["calls", "submit", "https://a.example", "--key", "k"], url))[2],
    /unknown option '--key'/,
  );
});

test("what is wrong with a call, or with what the config says of calls, is said", async (t) => {
  const url = await testUrl(t, "sqlite");
  await runCli(["migrate", "--book", url]);
  const cwd = testFolder(t);
  const submit = (...args: string[]) => refusal(["calls", "submit", ...args], url);

  assert.match((await submit("api.example.com"))[2], /cannot be read/);
  assert.match((await submit("https://a.example", "--header", "authorization: x"))[2], /DAYBOOK_KEY/);
  assert.match((await submit("https://a.example", "--header", "no-colon-but-a-token"))[2], /"no-colon-b"… is not/);
  assert.match(
    (await submit("https://a.example", "--attempts", "many"))[2],
    /--attempts is "many": give a whole number/,
  );
  assert.match((await submit("https://a.example", "--method", "post"))[2], /--method is "post": did you mean "POST"/);
  assert.match((await submit("https://user:geheim@a.example/x"))[2], /^the url of a\.example carries a user name/);
  assert.match((await submit("https://a.example", "--header", "a: 1", "--header", "a: 2"))[2], /has "a" twice/);
  assert.match((await refusal(["calls", "reschedule", "x"], url))[2], /no time given: give "at" or "in"/);
  writeFileSync(join(cwd, "daybook.config.ts"), `export default { calls: { alow: [] } };`);
  const { code, stderr } = await runCli(["run", "--book", url], { cwd });
  assert.equal(code, 2);
  assert.match(stderr, /did you mean "allow"/);
});
