import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { errorCodes, type ErrorCode } from "../../src/index.ts";
import { projectWith } from "../docs/snippet.ts";
import { backends, cleanup, openTest, testUrl } from "../support/open-test.ts";
import { answer, refusal } from "./answer-of.ts";
import { runCli, startCli, type Ended, type Running } from "./run-cli.ts";
import { until } from "./until.ts";

/** In this repo the package is found as its sources. */
const env = { NODE_OPTIONS: "--conditions=@daybook/source" };

const jobs = `
import { job } from "daybook";
type Params = { name: string };
export const greet = job<Params>("greet", { run: ({ name }) => \`Hello, \${name}.\` });
export default [greet, job("boom", { run: () => { throw new RangeError("too\\u001B[1m far\\nby one"); } })];
`;

for (const backend of backends) {
  test(`${backend}: a file's jobs are run until SIGTERM, whoever enqueues them`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const { running, ended } = await startRun(t, { book: url, module: jobs });
    await untilWorking(book, ended);

    const greeted = await answer(["jobs", "enqueue", "greet", "--params", '{"name": "ada"}'], url);
    await until(async () => (await book.jobs.get(String(greeted["id"]))).status === "completed");
    const failed = await answer(["jobs", "enqueue", "boom", "--attempts", "1", "--tenant", "acme"], url);
    await until(async () => (await book.tenant("acme").jobs.get(String(failed["id"]))).status === "failed");
    running.child.kill("SIGTERM");

    const { code, signal, stdout, stderr } = await ended;
    const lines = stdout.trimEnd().split("\n");
    assert.deepEqual([code, signal, stderr], [0, null, ""]);
    assert.match(lines[0] ?? "", /^works on .+ as session [0-9a-f-]{36}: greet, boom$/);
    assert.match(lines[1] ?? "", new RegExp(`^\\S+Z completed greet ${String(greeted["id"])} in \\d+ ms$`));
    const boom = `^\\S+Z failed boom ${String(failed["id"])} of acme in \\d+ ms: RangeError: too far by one$`;
    assert.match(lines[2] ?? "", new RegExp(boom));
    assert.deepEqual(lines.slice(3), ["stopped: 1 done, 1 failed"]);
    assert.equal((await book.jobs.get(String(greeted["id"]))).run?.result, "Hello, ada.");
    const [session] = (await book.sessions.list()).items;
    assert.equal(session?.status, "success");
  });
}

test("with --json each line is an object", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const { id } = await book.jobs.enqueue("greet", { name: "ada" });
  const failed = await book.jobs.enqueue("boom", {}, { attempts: 2, backoff: ["1h"] });
  const { running, ended } = await startRun(t, { book: url, module: jobs, args: ["--json", "--concurrency", "1"] });
  await Promise.race([until(async () => (await book.jobs.get(failed.id)).status === "failed"), ended]);

  running.child.kill("SIGINT");

  const { code, stdout } = await ended;
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(code, 0);
  assert.deepEqual(
    lines.map((each) => each["type"]),
    ["working", "job", "job", "stopped"],
  );
  assert.deepEqual(lines[0]?.["names"], ["greet", "boom"]);
  assert.deepEqual([lines[1]?.["id"], lines[1]?.["status"], lines[1]?.["error"]], [id, "completed", null]);
  const error = lines[2]?.["error"] as { type: string; message: string } | undefined;
  assert.deepEqual([error?.type, error?.message], ["RangeError", "too\u001B[1m far\nby one"]);
  assert.equal(lines[2]?.["retriedBy"], (await book.jobs.get(failed.id)).retriedBy);
  assert.deepEqual(lines[3], { type: "stopped", done: 1, failed: 1, retried: 1, heard: 0, heardFailed: 0 });
});

test("only the queues that are named are served, and the book is made where there is none", async (t) => {
  const url = await testUrl(t, "sqlite");
  const { running, ended } = await startRun(t, { book: url, module: jobs, args: ["--queues", "mail, news"] });
  await Promise.race([until(async () => (await runCli(["info", "--book", url])).code === 0), ended]);
  const { book } = await openTest(t, "sqlite", { url, worker: false });
  const ids: string[] = [];
  for (const queue of ["other", "mail", "news"]) {
    ids.push((await book.jobs.enqueue("greet", { name: queue }, { queue })).id);
  }

  await until(async () => (await book.jobs.list({ status: "completed" })).items.length === 2);
  running.child.kill("SIGTERM");

  assert.equal((await ended).code, 0);
  assert.equal((await book.jobs.get(ids[0] ?? "")).status, "queued");
});

const stubborn = `
import { job } from "daybook";
process.once("SIGINT", () => console.log("heard"));
export const hang = job("hang", { run: () => new Promise(() => setInterval(() => undefined, 1000)) });
`;

test("a second signal ends the program at once, and what it ran is not lost", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const { id } = await book.jobs.enqueue("hang", {});
  const { running, ended } = await startRun(t, { book: url, module: stubborn });
  await until(async () => (await book.jobs.get(id)).status === "running");

  const heard = new Promise<void>((resolve) => {
    running.child.stdout?.on("data", (chunk: Buffer) => chunk.includes("heard") && resolve());
  });
  running.child.kill("SIGINT");
  await heard;
  assert.equal((await book.jobs.get(id)).status, "running");
  assert.equal(running.child.exitCode, null, "it waits for what runs");
  running.child.kill("SIGINT");

  const { signal } = await ended;
  assert.equal(signal, "SIGINT");
  await book.sessions.look();
  const [retry] = (await book.jobs.list({ name: "hang", status: ["queued", "waiting"] })).items;
  assert.equal(retry?.retryOf, id);
});

const listens = `
import { job, listener } from "daybook";
export const bell = listener("bell", {
  on: "bell",
  live: true,
  run: (_, { signal }) => new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    console.log("heard");
  }),
});
export const rings = job("rings", {
  run: async (_, { book }) => {
    const told = new Promise((resolve) => process.once("SIGUSR2", resolve));
    book.events.emit("bell");
    await told;
    throw new RangeError("too late");
  },
});
`;

for (const backend of backends) {
  test(`${backend}: a signal ends live handlers at once, while a job has its grace and is still reported`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const { id } = await book.jobs.enqueue("rings", {}, { attempts: 1 });
    const { running, ended } = await startRun(t, { book: url, module: listens, args: ["--grace", "1m"] });
    let said = "";
    running.child.stdout?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const untilSaid = (words: RegExp): Promise<unknown> =>
      Promise.race([until(() => words.test(said)), ended.then((end) => assert.fail(JSON.stringify(end)))]);
    await untilSaid(/^heard$/m);

    running.child.kill("SIGTERM");
    await untilSaid(/ cancelled bell /);
    assert.equal((await book.jobs.get(id)).status, "running");
    running.child.kill("SIGUSR2");

    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, new RegExp(`^\\S+Z failed rings ${id} in \\d+ ms: RangeError: too late$`, "m"));
    assert.match(stdout, /^stopped: 0 done, 1 failed; 1 live run$/m);
    const [heard] = (await book.runs.list({ status: "cancelled" })).items;
    assert.deepEqual([heard?.name, heard?.error?.type], ["bell", "ShutdownError"]);
  });
}

const restless = `
import { job } from "daybook";
setInterval(() => undefined, 1000);
export const greet = job("greet", { run: () => undefined });
`;

test("what the file left open does not keep a worker that was told to stop", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const { running, ended } = await startRun(t, { book: url, module: restless });
  await untilWorking(book, ended);

  running.child.kill("SIGTERM");

  assert.equal((await ended).code, 0);
});

test("a file that never finishes loading is ended by a signal", async (t) => {
  const module = "console.log('loading'); setInterval(() => undefined, 1000); await new Promise(() => undefined);";
  const { running, ended } = await startRun(t, { book: await testUrl(t, "sqlite"), module });
  await new Promise((resolve) => running.child.stdout?.once("data", resolve));

  running.child.kill("SIGTERM");

  assert.equal((await ended).code, 143);
});

const bad: readonly (readonly [what: string, file: string, text: string | null, code: ErrorCode, says: RegExp])[] = [
  ["that is not there", "gone.ts", null, "not_found", /there is no file .*gone\.ts/],
  ["that is a folder without one", "node_modules", null, "invalid", /no file in \S+node_modules exports an app/],
  ["that exports nothing", "empty.ts", "console.error;", "invalid", /empty\.ts exports nothing: export them/],
  [
    ...(["without definitions", "other.ts", "export const a = 1; export default () => 2;", "invalid"] as const),
    /other\.ts exports a, default, and none of it is a definition: export them, one by one or as a list/,
  ],
  [
    ...(["that throws", "throws.ts", "\nthrow new TypeError('no mail server');", "invalid"] as const),
    /throws\.ts cannot be loaded: TypeError: no mail server \(.*throws\.ts:2:7\)/,
  ],
  [
    ...(["with a slip", "slip.ts", "export const a: = 1;", "invalid"] as const),
    /slip\.ts cannot be loaded: SyntaxError: .+ \(.*slip\.ts:1\)/,
  ],
  [
    ...(["that cannot be stripped", "enum.ts", "export enum Colour { Red }", "invalid"] as const),
    /enum\.ts cannot be loaded: SyntaxError: TypeScript enum is not supported in strip-only mode/,
  ],
  [
    ...(["that lacks a package", "lacks.ts", 'import "no-such-package";', "invalid"] as const),
    /lacks\.ts cannot be loaded: Error: Cannot find package 'no-such-package'/,
  ],
  [
    ...(["with a bad definition", "bad.ts", 'import { job } from "daybook"; job("a", { rum: 1 } as never);'] as const),
    ...([
      "invalid",
      /bad\.ts cannot be loaded: DaybookError: unknown option "rum" for job "a": did you mean "run"/,
    ] as const),
  ],
  [
    ...(["that uses a name twice", "twice.ts"] as const),
    'import { job } from "daybook"; export default [job("a", { run() {} }), job("a", { run() {} })];',
    ...(["invalid", /two jobs in "use" are named "a": rename one/] as const),
  ],
];

test("a file that cannot be run is refused, with its place, and no book is made", async (t) => {
  const files = bad.flatMap(([, file, text]) => (text === null ? [] : [[file, text] as const]));
  const cwd = projectWith(t, Object.fromEntries(files));

  const ends = await Promise.all(bad.map(([, file]) => refusal(["run", file], join(cwd, "shop.db"), { cwd })));
  const usage = await refusal(["run", "empty.ts", "--queues", "a,,b"], join(cwd, "shop.db"), { cwd });
  const missing = await refusal(["info"], join(cwd, "shop.db"));

  for (const [index, [exit, code, message]] of ends.entries()) {
    const [what, , , expected, says] = bad[index] ?? ["", "", "", "internal", /./];
    assert.deepEqual([exit, code], [errorCodes[expected].exit, expected], `a file ${what}`);
    assert.match(message, says, `a file ${what}`);
  }
  assert.match(usage[2], /queue "" is empty/);
  assert.equal(missing[1], "not_found");
});

type Start = { readonly book: string; readonly module: string; readonly args?: readonly string[] };

async function startRun(
  t: TestContext,
  { book, module, args = [] }: Start,
): Promise<{ running: Running; ended: Promise<Ended> }> {
  const cwd = projectWith(t, { "jobs.ts": module });
  const running = startCli(["run", "jobs.ts", "--book", book, ...args], { cwd, env });
  cleanup(t, async () => {
    running.child.kill("SIGKILL");
    await running.ended;
  });
  return { running, ended: running.ended };
}

/** Waits until the other process is a session of the book with jobs to run; one that ends before has failed. */
async function untilWorking(book: Awaited<ReturnType<typeof openTest>>["book"], ended: Promise<Ended>): Promise<void> {
  const hosts = async (): Promise<boolean> =>
    (await book.read((tx) => tx.sql`select 1 from daybook_session_host limit 1`)).length > 0;
  await Promise.race([until(hosts), ended.then((end) => assert.fail(`it ended early: ${JSON.stringify(end)}`))]);
}
