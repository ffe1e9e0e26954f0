// Acknowledged is on disk: seen from outside, by the system calls of a process that writes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { open } from "../../src/index.ts";
import { cleanup, testFolder } from "../support/open-test.ts";

const program = join(import.meta.dirname, "../support/child-acknowledge.ts");
const writes = 5;

/** What a process did with the files of a book, in order; undefined where nobody can look at system calls. */
function traced(folder: string): readonly string[] | undefined {
  const log = join(folder, "calls");
  const calls = "trace=openat,write,pwrite64,fsync,fdatasync";
  const command = ["-f", "-y", "-s", "20", "-e", calls, "-o", log, process.execPath, program, join(folder, "shop.db")];
  const { error, status } = spawnSync("strace", [...command, String(writes)]);
  if (error !== undefined) return undefined;
  assert.equal(status, 0);
  return readFileSync(log, "utf8")
    .split("\n")
    .flatMap((line) => toWord(line, folder) ?? []);
}

function toWord(line: string, folder: string): string | undefined {
  if (line.includes('"acknowledged')) return "acknowledged";
  const flushed = /\b(?:fsync|fdatasync)\(\d+<([^>]+)>/.exec(line)?.[1];
  if (flushed === folder) return "flushed folder";
  if (flushed?.endsWith("shop.db-wal") === true) return "flushed log";
  if (/\bpwrite64\(\d+<[^>]+shop\.db-wal>/.test(line)) return "wrote log";
  return /\bopenat\(.*shop\.db-wal", .*O_CREAT/.test(line) ? "opened log" : undefined;
}

async function settingsOf(t: TestContext, folder: string): Promise<object[]> {
  const book = await open(join(folder, "plain.db"), { attach: false });
  cleanup(t, () => book.close());
  return book.write((tx) => tx.sql`select journal_mode, synchronous from pragma_journal_mode, pragma_synchronous`);
}

test("the log is flushed before each acknowledgement, and its folder before the first", async (t) => {
  const folder = testFolder(t);

  const seen = traced(folder);

  // Where system calls cannot be looked at, what asks SQLite for the flushes is.
  if (seen === undefined) {
    assert.deepEqual(await settingsOf(t, folder), [{ journal_mode: "wal", synchronous: 2 }]);
    return;
  }
  const parts = seen.join("\n").split("acknowledged").slice(0, -1);
  assert.equal(parts.length, writes);
  for (const part of parts) {
    const did = part.trim().split("\n");
    const lastWrite = did.lastIndexOf("wrote log");
    assert.ok(lastWrite >= 0 && did.indexOf("flushed log", lastWrite) > lastWrite, `not flushed: ${part}`);
  }
  const [first = ""] = parts;
  assert.ok(first.lastIndexOf("flushed folder") > first.indexOf("opened log"), `the folder is not flushed: ${first}`);
});
