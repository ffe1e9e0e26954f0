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

    test("a column of one's own may have any name, and its table is altered as any other", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });

      await book.write(async (tx) => {
        await tx.sql`create table note (id text, daybook_job_id text)`;
        await tx.sql`create index notes_by_job on note (daybook_job_id)`;
        await tx.sql`alter table note rename column daybook_job_id to daybook_id`;
        await tx.sql`alter table note add column daybook_run_id text`;
        await tx.sql`insert into note (id, daybook_id, daybook_run_id) values ('a', 'b', 'c')`;
        await tx.sql`update note set daybook_id = 'd'`;
        await tx.sql`alter table note drop column daybook_run_id`;
        await tx.sql`alter table note rename to remark`;
      });

      const found = await book.read((tx) => tx.sql`select * from remark`);
      assert.deepEqual(found, [{ id: "a", daybook_id: "d" }]);
    });

    test("Daybook's tables are known however they are written", async (t) => {
      const { book } = await openTest(t, backend, { use: [pay], worker: false });
      const { id } = await book.jobs.enqueue(pay, {});
      const schema = backend === "sqlite" ? "main" : "daybook";
      const names = [`${schema}.daybook_job`, "DAYBOOK_JOB", '"daybook_job"', `${schema} . "daybook_job"`];
      const ofSqlite = ['"DAYBOOK_JOB"', "[daybook_job]", "`Daybook_Job`", 'MAIN."daybook_job"'];

      for (const name of backend === "sqlite" ? [...names, ...ofSqlite] : names) {
        for (const text of [
          `update ${name} set name = 'other'`,
          `delete from ${name}`,
          `insert into ${name} (id) values ('a')`,
          `alter table ${name} rename to mine`,
          `alter table ${name} drop column name`,
          `drop table ${name}`,
          `create index mine on ${name} (name)`,
        ]) {
          const texts = Object.assign([text], { raw: [text] });
          await assert.rejects(
            book.write((tx) => tx.sql(texts)),
            { code: "invalid", message: /is a table of Daybook/ },
            text,
          );
        }
      }
      assert.equal((await book.jobs.get(id)).name, "pay");
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

test("SQLite refuses temporary views and triggers that would write to Daybook's tables", async (t) => {
  const { book } = await openTest(t, "sqlite", { use: [pay], worker: false });
  const { id } = await book.jobs.enqueue(pay, {});
  await book.write(async (tx) => {
    await tx.sql`create table note (id text)`;
    await tx.sql`create temp view shown as select id, name from daybook_job`;
  });
  const refused = { code: "invalid", message: /is a table of Daybook/ };

  for (const text of [
    "create temp trigger mine after insert on daybook_job begin select 1; end",
    "create temp trigger mine after insert on main.daybook_job begin insert into note values (new.id); end",
    "create temp trigger mine instead of update on shown begin update daybook_job set name = new.name; end",
    "create temp trigger mine after insert on note begin delete from daybook_job; end",
    "create temp table daybook_job (id text)",
    "create temp view daybook_job as select 1 as id",
    "create view daybook_own as select 1 as id",
  ]) {
    const texts = Object.assign([text], { raw: [text] });
    await assert.rejects(
      book.write((tx) => tx.sql(texts)),
      refused,
      text,
    );
  }
  // Another program of this connection may have made one.
  await tamper(
    book,
    (tx) => tx.sql`create temp trigger written instead of update on shown begin update daybook_job set name = 'x'; end`,
  );
  await assert.rejects(
    book.write((tx) => tx.sql`update shown set name = 'x'`),
    refused,
  );
  assert.equal((await book.jobs.get(id)).name, "pay");
});

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
