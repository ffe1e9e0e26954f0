// The client is for browsers, Deno and Bun as well: nothing of it leads to Node or to the engine, and it runs without their globals.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { clientFiles, find, writeClient } from "./client-files.ts";
import { events, json, stub } from "./stub.ts";

test("the client leads to its own files and to what runs anywhere, and stays small", () => {
  const files = clientFiles();

  const others = [...files].flatMap(([path, { imports }]) =>
    imports.filter((each) => !each.startsWith(".")).map((each) => `${path} imports ${each}`),
  );
  const rooms = [...files.keys()].filter((path) => !path.startsWith("src/client/")).toSorted();
  const bytes = [...files.values()].reduce((sum, { code }) => sum + code.replaceAll(/^\s*\/\/.*$/gm, "").length, 0);

  assert.deepEqual(others, []);
  assert.deepEqual(rooms, ["src/core/anywhere.ts", "src/core/daybook-error.ts"]);
  assert.ok(bytes < 80_000, `${bytes} bytes`);
});

const program = `
// As a browser has it; what is under fetch may need them where it comes from.
for (const name of ["process", "Buffer", "setImmediate", "clearImmediate", "global"]) {
  const value = globalThis[name];
  const get = () => {
    const [, , caller = ""] = new Error("").stack.split("\\n");
    if (/\\/src\\/(?:client|core)\\//.test(caller)) throw new Error(name + " is not there");
    return value;
  };
  if (value !== undefined) Object.defineProperty(globalThis, name, { get, set: () => undefined, configurable: true });
}
const { connect } = await import("./src/client/connect.js");
const book = connect(URL_OF_SERVER, { token: "dbk_1" });
const made = await book.jobs.enqueue("send-receipt", { orderId: "o-17" });
const facts = [];
for await (const fact of book.stream()) if (facts.push(fact.name) === 2) break;
console.log(made.id, facts.join());
`;

async function programFor(t: TestContext): Promise<string> {
  const answer = events("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", "open");
  const { url } = await stub(t, json({ id: "j-1", name: "send-receipt", status: "queued", created: true }), answer);
  const folder = testFolder(t);
  writeClient(folder);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "main.js"), program.replace("URL_OF_SERVER", JSON.stringify(url)));
  return join(folder, "main.js");
}

async function run(command: string, args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await closed;
  return { stdout, stderr };
}

test("the client runs where there are only the globals of a browser", async (t) => {
  const { stdout, stderr } = await run(process.execPath, [await programFor(t)]);

  assert.deepEqual([stdout, stderr], ["j-1 a,b\n", ""]);
});

for (const [name, args] of [
  ["deno", ["run", "--allow-net", "--allow-read"]],
  ["bun", ["run"]],
] as const) {
  test(`the client runs on ${name}, where it is installed`, async (t) => {
    const command = find(name);
    if (command === undefined) return t.diagnostic(`${name} is not on this machine, so nothing was run on it`);
    const { stdout, stderr } = await run(command, [...args, await programFor(t)]);

    assert.equal(stdout, "j-1 a,b\n", stderr);
  });
}
