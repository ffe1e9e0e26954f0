// The command line on a server: what it asks, and what it makes of answers that come late, cut off, or not at all.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../src/cli/remote/connection.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { json, problem, scriptedServer } from "../support/scripted-server.ts";
import { parsed, parsedError, runCli, startCli } from "./run-cli.ts";

const token = "dbk_0123456789abcdef";
const job = { id: "j-1", name: "send", status: "queued", created: true };

const asked = (url: string, ...more: readonly string[]): string[] => [...more, "--server", url, "--token", token];

test("what only reads is a GET with its fields in the path and the query, and bears the token", async (t) => {
  const { url, heard } = await scriptedServer(t, json({ items: [], next: null }));

  const filters = ["--status", "failed,cancelled", "--no-retried", "--since", "24h", "--tag", "a&b", "--limit", "5"];
  const { code, stdout } = await runCli(asked(`${url}/`, "jobs", "list", ...filters, "--json"));
  await runCli(asked(`${url}/base`, "schedules", "why", "a b/c", "2026-03-01T00:00:00Z", "--tenant", "acme"));

  const [first, second] = heard;
  const query = "status=failed&status=cancelled&tag=a%26b&since=24h&retried=false&limit=5";
  assert.deepEqual([code, parsed(stdout)], [0, { items: [], next: null }]);
  assert.deepEqual([first?.method, first?.path], ["GET", `/api/v1/jobs?${query}`]);
  assert.deepEqual(
    [first?.headers.authorization, first?.headers["daybook-tenant"], first?.headers["idempotency-key"]],
    [`Bearer ${token}`, undefined, undefined],
  );
  assert.equal(second?.path, "/base/api/v1/schedules/a%20b%2Fc/why?time=2026-03-01T00%3A00%3A00Z");
  assert.equal(second?.headers["daybook-tenant"], "acme");
});

test("a change has its fields in the path and the body, and a key", async (t) => {
  const { url, heard } = await scriptedServer(t, json(job));

  const params = ["--params", '{"to":"ada"}', "--tag", "x", "--priority", "3"];
  const { code, stdout } = await runCli(asked(url, "jobs", "enqueue", "send", ...params, "--json"));
  await runCli(asked(url, "queues", "pause", "mail"), { env: { DAYBOOK_TENANT: "acme" } });

  const [first, second] = heard;
  assert.deepEqual([code, parsed(stdout)], [0, job]);
  assert.deepEqual([first?.method, first?.path], ["POST", "/api/v1/jobs"]);
  assert.deepEqual(JSON.parse(first?.body ?? ""), { name: "send", params: { to: "ada" }, priority: 3, tags: ["x"] });
  assert.match(first?.headers["idempotency-key"]?.toString() ?? "", /^[\w-]{36}$/);
  assert.deepEqual([second?.path, second?.body], ["/api/v1/queues/mail/pause", "{}"]);
  assert.equal(second?.headers["daybook-tenant"], "acme");
});

test("a key of the verb's own is the key, so that no other is sent", async (t) => {
  const { url, heard } = await scriptedServer(t, { cut: true }, json(job));

  const { code } = await runCli(asked(url, "jobs", "enqueue", "send", "--idempotency-key", "mine", "--json"));

  assert.equal(code, 0);
  assert.deepEqual(
    heard.map(({ headers, body }) => [headers["idempotency-key"], parsed(body)]),
    [1, 2].map(() => [undefined, { name: "send", idempotencyKey: "mine" }]),
  );
});

test("a change whose connection is lost is sent again under the same key, also when its reply was cut off", async (t) => {
  const cutOff = { headers: { "content-length": "500" }, body: '{"id"', cut: true } as const;
  const { url, heard } = await scriptedServer(t, { cut: true }, cutOff, json(job));

  const { code, stdout } = await runCli(asked(url, "jobs", "enqueue", "send", "--json"));

  assert.deepEqual([code, parsed(stdout), heard.length], [0, job, 3]);
  assert.equal(new Set(heard.map(({ headers }) => headers["idempotency-key"])).size, 1);
});

test("what is under way is waited for, and a server that is busy is asked again when it says so", async (t) => {
  const underWay = { ...problem(409, "conflict", "it is under way"), headers: { "retry-after": "0" } };
  const busy = { ...problem(503, "busy", "the line is full"), headers: { "retry-after": "0" } };
  const { url, heard } = await scriptedServer(t, busy, underWay, json(job));

  const { code } = await runCli(asked(url, "jobs", "enqueue", "send", "--json"));

  assert.deepEqual([code, heard.length], [0, 3]);
});

test("what a server refuses ends as on a book: the same code, message, details and exit", async (t) => {
  const exits = {
    conflict: [409, 5],
    forbidden: [403, 3],
    unauthorized: [401, 3],
    not_found: [404, 4],
    full: [507, 8],
  };
  for (const [name, [status = 0, exit]] of Object.entries(exits)) {
    const { url, heard } = await scriptedServer(t, problem(status, name, "it has ended", { id: "j-1" }));

    const { code, stdout, stderr } = await runCli(asked(url, "jobs", "cancel", "j-1", "--json"));

    assert.deepEqual([code, stdout, heard.length], [exit, "", 1], name);
    assert.deepEqual(parsedError(stderr), { code: name, message: "it has ended", details: { id: "j-1" } });
  }
});

test("a defect of the server is said as its own, without a trace of ours", async (t) => {
  const { url } = await scriptedServer(t, problem(500, "internal", "A defect."));

  const { code, stderr } = await runCli(asked(url, "info"));

  assert.deepEqual([code, stderr], [1, `error (internal): ${url} failed (internal): A defect. Its log says more.\n`]);
});

test("an address where no server of daybook is, is said so", async (t) => {
  const html = { status: 404, headers: { "content-type": "text/html" }, body: "<h1>Not found</h1>" };
  const moved = { status: 301, headers: { location: "https://elsewhere.example/" } };
  const answers = [
    [html, /does not answer as a server of daybook does \(404, text\/html\)/],
    [moved, /sends us on to https:\/\/elsewhere\.example\/: give --server/],
    [{ body: "<p>Welcome" }, /answered what is no JSON: "<p>Welcome"/],
  ] as const;
  for (const [said, expected] of answers) {
    const { url } = await scriptedServer(t, said);

    const { code, stderr } = await runCli(asked(url, "jobs", "list", "--json"));

    assert.equal(code, 7);
    assert.match(parsedError(stderr).message, expected);
  }
});

test("a change whose fate is not known is not called failed, and what was never sent is", async (t) => {
  const impatient = { ...systemClock, sleep: async () => undefined };
  const send = (url: string, method: string): Promise<unknown> =>
    connect({ url, token, tenant: null }, new AbortController().signal, impatient).send({
      method,
      path: "/jobs",
      body: method === "GET" ? undefined : "{}",
      hasKey: false,
    });
  const { url, heard } = await scriptedServer(t, { cut: true });

  await assert.rejects(send(url, "POST"), { code: "unknown_outcome" });
  assert.equal(heard.length, 7);
  await assert.rejects(send(url, "GET"), { code: "unavailable" });
  await assert.rejects(send("http://127.0.0.1:1", "POST"), { code: "unavailable", message: /cannot be reached/ });
});

const events = (...sent: readonly (readonly [name: string, data: unknown])[]): string =>
  [": daybook\n\n", ...sent.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)].join("");
const said = (topic: string): object => ({ topic, payload: "\u2028", publishedAt: "2026-03-01T00:00:00.000Z" });

test("a stream is printed as it comes until it ends, and one that was cut is an error", async (t) => {
  const headers = { "content-type": "text/event-stream" };
  const whole = { headers, body: events(["item", said("a")], ["item", said("b")], ["end", {}]) };
  const failed = { headers, body: events(["item", said("a")], ["error", { code: "closed", detail: "it closes" }]) };
  const cut = { headers, body: events(["item", said("a")]), cut: true } as const;

  const ends = [];
  for (const answer of [whole, failed, cut]) {
    const { url } = await scriptedServer(t, answer);
    const { code, stdout, stderr } = await runCli(asked(url, "events", "tail", "--json"));
    const lines = stdout.split("\n").filter((line) => line !== "");
    ends.push([code, lines.map((line) => parsed(line)["topic"]), stderr === "" ? null : parsedError(stderr).code]);
  }
  const { url } = await scriptedServer(t, whole);
  const plain = await runCli(asked(url, "events", "tail", "--utc"));

  assert.deepEqual(ends, [
    [0, ["a", "b"], null],
    [12, ["a"], "closed"],
    [7, ["a"], "unavailable"],
  ]);
  assert.match(plain.stdout, /^2026-03-01T00:00:00\.000Z\ta\t/);
});

test("a signal ends a command that waits for a server", async (t) => {
  const headers = { "content-type": "text/event-stream" };
  const { url } = await scriptedServer(t, {
    headers: { ...headers, "content-length": "9999" },
    body: events(["item", said("a")]),
  });
  const { child, ended } = startCli(asked(url, "events", "tail"));
  child.stdout?.once("data", () => child.kill("SIGINT"));

  assert.deepEqual([(await ended).code, (await ended).stderr], [130, ""]);
});

const operation = { id: "o-1", status: "running", done: 1, total: 4, result: null, error: null };
const resealed = { dryRun: false, keyId: "k", requests: 4, answers: 0, notices: 0, missing: [] };

test("what takes long is waited for, and its answer is the command's", async (t) => {
  const { url, heard } = await scriptedServer(
    t,
    json(operation, 202),
    json({ ...operation, done: 3 }),
    json({ ...operation, status: "completed", done: 4, result: resealed }),
  );

  const { code, stdout } = await runCli(asked(url, "reseal", "--apply", "--json"));

  assert.deepEqual([code, parsed(stdout)], [0, resealed]);
  assert.deepEqual(heard[2]?.path, "/api/v1/operations/o-1");
});

test("an operation that fails, is cancelled or loses its server is no success", async (t) => {
  const fates = [
    [{ status: "failed", error: { code: "full", message: "no room" } }, 8],
    [{ status: "cancelled" }, 5],
    [{ status: "lost" }, 11],
  ] as const;
  for (const [fate, exit] of fates) {
    const { url } = await scriptedServer(t, json(operation, 202), json({ ...operation, ...fate }));

    assert.equal((await runCli(asked(url, "reseal", "--apply"))).code, exit);
  }
});

test("with --no-wait an operation is named and goes on", async (t) => {
  const { url, heard } = await scriptedServer(t, json(operation, 202));

  const { code, stdout } = await runCli(asked(url, "reseal", "--apply", "--no-wait"));
  const asJson = await runCli(asked(url, "reseal", "--apply", "--no-wait", "--json"));

  assert.equal(code, 0);
  assert.equal(stdout, 'the operation o-1 goes on: look at it with "daybook operations show o-1"\n');
  assert.deepEqual([parsed(asJson.stdout), heard.length], [operation, 2]);
});

test("a wait outlasts the patience of a server, and not that of the user", async (t) => {
  const late = problem(504, "timeout", "g-1 is still open after 20s of waiting; it goes on");
  const group = { id: "g-1", name: null, status: "completed", members: [] };
  const { url, heard } = await scriptedServer(t, late, late, json(group), late);

  const { code } = await runCli(asked(url, "groups", "wait", "g-1", "--json"));
  const brief = await runCli(asked(url, "groups", "wait", "g-1", "--timeout", "5s", "--json"));

  assert.deepEqual([code, heard[0]?.path], [0, "/api/v1/groups/g-1/end?timeout=20000ms"]);
  assert.deepEqual([brief.code, heard[3]?.path], [10, "/api/v1/groups/g-1/end?timeout=5s"]);
});

const refusals: readonly (readonly [args: string[], env: Record<string, string>, code: string, expected: RegExp])[] = [
  [["jobs", "list", "--book", "a.db", "--server", "http://a"], {}, "invalid", /--book and --server are both given/],
  [["jobs", "list"], { DAYBOOK_BOOK: "a.db", DAYBOOK_SERVER: "http://a" }, "invalid", /both set: say with --book/],
  [["jobs", "list", "--book", "a.db", "--token", token], {}, "invalid", /--token is for a server/],
  [["backup", "b.db", "--server", "http://a"], {}, "invalid", /"backup" works on this machine.*needs a book/],
  [["backup", "b.db"], { DAYBOOK_SERVER: "http://a" }, "invalid", /"backup" works on this machine/],
  [["records", "export", "f", "--server", "http://a"], {}, "invalid", /"records export" works on this machine/],
  [["migrate", "--server", "http://a"], {}, "invalid", /"migrate" works on this machine/],
  [["run", "jobs.ts", "--server", "http://a"], {}, "invalid", /"run" works on this machine/],
  [["jobs", "list", "--server", "http://a"], {}, "unauthorized", /no token for http:\/\/a.*DAYBOOK_TOKEN/],
  [["jobs", "list", "--server", "a.example", "--token", token], {}, "invalid", /--server is "a\.example"/],
  [["jobs", "list", "--server", "http://ada:pw@a", "--token", token], {}, "invalid", /^--server has more than[^@]+$/],
  [["jobs", "list", "--server", "http://a", "--token", "x y"], {}, "invalid", /^--token is no token: [^"]+$/],
  [["info", "--server", "http://a", "--schema", "s"], { DAYBOOK_TOKEN: token }, "invalid", /--schema is for a book/],
  [["jobs", "enqueue", "a", "--server", "http://a", "--from", "a.ts"], {}, "invalid", /--from is for a book/],
  [["retain", "--server", "http://a", "--files", "f"], {}, "invalid", /--files is for a book: a server runs "retain"/],
  [["reseal", "--book", "a.db", "--no-wait"], {}, "invalid", /--no-wait is for a server/],
  [["events", "show", "..", "--server", "http://a", "--token", token], {}, "invalid", /no address can hold/],
];

for (const [args, env, code, expected] of refusals) {
  test(`refused before anything is sent: ${Object.keys(env).join(" ")} daybook ${args.join(" ")}`, async (t) => {
    const { stderr, stdout } = await runCli([...args, "--json"], { env, cwd: testFolder(t) });

    const error = parsedError(stderr);
    assert.deepEqual([stdout, error.code], ["", code]);
    assert.match(error.message, expected);
  });
}

test("an option wins over the environment, and a local command takes the book that it needs", async (t) => {
  const { url: book } = await openTest(t, "sqlite");
  const { url, heard } = await scriptedServer(t, json({ items: [], next: null }));
  const cwd = testFolder(t);
  writeFileSync(join(cwd, "token"), `${token}\n`);

  const here = { DAYBOOK_BOOK: book, DAYBOOK_SERVER: "http://127.0.0.1:1" };
  const copied = await runCli(["backup", join(cwd, "b.db")], { env: here });
  const onBook = await runCli(["jobs", "list", "--book", book], { env: { DAYBOOK_SERVER: url } });
  const onServer = await runCli(["jobs", "list", "--server", url, "--token", "@token"], { cwd, env: here });

  assert.deepEqual([copied.code, onBook.code, onServer.code, heard.length], [0, 0, 0, 1]);
  assert.equal(heard[0]?.headers.authorization, `Bearer ${token}`);
});

test("the line to the next page names the server and never the token", async (t) => {
  const { url } = await scriptedServer(t, json({ items: [], next: "c-2" }));

  const { stderr } = await runCli(asked(url, "jobs", "list"));

  assert.equal(stderr, `There are more: daybook jobs list --server ${url} --after c-2\n`);
});
