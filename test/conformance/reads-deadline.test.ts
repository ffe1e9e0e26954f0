// Reads have a deadline, a share of the readers for each tenant, and an end when the book is closed.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import type { Reading } from "../../src/storage/reading.ts";
import { rawSql, sql, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

/** It counts for ever, inside one statement. */
const endless = sql`with recursive n (i) as (select 1 union all select i from n) select count(*) as n from n`;

const hour = 3_600_000;
const quick = sql`select 1 as one`;

/** As many reads without an end as one tenant may have at once, and more that wait. Each says in the end how it was ended. */
function flood(store: Store, tenant: string, count: number): Promise<unknown>[] {
  const who: Partial<Reading> = { tenant, verb: `flood of ${tenant}`, msMax: hour };
  return Array.from({ length: count }, () => store.readHeavy(endless, who).catch((error: unknown) => error));
}

for (const backend of backends) {
  describe(backend, () => {
    for (const way of ["readHeavy", "readPage", "snapshot"] as const) {
      test(`a ${way} that does not end is ended at its deadline, with its verb and what to do`, async (t) => {
        const { store } = await openTestStore(t, backend);
        const who = { tenant: "acme", verb: "book.records.count", msMax: 50 };
        const ask = (statement: Sql): Promise<unknown> =>
          way === "snapshot" ? store.snapshot((reader) => reader.all(statement), who) : store[way](statement, who);

        await assert.rejects(ask(endless), {
          code: "timeout",
          message: /^book\.records\.count took longer than 50 ms, so it was ended: narrow it.* pages/,
          details: { verb: "book.records.count", tenant: "acme", deadlineMs: 50 },
        });

        assert.deepEqual(await store.readHeavy(quick, { tenant: "acme" }), [{ one: 1 }]);
      });
    }

    test("a tenant is answered while another's reads do not end, and closing ends those at once", async (t) => {
      const { store } = await openTestStore(t, backend);
      const flooded = flood(store, "noisy", 20);

      for (let turn = 0; turn < 10; turn++) {
        assert.deepEqual(await store.readHeavy(quick, { tenant: "quiet" }), [{ one: 1 }]);
        assert.deepEqual(await store.snapshot((reader) => reader.all(quick), { tenant: "noisy" }), [{ one: 1 }]);
      }
      await store.close();

      const errors = (await Promise.all(flooded)) as { code: string; message: string }[];
      assert.deepEqual(new Set(errors.map(({ code }) => code)), new Set(["closed"]));
      const underWay = errors.filter(({ message }) => /closed while flood of noisy was under way/.test(message));
      assert.equal(underWay.length, limits.readsPerTenant);
    });

    test("snapshots of a tenant that do not end leave one to another", async (t) => {
      const { store } = await openTestStore(t, backend);
      const who = { tenant: "noisy", msMax: hour };
      const held = Array.from({ length: 10 }, () =>
        store.snapshot((reader) => reader.all(endless), who).catch((error: unknown) => error),
      );

      assert.deepEqual(await store.snapshot((reader) => reader.all(quick), { tenant: "quiet" }), [{ one: 1 }]);

      await store.close();
      const codes = ((await Promise.all(held)) as { code: string }[]).map(({ code }) => code);
      assert.deepEqual(codes, Array(10).fill("closed"));
    });

    test("writes and point reads go on while all readers are taken", async (t) => {
      const { store } = await openTestStore(t, backend, backend === "postgres" ? { connections: 2 } : {});
      const flooded = ["a", "b", "c"].flatMap((tenant) => flood(store, tenant, limits.readsPerTenant));

      for (let turn = 0; turn < 10; turn++) {
        await store.write((tx) => tx.get(quick), { by: turn % 2 === 0 ? "user" : "engine" });
        assert.deepEqual(await store.read(quick), [{ one: 1 }]);
      }

      await store.close();
      await Promise.all(flooded);
    });

    test("a tenant with too many reads in line is told busy, and another is not", async (t) => {
      const { book } = await openTest(t, backend);
      const { store } = roomsOf(book);
      const flooded = flood(store, "default", limits.readsPerTenant + limits.readsWaitingMax);

      await assert.rejects(book.jobs.list(), {
        code: "busy",
        message: /^book\.jobs\.list did not get its turn, with 1000 reads of tenant "default" in line: try again/,
      });
      assert.deepEqual((await book.tenant("other").jobs.list()).items, []);

      await book.close();
      await Promise.all(flooded);
    });

    test("a row that is larger than a page is a page, and the page says whether there are more", async (t) => {
      const { store } = await openTestStore(t, backend);
      const bytes = limits.pageBytesMax + 1;
      const text = rawSql(backend === "sqlite" ? `printf('%.*c', ${bytes}, 'x')` : `repeat('x', ${bytes})`);
      const large = (rows: number): Sql => sql`with recursive n (i) as (select 1 union all select i + 1 from n
        where i < ${rows}) select i, case when i = 1 then ${text} end as text from n`;

      const [alone, followed] = [
        await store.readPage<{ i: number }>(large(1)),
        await store.readPage<{ i: number }>(large(3)),
      ];

      assert.deepEqual([alone.rows.map(({ i }) => i), alone.more], [[1], false]);
      assert.deepEqual([followed.rows.map(({ i }) => i), followed.more], [[1], true]);
    });

    test("an answer that is too large is refused, and the next is given", async (t) => {
      const { store } = await openTestStore(t, backend);
      const text = rawSql(backend === "sqlite" ? "printf('%.*c', 1000000, 'x')" : "repeat('x', 1000000)");
      const large = (rows: number): Sql => sql`with recursive n (i) as (select 1 union all select i + 1 from n
        where i < ${rows}) select ${text} as text from n`;

      await assert.rejects(store.readHeavy(large(100)), { code: "invalid", message: /more than 64 MB.*pages/ });

      assert.equal((await store.readHeavy(large(10))).length, 10);
      const page = await store.readPage<{ text: string }>(large(100));
      assert.deepEqual([page.rows.length, page.more], [4, true]);
      assert.deepEqual(Object.keys(page.rows[0] ?? {}), ["text"]);
      assert.deepEqual(await store.readPage(quick), { rows: [{ one: 1 }], more: false });
    });
  });
}

test("on PostgreSQL the deadline of a read is not that of a write", async (t) => {
  const { store } = await openTestStore(t, "postgres", { connections: 2 });
  const timeout = sql`select current_setting('statement_timeout') as ms`;
  await assert.rejects(store.readHeavy(endless, { msMax: 50 }), { code: "timeout" });

  assert.deepEqual(await store.readHeavy(timeout, { msMax: 4000 }), [{ ms: "4s" }]);
  assert.deepEqual(await store.readHeavy(timeout, { msMax: 7000 }), [{ ms: "7s" }]);
  for (const by of ["user", "engine", "shared"] as const) {
    assert.deepEqual(await store.write((tx) => tx.get(timeout), { by }), { ms: "0" });
  }
  assert.deepEqual(await store.readLong(timeout), [{ ms: "0" }]);
});

test("on PostgreSQL the server has ended what close() has ended", async (t) => {
  const { store, url } = await openTestStore(t, "postgres");
  const { store: watcher } = await openTestStore(t, "postgres", { url });
  const active = sql`select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and state = 'active' and query like '%select count(*) as n from n%'`;
  const flooded = flood(store, "noisy", limits.readsPerTenant);
  while ((await watcher.read(active)).length < limits.readsPerTenant) await store.read(quick);

  await store.close();
  await Promise.all(flooded);

  // The server has been told; the statement ends where it next looks.
  while ((await watcher.read(active)).length > 0) await watcher.read(quick);
});
