// The views under the names of other designs: there on request, and never in the way of the user's own names.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, type Book } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import { createViews, dropViews } from "../../src/storage/view.ts";
import { views } from "../../src/open/migrations.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const pay = job("pay", { run: () => undefined });
const names = views.map(({ name }) => name);

async function viewsOf(book: Book, backend: Backend): Promise<string[]> {
  const rows = await book.read((tx) =>
    backend === "sqlite"
      ? tx.sql<{ name: string }>`select name from sqlite_schema where type = 'view'`
      : tx.sql<{ name: string }>`select viewname as name from pg_views where schemaname = 'daybook'`,
  );
  // One is the engine's own, and always there.
  return rows.map(({ name }) => name).filter((name) => name !== "daybook_job_now");
}

for (const backend of backends) {
  describe(`views on ${backend}`, () => {
    test("a book that nobody asked has none, and their names are the user's", async (t) => {
      const { book } = await openTest(t, backend);

      assert.deepEqual(await viewsOf(book, backend), []);
      await book.write(async (tx) => {
        await tx.sql`create table if not exists reservation (seat integer)`;
        await tx.sql`create table events (title text)`;
        await tx.sql`create table jobs (title text)`;
        await tx.sql`insert into reservation (seat) values (7)`;
        await tx.sql`insert into jobs (title) values ('cook')`;
      });
      assert.deepEqual(await book.read((tx) => tx.sql`select seat, title from reservation, jobs`), [
        { seat: 7, title: "cook" },
      ]);
    });

    test("open makes all of them, and a second time nothing", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [pay], views: true });
      const { id } = await book.jobs.enqueue(pay, {});

      const again = await createViews(roomsOf(book).store, views);
      const { book: other } = await openTest(t, backend, { url, views: true });

      assert.deepEqual(again, []);
      assert.deepEqual((await viewsOf(other, backend)).toSorted(), names.toSorted());
      assert.deepEqual(await other.read((tx) => tx.sql`select job_id, status from jobs`), [
        { job_id: id, status: "QUEUED" },
      ]);
    });

    test("every view can be read, and none can be written", async (t) => {
      const { book } = await openTest(t, backend, { views: true });

      for (const name of names) {
        const { store } = roomsOf(book);
        await store.read(rawSql(`select * from ${name}`));
        await assert.rejects(async () => store.write((tx) => tx.run(rawSql(`delete from ${name}`))), name);
      }
    });

    test("a view of an older Daybook is brought up to date", async (t) => {
      const { book } = await openTest(t, backend);
      const { store } = roomsOf(book);
      await createViews(store, [{ name: "jobs", as: sql`select 1 as old` }]);

      const made = await createViews(store, views);

      assert.deepEqual(made, names);
      assert.deepEqual(await book.read((tx) => tx.sql`select job_id from jobs`), []);
    });

    test("a name that the user's table or view has is refused by its name, and nothing is made", async (t) => {
      const { book, url } = await openTest(t, backend);
      await book.write(async (tx) => {
        await tx.sql`create table outbox (letter text)`;
        await tx.sql`create view commits as select letter from outbox`;
      });

      const refused = openTest(t, backend, { url, views: true });

      await assert.rejects(refused, (error: { code: string; message: string; details: { names: string[] } }) => {
        assert.equal(error.code, "conflict");
        assert.match(error.message, /"commits"/);
        assert.match(error.message, /"outbox".*rename yours/);
        assert.deepEqual(error.details.names.toSorted(), ["commits", "outbox"]);
        return true;
      });
      assert.deepEqual(await viewsOf(book, backend), ["commits"]);
    });

    test("drop takes away Daybook's views, and leaves a user's of the same name", async (t) => {
      const { book } = await openTest(t, backend, { views: true });
      const { store } = roomsOf(book);
      await book.write(async (tx) => {
        await tx.sql`drop view events`;
        await tx.sql`create view events as select 1 as mine`;
      });

      const gone = await dropViews(store, views);

      assert.deepEqual(
        gone,
        names.filter((name) => name !== "events"),
      );
      assert.deepEqual(await viewsOf(book, backend), ["events"]);
      assert.deepEqual(await dropViews(store, views), []);
    });

    test("two that make them at the same time both find them made", async (t) => {
      const { book, url } = await openTest(t, backend);

      const opened = await Promise.all([1, 2, 3].map(() => openTest(t, backend, { url, views: true })));

      assert.equal(opened.length, 3);
      assert.deepEqual((await viewsOf(book, backend)).toSorted(), names.toSorted());
    });

    test("a wish for views that is neither yes nor no is refused", async (t) => {
      await assert.rejects(openTest(t, backend, { views: "yes" as unknown as boolean }), {
        code: "invalid",
        message: 'views "yes" is not true or false',
      });
    });
  });
}
