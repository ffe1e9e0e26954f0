// Who only looks at a book changes nothing of it, whether the file may be written or not.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { open } from "../../src/index.ts";
import { backends, cleanup, openTest, testFolder, testUrl } from "../support/open-test.ts";
import { changeAndDie, everything, makeBook, note, notes } from "./book-on-disk.ts";

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

describe("looking changes nothing", () => {
  async function look(t: TestContext, path: string): Promise<object[]> {
    await using book = await open(path, { readOnly: true });
    assert.equal((await book.jobs.list()).items.length, 0);
    assert.deepEqual(await book.doctor(), []);
    await book.backup(join(testFolder(t), "copy.db"));
    return await notes(book);
  }

  test("the log of a process that was killed stays as it is, and what is in it is shown", async (t) => {
    const { folder, path } = await makeBook(t);
    changeAndDie(path, "insert into note values ('eggs')");
    const before = everything(folder);

    assert.deepEqual(await look(t, path), [{ body: "eggs" }, { body: "milk" }]);

    assert.deepEqual(everything(folder), before);
  });

  test("so does a book that was moved or copied with such a log", async (t) => {
    const { folder, path } = await makeBook(t);
    changeAndDie(path, "insert into note values ('eggs')");
    const moved = testFolder(t);
    for (const name of readdirSync(folder)) copyFileSync(join(folder, name), join(moved, name));
    const before = everything(moved);

    assert.deepEqual(await look(t, join(moved, "shop.db")), [{ body: "eggs" }, { body: "milk" }]);

    assert.deepEqual(everything(moved), before);
  });

  test("without its index the log is shown and kept all the same", async (t) => {
    const { folder, path } = await makeBook(t);
    changeAndDie(path, "insert into note values ('eggs')");
    rmSync(`${path}-shm`);
    const before = everything(folder);

    assert.deepEqual(await look(t, path), [{ body: "eggs" }, { body: "milk" }]);

    assert.deepEqual(
      everything(folder).filter(([name]) => name !== "shop.db-shm"),
      before,
    );
  });

  test("a closed book stays as it is, and nothing is left beside it", async (t) => {
    const { folder, path } = await makeBook(t);
    const before = everything(folder);

    assert.deepEqual(await look(t, path), [{ body: "milk" }]);

    assert.deepEqual(everything(folder), before);
  });

  test("what another process wrote and left in its log while we looked stays there", async (t) => {
    const { folder, path } = await makeBook(t);
    const book = await open(path, { readOnly: true });
    changeAndDie(path, "insert into note values ('eggs')");
    const before = everything(folder);

    assert.deepEqual(await notes(book), [{ body: "eggs" }, { body: "milk" }]);
    await book.close();

    const isIndex = ([name]: readonly unknown[]): boolean => name === "shop.db-shm";
    assert.deepEqual(
      everything(folder).filter((each) => !isIndex(each)),
      before.filter((each) => !isIndex(each)),
    );
  });

  test("who looks goes on seeing what others write, and what they write after all had closed it", async (t) => {
    const { path } = await makeBook(t);
    const first = await open(path, { attach: false });
    await note(first, "bread");
    const book = await open(path, { readOnly: true });
    cleanup(t, () => book.close());
    await first.close();
    const second = await open(path, { attach: false });
    cleanup(t, () => second.close());

    await note(second, "eggs");

    assert.equal((await notes(book)).length, 3);
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
