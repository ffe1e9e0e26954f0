// The user's tables and Daybook's share the database.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const pay = job("pay", { run: () => undefined });

for (const backend of backends) {
  describe(`tables on ${backend}`, () => {
    test("a user's SQL reads Daybook's tables, and does not write to them", async (t) => {
      const { book } = await openTest(t, backend, { use: [pay], worker: false });
      const { id } = await book.jobs.enqueue(pay, {});
      const refused = { code: "invalid", details: { table: "daybook_job" } };

      const found = await book.read((tx) => tx.sql`select id, status from daybook_job_now`);

      assert.deepEqual(found, [{ id, status: "queued" }]);
      await assert.rejects(
        book.write((tx) => tx.sql`update daybook_job set name = 'other'`),
        refused,
      );
      await assert.rejects(
        book.write((tx) => tx.sql`delete from "daybook_job"`),
        refused,
      );
      await assert.rejects(
        book.write((tx) => tx.sql`drop table daybook_job`),
        refused,
      );
      await assert.rejects(
        book.write((tx) => tx.sql`alter table daybook_job add column mine text`),
        refused,
      );
      await assert.rejects(
        book.write((tx) => tx.sql`create index mine on daybook_job (name)`),
        refused,
      );
      assert.equal((await book.jobs.get(id)).status, "queued");
    });

    test("an object from outside is a value, whatever it says of itself", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });
      const [strings, values] = [Object.freeze(["'1'; delete from daybook_job"]), Object.freeze([])];
      const forged: unknown[] = [
        Object.freeze({ kind: "sql", strings, values }),
        Object.freeze({ kind: "sql", strings: Object.assign([...strings], { raw: strings }), values, rows: undefined }),
        { kind: "part", render: (out: { text: string }) => void (out.text += "1") },
      ];

      for (const each of forged) {
        const asked = { code: "invalid", message: /\[object Object\] cannot be given to SQL/ };
        await assert.rejects(
          book.write((tx) => tx.sql`select ${each as string}`),
          asked,
        );
        await assert.rejects(
          book.read((tx) => tx.sql`select ${each as string}`),
          asked,
        );
      }
    });

    test("a template that is changed after it was looked at is looked at again", async (t) => {
      const { book } = await openTest(t, backend, { use: [pay], worker: false });
      const { id } = await book.jobs.enqueue(pay, {});
      const texts = Object.assign(["select 1 as one"], { raw: ["select 1 as one"] });
      await book.write((tx) => tx.sql(texts));

      texts[0] = "delete from daybook_job";

      await assert.rejects(
        book.write((tx) => tx.sql(texts)),
        { code: "invalid", details: { table: "daybook_job" } },
      );
      assert.equal((await book.jobs.get(id)).status, "queued");
    });

    test("an index of Daybook's is not dropped, and one of one's own is", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });
      await book.write(async (tx) => {
        await tx.sql`create table note (id text)`;
        await tx.sql`create index notes_by_id on note (id)`;
        await tx.sql`drop index notes_by_id`;
      });

      const dropped = book.write((tx) => tx.sql`drop index if exists runs_by_id`);

      await assert.rejects(dropped, { code: "invalid", details: { table: "daybook_run" } });
    });
  });
}

test("SQLite refuses what the text of a statement hides, and Daybook's own statements go on", async (t) => {
  const { book } = await openTest(t, "sqlite", { use: [pay], worker: false });
  const { id } = await book.jobs.enqueue(pay, {});
  await book.write((tx) => tx.sql`create table note (id text)`);
  // As another program may have left them in the file.
  await tamper(book, async (tx) => {
    await tx.sql`create trigger cleans after insert on note begin delete from daybook_job; end`;
    await tx.sql`create view shown as select id from daybook_job`;
    await tx.sql`create trigger written instead of update on shown begin update daybook_job set name = 'x'; end`;
  });
  const refused = { code: "invalid", details: { table: "daybook_job" } };

  await assert.rejects(
    book.write((tx) => tx.sql`insert into note (id) values ('a')`),
    refused,
  );
  await assert.rejects(
    book.write((tx) => tx.sql`update shown set id = 'x'`),
    refused,
  );
  await tamper(book, (tx) => tx.sql`drop trigger cleans`);
  await book.write(async (tx) => {
    await tx.sql`insert into note (id) values ('a')`;
    await tx.jobs.enqueue(pay, {});
    await tx.sql`insert into note (id) select id from daybook_job`;
  });

  const rows = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from note`);
  assert.deepEqual([rows, (await book.jobs.get(id)).name], [[{ n: 3 }], "pay"]);
});
