// A book in a file, what a killed process leaves of it, and all that lies in its folder.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { open, type Book } from "../../src/index.ts";
import { testFolder } from "../support/open-test.ts";

export async function note(book: Book, body: string): Promise<void> {
  await book.write((tx) => tx.sql`insert into note values (${body})`);
}
export const notes = (book: Book): Promise<object[]> => book.read((tx) => tx.sql`select body from note order by body`);

/** A closed book with one note. */
export async function makeBook(t: TestContext): Promise<{ folder: string; path: string }> {
  const folder = testFolder(t);
  const path = join(folder, "shop.db");
  const book = await open(path, { attach: false });
  await book.write((tx) => tx.sql`create table note (body text)`);
  await note(book, "milk");
  await book.close();
  return { folder, path };
}

/** Changes the file from a process that is killed before it can close it: the change is in the log alone. */
export function changeAndDie(path: string, script: string, mode: "wal" | "delete" = "wal"): void {
  const program = `const [path, script, mode] = process.argv.slice(1);
    const db = new (require("node:sqlite").DatabaseSync)(path);
    db.exec("pragma journal_mode = " + mode); db.exec(script); process.kill(process.pid, "SIGKILL");`;
  assert.equal(spawnSync(process.execPath, ["-e", program, path, script, mode]).signal, "SIGKILL");
  assert.ok(statSync(`${path}-${mode === "wal" ? "wal" : "journal"}`).size > 0, "the log is empty");
}

/** Every file with its bytes, its mode and when it was last changed. */
export function everything(folder: string): unknown[][] {
  return readdirSync(folder).map((name) => {
    const path = join(folder, name);
    const { mtimeNs, mode } = statSync(path, { bigint: true });
    return [name, statSync(path).isFile() ? hash("sha256", readFileSync(path)) : null, mtimeNs, mode];
  });
}
