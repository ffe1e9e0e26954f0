import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { errorCodes } from "../../src/core/error.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { parsed, parsedError, runCli, startCli, type Ended } from "./run-cli.ts";

const commands = ["migrate", "info", "sessions", "backup", "doctor"];

test("the help names every command and every global option", async () => {
  const { code, stdout } = await runCli(["--help"]);

  assert.equal(code, 0);
  for (const word of [...commands, "--book", "DAYBOOK_BOOK", "--tenant", "--schema", "--json", "--version"]) {
    assert.ok(stdout.includes(word), `${word} is not in the help`);
  }
});

test("the help of every command shows the global options and an example", async () => {
  for (const command of commands) {
    const { code, stdout } = await runCli([command, "--help"]);

    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`Usage: daybook ${command}`));
    assert.match(stdout, /--book <url>/);
    assert.match(stdout, new RegExp(`\\$ daybook ${command}`));
  }
});

test("a value that is also the name of a command does not become the command", async (t) => {
  const { url } = await openTest(t, "sqlite");

  const logs = await runCli(["--tenant", "jobs", "--book", url, "logs", "--name", "events", "--json"]);
  const help = await runCli(["help", "logs"]);

  assert.deepEqual([logs.code, parsed(logs.stdout)], [0, { items: [], next: null }]);
  assert.match(help.stdout, /^Usage: daybook logs/);
});

test("the version is the package's", async () => {
  const manifest = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");

  const { code, stdout } = await runCli(["--version"]);

  assert.equal(code, 0);
  assert.equal(stdout.trim(), (JSON.parse(manifest) as { version: string }).version);
});

test("no command at all shows the help and is wrong usage", async () => {
  const { code, stdout, stderr } = await runCli([]);
  const asJson = await runCli(["--json"]);

  assert.equal(code, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /Usage: daybook/);
  assert.equal(asJson.code, 2);
  assert.equal(parsedError(asJson.stderr).code, "invalid");
});

test("a Node that is too old is told so before anything that it cannot read is loaded", async (t) => {
  const folder = testFolder(t);
  const pretended = join(folder, "older.mjs");
  const run = async (version: string, ...args: string[]): Promise<Ended> => {
    const versions = JSON.stringify({ ...process.versions, node: version });
    writeFileSync(pretended, `Object.defineProperty(process, "versions", { value: ${versions} });`);
    return startCli(args, { cwd: folder, env: { NODE_OPTIONS: `--import=${pathToFileURL(pretended).href}` } }).ended;
  };
  const { engines } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8")) as {
    engines: { node: string };
  };
  const [, oldest = ""] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? [];
  const [major, minor] = oldest.split(".").map(Number);

  const said = await run("20.20.2", "info");
  const asJson = await run(`${major}.${(minor ?? 0) - 1}.9`, "info", "--json");
  const fine = await run(`${oldest}.0`, "--version");

  const message = (version: string): string => `daybook needs Node ${oldest} or later, and this is Node ${version}`;
  assert.deepEqual([said.code, said.stdout], [9, ""]);
  assert.equal(said.stderr, `error (incompatible): ${message("20.20.2")}\n`);
  assert.equal(asJson.code, errorCodes.incompatible.exit);
  assert.equal(parsedError(asJson.stderr).code, "incompatible");
  assert.deepEqual([fine.code, fine.stderr], [0, ""]);
  // Before the check nothing is imported: what an old Node cannot parse or does not have would end it first.
  assert.doesNotMatch(readFileSync(join(import.meta.dirname, "../../src/cli/main.ts"), "utf8"), /^import /m);
});

const slips: readonly (readonly [args: string[], expected: RegExp])[] = [
  [["infoo"], /unknown command 'infoo' \(Did you mean info\?\)/],
  [["session"], /Did you mean sessions\?/],
  [["info", "--bok", "a.db"], /unknown option '--bok' \(Did you mean --book\?\)/],
  [["--jsn", "info"], /Did you mean --json\?/],
  [["backup", "b.db", "--overwite"], /Did you mean --overwrite\?/],
  [["info", "--wholly-unknown"], /unknown option '--wholly-unknown': see "daybook info --help"/],
  [["dead-letters", "buckets"], /unknown command 'buckets': see "daybook dead-letters --help"/],
  [["jobs", "edit", "x"], /required option '--params <json>' not specified: see "daybook jobs edit --help"/],
  [["wholly-unknown"], /unknown command 'wholly-unknown': see "daybook --help"/],
  [["info", "a.db"], /too many arguments/],
  [["backup"], /missing required argument 'path'/],
  [["info", "--book"], /option '--book <url>' argument missing/],
  [["sessions", "--book", "a.db", "--limit", "0"], /--limit is 0: give a whole number from 1 to 500/],
  [["sessions", "--book", "a.db", "--limit", "ten"], /--limit is "ten": give a whole number from 1 to 500/],
];

for (const [args, expected] of slips) {
  test(`wrong usage ends with 2 and says what was meant: daybook ${args.join(" ")}`, async (t) => {
    const cwd = testFolder(t);

    const [{ code, stdout, stderr }, asJson] = await Promise.all([
      runCli(args, { cwd }),
      runCli([...args.slice(0, 1), "--json", ...args.slice(1)], { cwd }),
    ]);

    assert.equal(code, 2);
    assert.equal(stdout, "");
    assert.match(stderr, expected);
    assert.equal(asJson.code, 2);
    assert.equal(parsedError(asJson.stderr).code, "invalid");
    assert.match(parsedError(asJson.stderr).message, expected);
  });
}

test("a command without a book says both ways to name one", async () => {
  for (const env of [{}, { DAYBOOK_BOOK: "" }]) {
    const { code, stderr } = await runCli(["info", "--json"], { env });

    assert.equal(code, 2);
    assert.match(parsedError(stderr).message, /no book given.*--book <url>.*DAYBOOK_BOOK/);
  }
});

test("the book may be named before the command, after it, and by the environment, which an option overrides", async (t) => {
  const { book, url } = await openTest(t, "sqlite");

  const ways = await Promise.all([
    runCli(["--book", url, "info", "--json"]),
    runCli(["info", "--json", "--book", url]),
    runCli(["--json", "info"], { env: { DAYBOOK_BOOK: url } }),
    runCli(["info", "--book", url, "--json"], { env: { DAYBOOK_BOOK: "elsewhere.db" } }),
  ]);

  for (const { code, stdout } of ways) {
    assert.equal(code, 0);
    assert.equal(parsed(stdout)["location"], book.location);
  }
});

test("a tenant that cannot be one is refused, from the option and from the environment", async (t) => {
  const { url } = await openTest(t, "sqlite");

  const byOption = await runCli(["info", "--book", url, "--tenant", "a b"]);
  const byVariable = await runCli(["info", "--book", url], { env: { DAYBOOK_TENANT: "a b" } });

  for (const { code, stderr } of [byOption, byVariable]) {
    assert.equal(code, 2);
    assert.match(stderr, /tenant "a b" must be/);
  }
});
