import assert from "node:assert/strict";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { open } from "../../src/index.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { parsed, parsedError, runCli } from "./run-cli.ts";

test("a backup of a book in use is itself a book with the same content", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  await book.write((tx) => tx.sql`create table note (body text)`);
  await book.write((tx) => tx.sql`insert into note values ('milk')`);
  const copy = join(testFolder(t), "copy.db");

  const { code, stdout } = await runCli(["backup", "--book", url, copy, "--json"]);

  const report = parsed(stdout);
  assert.equal(code, 0);
  assert.equal(report["path"], copy);
  assert.equal(report["bytes"], statSync(copy).size);
  await using opened = await open(copy);
  assert.deepEqual(await opened.read((tx) => tx.sql`select body from note`), [{ body: "milk" }]);
});

test("a backup does not replace a file unless it is told to", async (t) => {
  const { url } = await openTest(t, "sqlite");
  const copy = join(testFolder(t), "copy.db");
  writeFileSync(copy, "something dear");

  const refused = await runCli(["backup", "--book", url, copy, "--json"]);
  const size = statSync(copy).size;
  const replaced = await runCli(["backup", "--book", url, copy, "--overwrite"]);

  assert.deepEqual([refused.code, parsedError(refused.stderr).code], [5, "conflict"]);
  assert.equal(size, "something dear".length);
  assert.equal(replaced.code, 0);
  assert.match(replaced.stdout, /copy\.db: [\d.]+ KiB, \d+ tables, checked\n$/);
  assert.deepEqual(readdirSync(dirname(copy)), ["copy.db"]);
});

test("a backup into a folder that is not there is refused", async (t) => {
  const { url } = await openTest(t, "sqlite");

  const { code, stderr } = await runCli(["backup", "--book", url, join(testFolder(t), "nowhere", "copy.db"), "--json"]);

  assert.deepEqual([code, parsedError(stderr).code], [7, "unavailable"]);
});

test("a book on PostgreSQL says what to back it up with", async (t) => {
  const { url } = await openTest(t, "postgres");

  const { code, stderr } = await runCli(["backup", "--book", url, join(testFolder(t), "copy.db")]);

  assert.equal(code, 2);
  assert.match(stderr, /pg_dump --schema=daybook/);
});
