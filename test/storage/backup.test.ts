// A backup never harms what is there already, and says why it cannot be made.
import assert from "node:assert/strict";
import { chmodSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { open, type Book } from "../../src/index.ts";
import { cleanup, openTest, testFolder } from "../support/open-test.ts";

async function withNote(book: Book): Promise<void> {
  await book.write((tx) => tx.sql`create table note (body text)`);
  await book.write((tx) => tx.sql`insert into note values ('milk')`);
}

const notes = (book: Book): Promise<object[]> => book.read((tx) => tx.sql`select body from note`);

describe("a backup onto the book itself", () => {
  test("is refused under each of its names, also to overwrite", async (t) => {
    const { book, url } = await openTest(t, "sqlite");
    await withNote(book);
    const folder = testFolder(t);
    symlinkSync(url, join(folder, "link.db"));
    linkSync(url, join(folder, "hard.db"));
    symlinkSync(join(url, ".."), join(folder, "same"));
    const names = [url, `${url}-wal`, `${url}-shm`, `${url}-journal`, join(folder, "link.db"), join(folder, "hard.db")];

    for (const name of [...names, join(folder, "same", "test.db-wal")]) {
      await assert.rejects(book.backup(name, { overwrite: true }), {
        code: "invalid",
        message: /belongs to the book itself: choose another name/,
      });
    }

    assert.deepEqual(await notes(book), [{ body: "milk" }]);
    assert.deepEqual(await book.doctor(), []);
  });
});

describe("a name that a backup cannot have", () => {
  for (const end of ["-wal", "-shm", "-journal"]) {
    test(`a left ${end} is refused, because SQLite would take it for the copy's own`, async (t) => {
      const { book } = await openTest(t, "sqlite");
      const folder = testFolder(t);
      writeFileSync(join(folder, `copy.db${end}`), "left");

      await assert.rejects(book.backup(join(folder, "copy.db"), { overwrite: true }), {
        code: "conflict",
        message: /belongs to another book of that name.*close it, or move it away/,
      });

      assert.deepEqual(readdirSync(folder), [`copy.db${end}`]);
    });
  }

  test("a copy that is in use is not replaced", async (t) => {
    const { book } = await openTest(t, "sqlite");
    const copy = join(testFolder(t), "copy.db");
    await book.backup(copy);
    const used = await open(copy);
    cleanup(t, () => used.close());
    await withNote(used);

    await assert.rejects(book.backup(copy, { overwrite: true }), { code: "conflict" });

    assert.deepEqual(await notes(used), [{ body: "milk" }]);
  });

  test("a folder and a device are refused before anything is copied", async (t) => {
    const { book } = await openTest(t, "sqlite");
    const folder = testFolder(t);
    mkdirSync(join(folder, "inner"));

    for (const overwrite of [false, true]) {
      const refused = { code: "invalid", message: /is a folder: name a file inside it/ };
      await assert.rejects(book.backup(join(folder, "inner"), { overwrite }), refused);
      await assert.rejects(book.backup("/dev/null", { overwrite }), { code: "invalid", message: /is not a file/ });
    }

    assert.deepEqual(readdirSync(folder), ["inner"]);
  });

  test("what is no path, and an option that nobody knows, are refused", async (t) => {
    const { book } = await openTest(t, "sqlite");

    for (const path of [undefined, null, 7, "", "a\0b"]) {
      await assert.rejects(book.backup(path as string), { code: "invalid", message: /names no file/ });
    }
    const misspelt = { overwrit: true } as { overwrite?: boolean };
    await assert.rejects(book.backup("never.db", misspelt), { code: "invalid", message: /did you mean "overwrite"\?/ });
  });

  test("what the system refuses has a code and advice", async (t) => {
    const { book } = await openTest(t, "sqlite");
    const folder = testFolder(t);
    symlinkSync("round.db", join(folder, "round.db"));
    writeFileSync(join(folder, "file"), "x");
    const refusals: [name: string, code: string, says: RegExp][] = [
      ["n".repeat(300), "invalid", /ENAMETOOLONG.*choose a shorter name/],
      ["n".repeat(240), "invalid", /ENAMETOOLONG.*choose a shorter name/],
      ["round.db", "invalid", /ELOOP/],
      ["file/copy.db", "unavailable", /the folder .* does not exist/],
    ];

    for (const [name, code, message] of refusals) {
      await assert.rejects(book.backup(join(folder, name)), { code, message });
    }
  });

  test("a folder that may not be searched is forbidden", async (t) => {
    const { book } = await openTest(t, "sqlite");
    const closed = join(testFolder(t), "closed");
    mkdirSync(closed, { mode: 0o000 });
    cleanup(t, () => chmodSync(closed, 0o700));
    // Root may do everything, so for a moment this process is nobody.
    const isRoot = process.geteuid?.() === 0;

    if (isRoot) process.seteuid?.(65_534);
    const writing = book.backup(join(closed, "copy.db"));
    if (isRoot) process.seteuid?.(0);

    await assert.rejects(writing, { code: "forbidden", message: /EACCES.*check the permissions/ });
  });
});

test("a book in memory can be backed up, under any name", async (t) => {
  const book = await open(":memory:");
  cleanup(t, () => book.close());
  await withNote(book);
  const folder = testFolder(t);

  for (const name of ["copy.db", "50% of #1? &c.db"]) {
    const { bytes } = await book.backup(join(folder, name));

    assert.equal(bytes, readFileSync(join(folder, name)).length);
    await using copy = await open(join(folder, name));
    assert.deepEqual(await notes(copy), [{ body: "milk" }]);
  }
  assert.equal((await book.info()).walBytes, 0);
});
