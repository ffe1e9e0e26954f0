// What a book is on disk: who may read it, by which name it may be opened, and what looking at it leaves alone.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test, type TestContext } from "node:test";
import { examine } from "../../src/examine.ts";
import { open, type Book } from "../../src/index.ts";
import { migrations } from "../../src/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { keptWrongly, openConnection } from "../../src/storage/sqlite/connection.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, cleanup, openTest, testFolder, testUrl } from "../support/open-test.ts";

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

async function note(book: Book, body: string): Promise<void> {
  await book.write((tx) => tx.sql`insert into note values (${body})`);
}
const notes = (book: Book): Promise<object[]> => book.read((tx) => tx.sql`select body from note order by body`);

/** A closed book with one note. */
async function makeBook(t: TestContext): Promise<{ folder: string; path: string }> {
  const folder = testFolder(t);
  const path = join(folder, "shop.db");
  const book = await open(path, { attach: false });
  await book.write((tx) => tx.sql`create table note (body text)`);
  await note(book, "milk");
  await book.close();
  return { folder, path };
}

/** Changes the file from a process that is killed before it can close it: the change is in the log alone. */
function changeAndDie(path: string, script: string): void {
  const program = `const db = new (require("node:sqlite").DatabaseSync)(process.argv[1]);
    db.exec("pragma journal_mode = wal"); db.exec(process.argv[2]); process.kill(process.pid, "SIGKILL");`;
  assert.equal(spawnSync(process.execPath, ["-e", program, path, script]).signal, "SIGKILL");
  assert.ok(statSync(`${path}-wal`).size > 0, "the log is empty");
}

/** Every file with its bytes, its mode and when it was last changed. */
function everything(folder: string): object {
  return readdirSync(folder).map((name) => {
    const path = join(folder, name);
    const { mtimeNs, mode } = statSync(path, { bigint: true });
    return [name, statSync(path).isFile() ? hash("sha256", readFileSync(path)) : null, mtimeNs, mode];
  });
}

/** For a moment this process is nobody, because root may do everything. */
async function asNobody<T>(run: () => Promise<T>): Promise<T> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    return await run();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

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

describe("a file that may not be written", () => {
  async function lookAt(path: string): Promise<void> {
    await using book = await open(path, { readOnly: true });
    assert.ok((await notes(book)).length > 0);
    assert.equal((await book.jobs.list()).items.length, 0);
    assert.deepEqual(await book.doctor(), []);
    const copy = join(tmpdir(), `daybook-copy-${process.pid}.db`);
    await book.backup(copy, { overwrite: true }).finally(() => rmSync(copy, { force: true }));
    await assert.rejects(note(book, "bread"), { code: "forbidden", message: /opened with readOnly.*open it without/ });
  }

  test("can be looked at when it was closed, and nothing is made beside it", async (t) => {
    const { folder, path } = await makeBook(t);
    chmodSync(path, 0o444);
    chmodSync(folder, 0o555);
    cleanup(t, () => chmodSync(folder, 0o755));
    const before = everything(folder);

    await asNobody(() => lookAt(path));

    assert.deepEqual(everything(folder), before);
  });

  test("can be looked at with the log of a process that was killed", async (t) => {
    const { folder, path } = await makeBook(t);
    changeAndDie(path, "insert into note values ('eggs')");
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444);
    chmodSync(folder, 0o555);
    cleanup(t, () => chmodSync(folder, 0o755));
    const before = everything(folder);

    await asNobody(async () => {
      await lookAt(path);
      await using book = await open(path, { readOnly: true });
      assert.deepEqual(await notes(book), [{ body: "eggs" }, { body: "milk" }]);
    });

    assert.deepEqual(everything(folder), before);
  });

  test("can be looked at while another process writes it", async (t) => {
    const { folder, path } = await makeBook(t);
    const book = await open(path, { attach: false });
    cleanup(t, () => book.close());
    await note(book, "bread");
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644);
    chmodSync(folder, 0o755);

    await asNobody(async () => {
      await using reader = await open(path, { readOnly: true });
      assert.equal((await notes(reader)).length, 2);
      await note(book, "eggs");
      assert.equal((await notes(reader)).length, 3);
    });
  });
});

for (const backend of backends) {
  test(`${backend}: a book that is opened read-only shows all and takes nothing`, async (t) => {
    const { book, url } = await openTest(t, backend);
    await book.write((tx) => tx.sql`create table note (body text)`);
    await note(book, "milk");

    const reader = await open(url, { readOnly: true });
    cleanup(t, () => reader.close());

    assert.deepEqual(await notes(reader), [{ body: "milk" }]);
    assert.equal(reader.sessionId, null);
    assert.equal((await reader.sessions.list()).items.length, 1);
    const refused = { code: "forbidden", message: /opened with readOnly/ };
    await assert.rejects(note(reader, "bread"), refused);
    await assert.rejects(reader.jobs.enqueue("any", {}), refused);
    await assert.rejects(reader.events.publish("any", {}), refused);
    await assert.rejects(reader.startWorker(), { code: "invalid" });
    await assert.rejects(open(url, { readOnly: true, views: true }), { code: "invalid", message: /leave that out/ });
  });

  test(`${backend}: a book that is not there is not made by who opens it read-only`, async (t) => {
    const url = await testUrl(t, backend);

    await assert.rejects(open(url, { readOnly: true }), { code: "not_found" });

    if (backend === "sqlite") assert.equal(existsSync(url), false);
  });
}

test("a read-only look at a closed book leaves nothing beside it, and its journal mode alone", async (t) => {
  const { folder, path } = await makeBook(t);
  const copy = join(folder, "copy.db");
  await using book = await open(path, { attach: false });
  await book.backup(copy);
  const before = hash("sha256", readFileSync(copy));

  await (await open(copy, { readOnly: true })).close();

  assert.equal(hash("sha256", readFileSync(copy)), before);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith("copy")),
    ["copy.db"],
  );
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
