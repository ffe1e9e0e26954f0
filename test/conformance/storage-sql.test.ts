import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { anyOf, bytes, eachRow, integer, strict } from "../../src/storage/word.ts";
import { backends, openTestStore } from "../support/open-test.ts";

const noteTable = sql`create table note (
  id text primary key, size ${integer}, body ${bytes}
)${strict}`;

const columns = { id: "text", size: "integer" } as const;

function notes(count: number): { id: string; size: number }[] {
  return Array.from({ length: count }, (_, index) => ({ id: `n${String(index).padStart(5, "0")}`, size: index }));
}

/** The same question through every way that a store can be read. */
async function everyWay<R>(store: Store, statement: Sql): Promise<Record<string, R[]>> {
  return {
    read: await store.read<R>(statement),
    readHeavy: await store.readHeavy<R>(statement),
    readLong: await store.readLong<R>(statement),
    snapshot: await store.snapshot((reader) => reader.all<R>(statement)),
    engine: await store.write(async (tx) => (await tx.all<object>(statement)).map((row) => ({ ...row }) as R)),
    user: await store.write(async (tx) => (await tx.all<object>(statement)).map((row) => ({ ...row }) as R), {
      by: "user",
    }),
  };
}

for (const backend of backends) {
  describe(backend, () => {
    test("1,000 rows are inserted by one statement", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));

      const count = await store.write((tx) =>
        tx.run(sql`insert into note (id, size) ${eachRow(columns, notes(1000))}`),
      );

      assert.equal(count, 1000);
      const rows = await store.read(sql`select id, size from note order by id`);
      assert.deepEqual(rows, notes(1000));
    });

    for (const count of [9, 10, 11, 27]) {
      test(`${count} rows of which two are there already add the others and say how many, in order`, async (t) => {
        const { store } = await openTestStore(t, backend);
        await store.write((tx) => tx.run(noteTable));
        const rows = notes(count);
        const there = [rows[3], rows[8]] as typeof rows;
        const insert = (some: typeof rows): Sql =>
          sql`insert into note (id, size) ${eachRow(columns, some)} on conflict do nothing`;
        await store.write((tx) => tx.run(insert(there)));

        const added = await store.write((tx) => tx.run(insert(rows)));

        assert.equal(added, count - 2);
        assert.deepEqual(await store.read(sql`select id, size from note order by id`), rows);
      });
    }

    test("no rows are inserted by a statement that is given none", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));

      const count = await store.write((tx) => tx.run(sql`insert into note (id, size) ${eachRow(columns, [])}`));

      assert.equal(count, 0);
      assert.deepEqual(await store.read(sql`select * from note`), []);
    });

    test("an insert of many rows returns something for each of them", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));
      const rows = notes(3);
      const insert = (some: typeof rows): Sql =>
        sql`insert into note (id, size) ${eachRow(columns, some)} returning id, size`;

      const all = await store.write((tx) => tx.all<object>(insert(rows.slice(0, 2))));
      const first = await store.write((tx) => tx.get<object>(insert(rows.slice(2))));

      assert.deepEqual(
        all.map((row) => ({ ...row })),
        rows.slice(0, 2),
      );
      assert.deepEqual({ ...first }, rows[2]);
    });

    test("one bad row of many undoes the whole unit", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));
      const rows = [...notes(5), { id: "n00001", size: 1 }];

      const writing = store.write((tx) => tx.run(sql`insert into note (id, size) ${eachRow(columns, rows)}`));

      await assert.rejects(writing, { code: "conflict" });
      assert.deepEqual(await store.read(sql`select * from note`), []);
    });

    test("rows with nothing, quotes, braces, backslashes and emoji come back as they were", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));
      const ids = ["", "'", '"', "{a,b}", "\\", "null", "NULL", "ä😀", "a\nb", ",", '"a\\"'];
      // Long ones, which are quoted in another way on PostgreSQL unless they have control characters.
      ids.push(
        ...ids.map((id) => id.repeat(3000)).filter((id) => id !== ""),
        `\u007f\u2028${"x".repeat(3000)}\t\r\u0001`,
      );
      const rows = ids.map((id, index) => ({ id, size: index === 0 ? null : index }));

      await store.write((tx) => tx.run(sql`insert into note (id, size) ${eachRow(columns, rows)}`));

      assert.deepEqual(await store.read(sql`select id, size from note order by size nulls first`), rows);
      const found = await store.read<{ id: string }>(
        sql`select id from note where id ${anyOf("text", ids)} order by size nulls first`,
      );
      assert.deepEqual(
        found.map((row) => row.id),
        ids,
      );
    });

    test("a list finds its members, and an empty list finds nothing", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));
      await store.write((tx) => tx.run(sql`insert into note (id, size) ${eachRow(columns, notes(1000))}`));
      const sizes = notes(1000).map((note) => note.size * 2);
      const count = (list: number[]): Sql =>
        sql`select count(*) as found from note where size ${anyOf("integer", list)}`;

      assert.deepEqual(await store.read(count(sizes)), [{ found: 500 }]);
      assert.deepEqual(await store.read(count([])), [{ found: 0 }]);
      assert.deepEqual(await store.read(sql`select id from note where id ${anyOf("text", ["n00007", "x"])}`), [
        { id: "n00007" },
      ]);
    });

    test("a boolean is understood in every kind of read and write", async (t) => {
      const { store } = await openTestStore(t, backend);

      const yes = await everyWay(store, sql`select 1 as found where ${true}`);
      const no = await everyWay(store, sql`select 1 as found where ${false}`);

      for (const rows of Object.values(yes)) assert.deepEqual(rows, [{ found: 1 }]);
      for (const rows of Object.values(no)) assert.deepEqual(rows, []);
    });

    test("bytes, nothing and the greatest whole number come back as they were, whichever way they are read", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));
      const body = Uint8Array.from({ length: 256 }, (_, index) => index);
      const size = Number.MAX_SAFE_INTEGER;
      await store.write(async (tx) => {
        await tx.run(sql`insert into note (id, size, body) values (${"a"}, ${size}, ${body})`);
        await tx.run(sql`insert into note (id, size, body) values (${"b"}, ${null}, ${null})`);
      });

      const ways = await everyWay<{ id: string; size: number; body: Uint8Array | null }>(
        store,
        sql`select id, size, body from note order by id`,
      );

      for (const [way, rows] of Object.entries(ways)) {
        const plain = rows.map((row) => ({ ...row, body: row.body === null ? null : [...row.body] }));
        assert.deepEqual(
          plain,
          [
            { id: "a", size, body: [...body] },
            { id: "b", size: null, body: null },
          ],
          way,
        );
      }
    });

    test("a number that JavaScript cannot hold is refused rather than rounded", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) => tx.run(noteTable));
      await store.write((tx) => tx.run(sql`insert into note (id, size) values ('a', ${2n ** 60n})`));
      const statement = sql`select size from note`;

      await assert.rejects(store.read(statement), { code: "invalid" });
      await assert.rejects(store.readHeavy(statement), { code: "invalid" });
      await assert.rejects(
        store.write((tx) => tx.all(statement)),
        { code: "invalid" },
      );
      assert.deepEqual(await store.read(sql`select cast(size as text) as size from note`), [
        { size: "1152921504606846976" },
      ]);
    });

    test("the rows of every read are plain objects", async (t) => {
      const { store } = await openTestStore(t, backend);

      const [row] = await store.read<object>(sql`select 1 as one`);
      const [heavy] = await store.readHeavy<object>(sql`select 1 as one`);

      assert.equal(Object.getPrototypeOf(row), Object.prototype);
      assert.equal(Object.getPrototypeOf(heavy), Object.prototype);
    });

    test("a broken rule of a table has a code", async (t) => {
      const { store } = await openTestStore(t, backend);
      await store.write((tx) =>
        tx.run(sql`create table rule (
          id ${integer} primary key, size ${integer} not null check (size > 0), parent ${integer} references rule (id)
        )${strict}`),
      );
      await store.write((tx) => tx.run(sql`insert into rule values (1, 1, null)`));
      const broken: [Sql, string][] = [
        [sql`insert into rule values (1, 1, null)`, "conflict"],
        [sql`insert into rule values (2, 0, null)`, "invalid"],
        [sql`insert into rule values (2, null, null)`, "invalid"],
        [sql`insert into rule values (2, 1, 9)`, "invalid"],
        [sql`insert into rule values ('x', 1, null)`, "invalid"],
        [sql`insert into nowhere values (1)`, "invalid"],
        [sql`insert inot rule values (1)`, "invalid"],
      ];

      for (const [statement, code] of broken) {
        for (const by of ["user", "engine", "shared"] as const) {
          await assert.rejects(
            store.write((tx) => tx.run(statement), { by }),
            { code },
          );
        }
      }
    });
  });
}
