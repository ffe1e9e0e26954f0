// daybook mcp as an assistant starts it: a process of its own, spoken with by the official client.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { open } from "../../src/index.ts";
import { listen } from "../../src/server/listen.ts";
import { assistant, type Assistant } from "../server/mcp-client.ts";
import { compileCache } from "../support/compile-cache.ts";
import { backends, bookUrl, cleanup, testFolder } from "../support/open-test.ts";
import { openServer } from "../support/open-server.ts";
import { parsedError, runCli, startCli } from "./run-cli.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");

type Started = Assistant & { readonly stderr: () => string };

async function start(t: TestContext, args: readonly string[], cwd = testFolder(t)): Promise<Started> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ["--conditions=@daybook/source", main, "mcp", ...args],
    cwd,
    env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: compileCache },
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  cleanup(t, () => client.close());
  return Object.assign(assistant(client), { stderr: () => stderr });
}

for (const backend of backends) {
  test(`${backend}: an assistant reads a book that it starts a process for, and changes nothing`, async (t) => {
    const url = await bookUrl(t, backend);
    const book = await open(url, { worker: false });
    const { id } = await book.jobs.enqueue("send-receipt", { orderId: "o-17" });
    const { call, names } = await start(t, ["--book", url]);

    const listed = await call("jobs_list");
    const refused = await call("jobs_cancel", { id });
    const info = await call("info");

    assert.ok((await names()).includes("jobs_show") && !(await names()).includes("jobs_cancel"));
    assert.deepEqual(
      (listed.value["items"] as { id: string }[]).map((each) => each.id),
      [id],
    );
    assert.match(refused.text, /^forbidden: .*--allow/);
    assert.equal(info.value["dialect"], backend);
    assert.equal((await book.jobs.get(id)).status, "queued");
    await book.close();
  });
}

test("with --allow and --tenant an assistant works for that tenant alone", async (t) => {
  const url = await bookUrl(t, "sqlite");
  const { call, names } = await start(t, ["--book", url, "--tenant", "acme", "--allow", "operate"]);

  const made = await call("jobs_enqueue", { name: "send-receipt", tags: ["by-assistant"] });
  const result = await call("jobs_result", { id: made.value["id"] });
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());

  assert.equal(made.failed, false);
  assert.equal(result.value["status"], "queued");
  assert.ok(!(await names()).includes("doctor") && !(await names()).includes("info"));
  assert.deepEqual((await book.tenant("acme").jobs.list()).items.length, 1);
  assert.deepEqual((await book.jobs.list()).items.length, 0);
});

test("what the user's file declares is used, and what it prints does not disturb the protocol", async (t) => {
  const folder = testFolder(t);
  const url = await bookUrl(t, "sqlite");
  writeFileSync(
    join(folder, "daybook.config.ts"),
    `import { entity } from ${JSON.stringify(import.meta.resolve("../../src/index.ts"))};
     import { z } from ${JSON.stringify(import.meta.resolve("zod"))};
     console.log("a greeting on standard output");
     setInterval(() => console.log("and again"), 10);
     export const order = entity("order", { schema: z.object({ id: z.string() }), key: "id" });
     export default { use: [order] };`,
  );
  const { call, stderr } = await start(t, ["--book", url, "--allow", "operate"], folder);

  const put = await call("records_put", { type: "order", document: { id: "o-17" } });
  const unknown = await call("records_put", { type: "ordre", document: { id: "o-17" } });
  const shown = await call("records_show", { type: "order", key: ["o-17"] });

  assert.equal(put.failed, false, put.text);
  assert.match(unknown.text, /^invalid: .* does not define the record "ordre": did you mean "order"\?/);
  assert.equal(shown.failed, false, shown.text);
  assert.match(stderr(), /a greeting on standard output/);
});

test("with --server the tools run there, as far as the token allows", async (t) => {
  const { app, book, tokens } = await openServer(t, "sqlite");
  const listening = await listen(app, { port: 0 });
  cleanup(t, () => listening.close(0));
  const at = ["--server", listening.url, "--token"];
  const { call, names } = await start(t, [...at, tokens.operate, "--allow", "admin"]);

  const made = await call("jobs_enqueue", { name: "send-receipt", params: { orderId: "o-17" } });
  const shown = await call("jobs_show", { id: made.value["id"] });
  const missing = await call("jobs_show", { id: "nobody" });
  // What was published before it follows is not told.
  let isTold = false;
  const following = call("events_tail", { count: 1 }).finally(() => (isTold = true));
  while (!isTold) await book.events.publish("order.paid", null);
  const followed = await following;
  const unknown = await startCli(["mcp", ...at, "dbk_nobody", "--json"]).ended;

  assert.equal(shown.value["name"], "send-receipt", made.text);
  assert.match(missing.text, /^not_found: /);
  const [event] = followed.value["items"] as { topic: string }[];
  assert.deepEqual([event?.topic, followed.value["ended"]], ["order.paid", true]);
  assert.ok(!(await names()).includes("calls_reveal") && !(await names()).includes("doctor"));
  assert.deepEqual((await book.jobs.list()).items.length, 1);
  assert.deepEqual([unknown.code, parsedError(unknown.stderr).code], [3, "unauthorized"]);
});

test("the process ends when its input does, and by a signal", async (t) => {
  const url = await bookUrl(t, "sqlite");

  const one = startCli(["mcp", "--book", url]);
  one.child.stdin?.end();
  const other = startCli(["mcp", "--book", url]);
  other.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })}\n`);
  await once(other.child.stdout ?? other.child, "data");
  other.child.kill("SIGTERM");

  assert.deepEqual(await one.ended, { code: 0, signal: null, stdout: "", stderr: "" });
  assert.equal((await other.ended).code, 0);
});

test("what is no message is said on standard error, and one that has no end ends the process", async (t) => {
  const { child, ended } = startCli(["mcp", "--book", await bookUrl(t, "sqlite")]);

  child.stdin?.write(`no JSON\n{"a": 1}\n${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })}\n`);
  await once(child.stdout ?? child, "data");
  // What the process no longer reads is an error of the pipe.
  child.stdin?.on("error", () => undefined).write("x".repeat(11 * 1024 * 1024));
  const { code, stdout, stderr } = await ended;

  assert.deepEqual([code, JSON.parse(stdout)], [2, { jsonrpc: "2.0", id: 1, result: {} }]);
  assert.match(stderr, /^refused: Unexpected token .*\nrefused: .*Invalid.*\n/);
  assert.match(stderr, /error \(invalid\): the protocol has ended: refused: ReadBuffer exceeded maximum size/);
});

test("an assistant that reads no more is no failure", async (t) => {
  const child = spawn(process.execPath, [main, "mcp", "--book", await bookUrl(t, "sqlite")]);
  const stderr = text(child.stderr);
  const ask = (id: number): unknown => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n`);

  ask(1);
  await once(child.stdout, "data");
  child.stdout.destroy();
  ask(2);
  await once(child, "exit");

  assert.deepEqual([child.exitCode, await stderr], [0, ""]);
});

test("a book that is not there is said at once, on standard error", async (t) => {
  const cwd = testFolder(t);

  const { code, stdout, stderr } = await startCli(["mcp", "--book", "none.db", "--json"], { cwd }).ended;
  const wrong = await runCli(["mcp", "--book", "none.db", "--allow", "everything", "--json"], { cwd });

  assert.deepEqual([code, stdout, parsedError(stderr).code], [4, "", "not_found"]);
  assert.match(parsedError(wrong.stderr).message, /Allowed choices are read, operate, admin/);
});
