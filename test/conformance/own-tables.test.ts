// The user's tables and Daybook's share the database.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

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
  });
}
