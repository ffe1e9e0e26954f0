import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { cleanup, openTest, testFolder, testUrl } from "../support/open-test.ts";
import { open } from "../../src/index.ts";
import { startCli, type Ended } from "./run-cli.ts";
import { slowed } from "./slowed.ts";
import { until } from "./until.ts";

for (const [name, exit] of [
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const) {
  test(`${name} ends a command that waits, with ${exit} and its connections closed`, async (t) => {
    const url = await testUrl(t, "postgres");
    await (await open(url, { attach: false })).close();
    const lock = await connect(t, url);
    await lock.query("begin");
    await lock.query("lock table daybook.daybook_session in access exclusive mode");
    const { child, ended } = startCli(["sessions", "--book", url], { env: slowed(500) });
    // Asked on another connection: inside one transaction the list of connections never changes.
    const observer = await connect(t, url);
    await untilRunning(ended, async () => (await backendsOf(observer)).includes("Lock"));

    const heard = says(child, "heard");
    child.kill(name);
    await heard;
    await lock.query("rollback");

    const { code, stdout, stderr } = await ended;
    assert.deepEqual({ code, stdout, stderr }, { code: exit, stdout: "heard\n", stderr: "" });
    await until(async () => (await backendsOf(observer)).length === 0);
  });
}

for (const [name, exit] of [
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const) {
  for (const command of ["sessions", "run"]) {
    test(`${name} ends ${command} at once with ${exit} while its book is being opened`, async (t) => {
      const module = join(testFolder(t), "jobs.ts");
      const library = JSON.stringify(new URL("../../src/index.ts", import.meta.url).href);
      writeFileSync(module, `import { job } from ${library}; export const greet = job("greet", { run() {} });`);
      const silent = createServer((socket) => void socket.on("error", () => undefined));
      const called = once(silent, "connection");
      silent.listen(0, "127.0.0.1");
      await once(silent, "listening");
      cleanup(t, () => silent.close());
      const url = `postgres://me@127.0.0.1:${(silent.address() as AddressInfo).port}/shop`;
      // It would wait for the server for ever.
      const env = slowed(5000);
      const { child, ended } = startCli([command, ...(command === "run" ? [module] : []), "--book", url], { env });
      cleanup(t, () => child.kill("SIGKILL"));
      await Promise.race([called, ended]);

      child.kill(name);

      const { code, stdout, stderr } = await ended;
      assert.deepEqual({ code, stdout, stderr }, { code: exit, stdout: "heard\n", stderr: "" });
    });
  }
}

test("a backup that is interrupted leaves nothing behind, at once", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  const folder = testFolder(t);
  // It would wait for the copy for ever.
  const { child, ended } = startCli(["backup", "--book", url, join(folder, "copy.db")], { env: slowed() });
  cleanup(t, () => child.kill("SIGKILL"));
  await Promise.race([says(child, "copied"), ended]);
  assert.match(String(readdirSync(folder)), /^copy\.db\..+\.partial$/);

  child.kill("SIGINT");

  const { code, signal, stdout } = await ended;
  // While the thread is inside its long statement the process can only end by the signal itself; shells show 130 too.
  assert.ok(code === 130 || signal === "SIGINT", `ended with ${code} ${signal}`);
  assert.equal(stdout, "copied\nheard\n");
  assert.deepEqual(readdirSync(folder), []);
  assert.deepEqual(await book.doctor(), []);
});

test("a reader that goes away early is no failure", async (t) => {
  const { url } = await openTest(t, "sqlite");
  const main = join(import.meta.dirname, "../../src/cli/main.ts");
  const pipe = `"$0" "$1" sessions --book "$2" | true; echo "\${PIPESTATUS[0]}"`;

  const shell = spawn("bash", ["-c", pipe, process.execPath, main, url], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, error] = ["", ""];
  shell.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  shell.stderr.on("data", (chunk: Buffer) => (error += chunk.toString()));
  await once(shell, "close");

  assert.deepEqual([out.trim(), error], ["0", ""]);
});

/** Resolves once it has said the word. */
function says({ stdout }: ChildProcess, word: string): Promise<void> {
  return new Promise((resolve) => stdout?.on("data", (chunk: Buffer) => chunk.includes(word) && resolve()));
}

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: "test" });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

/** What each connection of the command line to this database is waiting for. */
async function backendsOf(client: Client): Promise<(string | null)[]> {
  const { rows } = await client.query<{ waits: string | null }>(
    "select wait_event_type as waits from pg_stat_activity where application_name = 'daybook' and datname = current_database()",
  );
  return rows.map((row) => row.waits);
}

/** Waits for something that a running command does; one that ends before has failed, and its words say why. */
async function untilRunning(ended: Promise<Ended>, holds: () => boolean | Promise<boolean>): Promise<void> {
  await Promise.race([until(holds), ended.then((end) => assert.fail(`it ended early: ${JSON.stringify(end)}`))]);
}
