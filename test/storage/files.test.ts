// What a book is on disk: who may read it, by which name it may be opened, and what looking at it leaves alone.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test, type TestContext } from "node:test";
import { examine } from "../../src/book/doctor.ts";
import { open, type Book } from "../../src/index.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { keptWrongly, openConnection } from "../../src/storage/sqlite/connection.ts";
import { applicationId } from "../../src/storage/sqlite/place.ts";
import { sql } from "../../src/storage/sql.ts";
import { cleanup, testFolder } from "../support/open-test.ts";
import { changeAndDie, everything, makeBook, note, notes } from "./book-on-disk.ts";

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** Shows a file or a folder at a second path; false where nothing may be mounted. */
function mount(t: TestContext, path: string, at: string): boolean {
  if (spawnSync("mount", ["--bind", path, at]).status !== 0) return false;
  cleanup(t, () => spawnSync("umount", ["-l", at]));
  return true;
}

describe("what is made is its owner's alone", () => {
  test("a new book, its log, the index of the log, and a backup", async (t) => {
    const folder = testFolder(t);
    const path = join(folder, "shop.db");
    const book = await open(path);
    cleanup(t, () => book.close());

    await book.backup(join(folder, "copy.db"));

    assert.deepEqual(
      readdirSync(folder).map((name) => [name, modeOf(join(folder, name))]),
      ["copy.db", "shop.db", "shop.db-shm", "shop.db-wal"].map((name) => [name, "600"]),
    );
  });

  test("what is there keeps its mode, and the log of a book has the book's", async (t) => {
    const folder = testFolder(t);
    const path = join(folder, "shop.db");
    writeFileSync(path, "");
    writeFileSync(join(folder, "copy.db"), "old");
    chmodSync(path, 0o640);
    chmodSync(join(folder, "copy.db"), 0o640);
    const book = await open(path);
    cleanup(t, () => book.close());

    await book.backup(join(folder, "copy.db"), { overwrite: true });

    const modes = readdirSync(folder).map((name) => modeOf(join(folder, name)));
    assert.deepEqual(modes, ["640", "640", "640", "640"]);
  });
});

describe("one file, one name", () => {
  const isLinked = { code: "conflict", message: /has 2 names \(hard links\).*writes would be lost.*or copy the file/ };

  test("a hard link is refused under each of its names, whether the book is open or not, and nothing is changed", async (t) => {
    const { folder, path } = await makeBook(t);
    const other = join(folder, "other.db");
    const book = await open(path, { attach: false });
    linkSync(path, other);
    const before = everything(folder);

    for (const name of [path, other]) await assert.rejects(open(name, { attach: false }), isLinked);
    assert.deepEqual(everything(folder), before);
    await note(book, "bread");
    await book.close();
    for (const readOnly of [false, true]) await assert.rejects(open(other, { readOnly }), isLinked);
    rmSync(other);

    const again = await open(path, { attach: false });
    cleanup(t, () => again.close());
    assert.deepEqual(await notes(again), [{ body: "bread" }, { body: "milk" }]);
  });

  test("a symbolic link is the book itself", async (t) => {
    const { folder, path } = await makeBook(t);
    mkdirSync(join(folder, "inner"));
    symlinkSync(path, join(folder, "inner", "link.db"));
    symlinkSync(join(folder, "new.db"), join(folder, "inner", "to-new.db"));

    const book = await open(path, { attach: false });
    const linked = await open(join(folder, "inner", "link.db"), { attach: false });
    const made = await open(join(folder, "inner", "to-new.db"), { attach: false });
    for (const each of [book, linked, made]) cleanup(t, () => each.close());
    await note(linked, "bread");

    assert.equal(linked.location, book.location);
    assert.equal(made.location, join(folder, "new.db"));
    assert.deepEqual(await notes(book), [{ body: "bread" }, { body: "milk" }]);
    assert.deepEqual(readdirSync(join(folder, "inner")), ["link.db", "to-new.db"]);
  });

  // A file that is renamed while it is open has two paths, as one that is mounted by itself at a second place.
  test("a second path to an open book is refused, also for looking, and may be used once the book is closed", async (t) => {
    const { folder, path } = await makeBook(t);
    const second = join(folder, "second.db");
    const book = await open(path, { attach: false });
    await note(book, "bread");
    renameSync(path, second);
    const before = everything(folder);

    const isElsewhere = { code: "conflict", message: /second\.db was used under another name.*mount its folder/ };
    await assert.rejects(open(second, { attach: false }), isElsewhere);
    await assert.rejects(open(second, { readOnly: true }), isElsewhere);

    assert.deepEqual(everything(folder), before);
    renameSync(second, path);
    await book.close();
    renameSync(path, second);
    const moved = await open(second, { attach: false });
    cleanup(t, () => moved.close());
    assert.deepEqual(await notes(moved), [{ body: "bread" }, { body: "milk" }]);
  });

  test("a file that is mounted at a second path is refused there while it is open, and a folder that is mounted twice is one place", async (t) => {
    const { folder, path } = await makeBook(t);
    const [inner, again] = [join(folder, "inner"), join(folder, "again")];
    for (const name of [inner, again]) mkdirSync(name);
    writeFileSync(join(inner, "mounted.db"), "");
    const book = await open(path, { attach: false });
    cleanup(t, () => book.close());

    // Where nothing may be mounted, links are as near as one can get.
    const isMounted = mount(t, path, join(inner, "mounted.db"));
    if (!isMounted) linkSync(path, join(inner, "linked.db"));
    const second = join(inner, isMounted ? "mounted.db" : "linked.db");
    await assert.rejects(open(second, { attach: false }), { code: "conflict", message: /writes would be lost/ });
    assert.equal(readdirSync(inner).filter((name) => /-(?:wal|shm)$/.test(name)).length, 0);
    if (!isMounted) rmSync(second);
    else assert.equal(spawnSync("umount", ["-l", second]).status, 0);

    if (!mount(t, folder, again)) symlinkSync(folder, join(folder, "linked"));
    const other = await open(join(isMounted ? again : join(folder, "linked"), "shop.db"), { attach: false });
    cleanup(t, () => other.close());
    await note(other, "bread");
    assert.deepEqual(await notes(book), [{ body: "bread" }, { body: "milk" }]);
  });

  test("processes that come to a moved book at the same moment all get in", async (t) => {
    const { folder, path } = await makeBook(t);
    const second = join(folder, "second.db");
    renameSync(path, second);

    const books = await Promise.all(Array.from({ length: 8 }, () => open(second, { attach: false })));

    await Promise.all(books.map((book, index) => note(book, `by ${index}`)));
    assert.equal((await notes(books[0] as Book)).length, 9);
    await Promise.all(books.map((book) => book.close()));
    assert.deepEqual(readdirSync(folder), ["second.db"]);
  });
});

describe("a book that is refused stays as it is", () => {
  const refusals: [what: string, script: string, says: RegExp][] = [
    ["a newer one", "pragma user_version = 9999", /schema version 9999 .*install a newer/],
    ["one of another build", "update daybook_migration set hash = 'other' where number = 3", /made by another build/],
    ["one of another program", "pragma application_id = 42", /another program's database/],
  ];
  for (const [what, script, message] of refusals) {
    test(`${what} that was killed keeps its log, byte for byte`, async (t) => {
      const { folder, path } = await makeBook(t);
      changeAndDie(path, script);
      const before = everything(folder);

      for (const options of [{}, { migrate: false }, { readOnly: true }]) {
        await assert.rejects(open(path, options), { code: "incompatible", message });
      }

      assert.deepEqual(everything(folder), before);
    });

    test(`${what} that was closed has nothing made beside it`, async (t) => {
      const { folder, path } = await makeBook(t);
      const db = new DatabaseSync(path);
      db.exec(script);
      db.close();
      const before = everything(folder);

      for (const options of [{}, { migrate: false }, { readOnly: true }]) {
        await assert.rejects(open(path, options), { code: "incompatible", message });
      }

      assert.deepEqual(everything(folder), before);
    });
  }
});

describe("a book whose first commit was not finished", () => {
  // The first pages are in the file, and its journal says that it was empty before.
  const halfACommit = `pragma locking_mode = exclusive; pragma cache_size = 1; begin immediate; pragma application_id = ${applicationId};
    create table daybook_place (id integer primary key check (id = 1), place text not null) strict;
    create table other (body text); insert into other select hex(zeroblob(2000)) from json_each(json_array(1, 2, 3, 4, 5, 6, 7, 8))`;

  test("is made as if nobody had tried", async (t) => {
    const path = join(testFolder(t), "shop.db");
    changeAndDie(path, halfACommit, "delete");
    assert.ok(statSync(path).size > 0 && existsSync(`${path}-journal`), "there is no half of a commit");

    await assert.rejects(open(path, { readOnly: true }), { code: "not_found" });
    const book = await open(path);
    cleanup(t, () => book.close());

    assert.deepEqual(await book.doctor(), []);
    await assert.rejects(
      book.read((tx) => tx.sql`select * from other`),
      /no such table/,
    );
  });

  test("another program's database with the journal of a later commit is refused and stays as it is", async (t) => {
    const folder = testFolder(t);
    const path = join(folder, "theirs.db");
    const db = new DatabaseSync(path);
    db.exec("create table theirs (body text)");
    db.close();
    changeAndDie(
      path,
      "pragma cache_size = 1; begin; create table other as select hex(zeroblob(90000)) as body",
      "delete",
    );
    const before = everything(folder);

    await assert.rejects(open(path), { code: "incompatible" });

    assert.deepEqual(everything(folder), before);
  });
});

describe("what is acknowledged is kept", () => {
  test("a connection that would lose it is found out", (t) => {
    const path = join(testFolder(t), "plain.db");
    const connection = openConnection(path);
    cleanup(t, () => connection.close());
    const wrongMode = ["its journal mode is delete instead of wal"];

    assert.deepEqual(keptWrongly(connection), wrongMode);
    connection.script("pragma journal_mode = wal; pragma synchronous = normal");
    assert.deepEqual(keptWrongly(connection), ["synchronous is 1 instead of 2"]);
    assert.deepEqual(keptWrongly(connection, "normal"), []);
    connection.script("pragma synchronous = full");
    assert.deepEqual(keptWrongly(connection), []);
    const flushes = ["fullfsync", "checkpoint_fullfsync"].map((name) =>
      connection.get({ text: `pragma ${name}`, params: [] }),
    );
    assert.deepEqual(flushes, [{ fullfsync: 1 }, { checkpoint_fullfsync: 1 }]);
  });

  for (const durability of ["full", "normal"] as const) {
    test(`the writer of a book of ${durability} durability is as it was asked for, and doctor says when it is not`, async (t) => {
      const store = await openStore(join(testFolder(t), "shop.db"), migrations, { durability });
      cleanup(t, () => store.close());

      const [row] = await store.write((tx) =>
        tx.all(sql`select journal_mode, synchronous from pragma_journal_mode, pragma_synchronous`),
      );
      assert.deepEqual({ ...(row as object) }, { journal_mode: "wal", synchronous: durability === "full" ? 2 : 1 });
      assert.deepEqual(await examine(store), []);
      await store.write((tx) => tx.all(sql`select 1`));
      const [finding] = await examine({ ...store, amiss: () => ["synchronous is 0 instead of 2"] });
      assert.deepEqual([finding?.promise, finding?.found], ["D1", ["synchronous is 0 instead of 2"]]);
    });
  }
});
