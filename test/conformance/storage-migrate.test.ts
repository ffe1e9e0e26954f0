import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { migrations as bookMigrations } from "../../src/open/migrations.ts";
import type { Migration } from "../../src/storage/migrate.ts";
import { openStore, type StoreOptions } from "../../src/storage/open-store.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { integer, strict } from "../../src/storage/word.ts";
import { pairMigrations } from "../storage/pair.ts";
import { startChild } from "../support/child-process.ts";
import { backends, cleanup, testUrl, type Backend } from "../support/open-test.ts";

const first: Migration = {
  number: 1,
  name: "note",
  up: [sql`create table note (id ${integer} primary key, body text)${strict}`],
};
const second: Migration = {
  number: 2,
  name: "tag",
  up: [
    sql`create table tag (id ${integer} primary key, note_id ${integer} references note (id))${strict}`,
    sql`create index tags_of_note on tag (note_id)`,
  ],
};

async function openWith(
  t: TestContext,
  url: string,
  migrations: readonly Migration[],
  options: Partial<StoreOptions> = {},
): Promise<Store> {
  const store = await openStore(url, migrations, options);
  cleanup(t, () => store.close());
  return store;
}

/** Opens, does nothing and closes. */
async function migrate(
  url: string,
  migrations: readonly Migration[],
  options: Partial<StoreOptions> = {},
): Promise<void> {
  await (await openStore(url, migrations, options)).close();
}

const applied = (store: Store): Promise<object[]> =>
  store.read(sql`select number, name, applied_at from daybook_migration order by number`);

async function tables(store: Store, backend: Backend): Promise<string[]> {
  const rows = await store.read<{ name: string }>(
    backend === "sqlite"
      ? sql`select name from sqlite_schema where type = 'table' and name <> 'daybook_place' order by name`
      : sql`select table_name as name from information_schema.tables where table_schema = 'daybook' order by 1`,
  );
  return rows.map((row) => row.name);
}

for (const backend of backends) {
  describe(backend, () => {
    test("a new book gets every migration, in order, each recorded with its time", async (t) => {
      const url = await testUrl(t, backend);
      const clock = manualClock();

      const store = await openWith(t, url, [first, second], { clock });

      assert.deepEqual(await applied(store), [
        { number: 1, name: "note", applied_at: clock.now() },
        { number: 2, name: "tag", applied_at: clock.now() },
      ]);
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note", "tag"]);
    });

    test("migrating twice changes nothing", async (t) => {
      const url = await testUrl(t, backend);
      const clock = manualClock();
      const store = await openWith(t, url, [first, second], { clock });
      const before = await applied(store);

      await clock.advance(1000);
      await migrate(url, [first, second], { clock });

      assert.deepEqual(await applied(store), before);
    });

    test("an older book gets what it lacks and keeps what it has", async (t) => {
      const url = await testUrl(t, backend);
      const old = await openWith(t, url, [first]);
      await old.write((tx) => tx.run(sql`insert into note values (1, 'kept')`));
      await old.close();

      const store = await openWith(t, url, [first, second]);

      assert.deepEqual(await store.read(sql`select id, body from note`), [{ id: 1, body: "kept" }]);
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note", "tag"]);
    });

    test("a book whose migration was another one is refused", async (t) => {
      const url = await testUrl(t, backend);
      const store = await openWith(t, url, [first, second]);
      const changed = { ...first, up: [sql`create table note (id ${integer} primary key)${strict}`] };
      const missing = { ...second, number: 3 };

      for (const other of [
        [changed, second],
        [first, missing],
      ]) {
        await assert.rejects(migrate(url, other), {
          code: "incompatible",
          message: /migration \d \(\w+\) of this book is not the one this version of daybook knows/,
        });
      }
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note", "tag"]);
    });

    test("a book that is newer than the program is refused", async (t) => {
      const url = await testUrl(t, backend);
      await migrate(url, [first, second]);

      await assert.rejects(migrate(url, [first]), {
        code: "incompatible",
        message: /has schema version 2 and this daybook knows up to 1: install a newer daybook/,
      });
    });

    test("a migration that fails leaves nothing of itself, and the ones before it stay", async (t) => {
      const url = await testUrl(t, backend);
      const broken = { ...second, up: [...second.up, sql`insert into nowhere values (1)`] };

      await assert.rejects(migrate(url, [first, broken]), { code: "invalid", message: /nowhere/ });

      const store = await openWith(t, url, [first]);
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note"]);
      await migrate(url, [first, second]);
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note", "tag"]);
    });

    test("the first migration may fail and be mended", async (t) => {
      const url = await testUrl(t, backend);
      const broken = { ...first, up: [...first.up, sql`insert into nowhere values (1)`] };

      await assert.rejects(migrate(url, [broken]), { code: "invalid" });

      const store = await openWith(t, url, [first]);
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note"]);
    });

    test("a migration that breaks a foreign key is refused", async (t) => {
      const url = await testUrl(t, backend);
      const breaking: Migration = {
        number: 3,
        name: "orphan",
        // A migration may switch the keys off, so SQLite checks them all before it commits.
        up: [
          ...(backend === "sqlite" ? [rawSql("pragma defer_foreign_keys = on")] : []),
          sql`insert into tag (id, note_id) values (1, 99)`,
        ],
      };

      await assert.rejects(migrate(url, [first, second, breaking]), { code: /invalid|internal/ });

      const store = await openWith(t, url, [first, second]);
      assert.deepEqual(await store.read(sql`select count(*) as tags from tag`), [{ tags: 0 }]);
    });

    test("without permission to migrate, a missing and an older book are refused and not made", async (t) => {
      const url = await testUrl(t, backend);

      await assert.rejects(migrate(url, [first], { migrate: false }), {
        code: "not_found",
        message: /there is no book .*"daybook migrate" makes one/,
      });
      await assert.rejects(migrate(url, [first], { migrate: false }), { code: "not_found" });
      await migrate(url, [first]);
      await assert.rejects(migrate(url, [first, second], { migrate: false }), {
        code: "incompatible",
        message: /has schema version 1 and this daybook needs 2: run "daybook migrate" first/,
      });

      const store = await openWith(t, url, [first], { migrate: false });
      assert.deepEqual(await tables(store, backend), ["daybook_migration", "note"]);
    });

    test("five that open a new book at once migrate it once", async (t) => {
      const url = await testUrl(t, backend);

      const stores = await Promise.all(Array.from({ length: 5 }, () => openWith(t, url, [first, second])));

      for (const store of stores) assert.equal((await applied(store)).length, 2);
    });

    test("three processes that open a new book at once migrate it once", async (t) => {
      const url = await testUrl(t, backend);
      const children = Array.from({ length: 3 }, () => startChild(t, "open", [url]));
      await Promise.all(children.map((child) => child.said("ready")));

      for (const child of children) child.tell("now");
      const ends = await Promise.all(children.map((child) => child.ended));

      assert.deepEqual(
        ends.map(({ code, stderr }) => ({ code, stderr })),
        Array(3).fill({ code: 0, stderr: "" }),
      );
      const store = await openWith(t, url, pairMigrations);
      assert.equal((await applied(store)).length, 1);
    });

    test("the migrations of the book itself have numbers that rise by one", () => {
      assert.deepEqual(
        bookMigrations.map((migration) => migration.number),
        bookMigrations.map((_, index) => index + 1),
      );
    });
  });
}

describe("sqlite", () => {
  test("a book carries its application id and its version in the file", async (t) => {
    const store = await openWith(t, await testUrl(t, "sqlite"), [first, second]);

    const [row] = await store.read<{ application_id: number; user_version: number }>(
      sql`select application_id, user_version from pragma_application_id(), pragma_user_version()`,
    );

    assert.deepEqual(row, { application_id: 0x4479626b, user_version: 2 });
  });
});
