// Kysely and Drizzle in a transaction of the book. Their queries are typed without a cast, which the compiler checks here.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { and, count, eq, gt, relations, sql as drizzleSql } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import * as sqlite from "drizzle-orm/sqlite-core";
import { sql, type Generated } from "kysely";
import { drizzleOnPostgres, drizzleOnSqlite } from "../../src/book/drizzle.ts";
import { kyselyOn } from "../../src/book/kysely.ts";
import { job, type Book, type UserTx } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import type { TestContext } from "node:test";

const pay = job("pay", { run: () => undefined });

type Database = {
  customer: { id: Generated<number>; name: string };
  purchase: { id: Generated<number>; customer_id: number; cents: number };
  daybook_job: { name: string };
};

async function openShop(t: TestContext, backend: Backend): Promise<Book> {
  const { book } = await openTest(t, backend, { use: [pay], worker: false });
  await book.write(async (tx) => {
    if (backend === "sqlite") {
      await tx.sql`create table customer (id integer primary key, name text not null)`;
      await tx.sql`create table purchase (id integer primary key, customer_id integer not null, cents integer not null)`;
    } else {
      await tx.sql`create table customer (id serial primary key, name text not null)`;
      await tx.sql`create table purchase (id serial primary key, customer_id integer not null, cents bigint not null)`;
    }
  });
  return book;
}

async function kept(book: Book): Promise<{ customers: number; jobs: number }> {
  const [row] = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from customer`);
  return { customers: row?.n ?? 0, jobs: (await book.jobs.list()).items.length };
}

/** Fails with an error of ours, which Drizzle wraps in one of its own. */
async function assertRefused(work: Promise<unknown>, message: RegExp): Promise<void> {
  const error = await work.then(
    () => undefined,
    (failure: Error) => (failure.cause instanceof Error ? failure.cause : failure),
  );
  assert.match(error?.message ?? "it was not refused", message);
}

for (const backend of backends) {
  describe(`Kysely on ${backend}`, () => {
    test("rows and a job are one commit, and are undone together", async (t) => {
      const book = await openShop(t, backend);
      const buy = (tx: UserTx) => async (name: string) => {
        const { id } = await kyselyOn<Database>(tx)
          .insertInto("customer")
          .values({ name })
          .returning("id")
          .executeTakeFirstOrThrow();
        await kyselyOn<Database>(tx).insertInto("purchase").values({ customer_id: id, cents: 400 }).execute();
        await tx.jobs.enqueue(pay, { id });
        return id;
      };

      const id: number = await book.write((tx) => buy(tx)("ada"));
      await assert.rejects(
        book.write(async (tx) => {
          await buy(tx)("bob");
          throw new Error("no more");
        }),
        /no more/,
      );

      assert.deepEqual(await kept(book), { customers: 1, jobs: 1 });
      assert.equal(typeof id, "number");
    });

    test("answers are typed rows and counts, with joins, sums and SQL of one's own", async (t) => {
      const book = await openShop(t, backend);

      await book.write(async (tx) => {
        const db = kyselyOn<Database>(tx);
        const ada = await db.insertInto("customer").values({ name: "ada" }).returningAll().executeTakeFirstOrThrow();
        const made = await db
          .insertInto("purchase")
          .values([
            { customer_id: ada.id, cents: 400 },
            { customer_id: ada.id, cents: 250 },
          ])
          .executeTakeFirst();
        assert.equal(made.numInsertedOrUpdatedRows, 2n);

        const joined = await db
          .selectFrom("purchase")
          .innerJoin("customer", "customer.id", "purchase.customer_id")
          .select(["purchase.id", "customer.id as customer", "name", "cents"])
          .where("cents", ">", 300)
          .execute();
        const cents: number | undefined = joined[0]?.cents;
        assert.deepEqual([joined.length, joined[0]?.name, cents], [1, "ada", 400]);

        const { total } = await db
          .selectFrom("purchase")
          .select((each) => each.fn.countAll<number>().as("total"))
          .executeTakeFirstOrThrow();
        assert.equal(total, 2);

        const raised = await db.updateTable("purchase").set({ cents: 500 }).where("cents", "<", 450).executeTakeFirst();
        assert.equal(raised.numUpdatedRows, 2n);
        const { rows } = await sql<{ most: number }>`select max(cents) as most from purchase`.execute(db);
        assert.deepEqual(rows, [{ most: 500 }]);
        const gone = await db.deleteFrom("purchase").executeTakeFirst();
        assert.equal(gone.numDeletedRows, 2n);
        for await (const row of db.selectFrom("customer").select("name").stream()) assert.equal(row.name, "ada");
      });
    });

    test("a statement that fails may be caught, and what came before it is kept", async (t) => {
      const book = await openShop(t, backend);

      await book.write(async (tx) => {
        const db = kyselyOn<Database>(tx);
        await db.insertInto("customer").values({ id: 1, name: "ada" }).execute();
        await assert.rejects(db.insertInto("customer").values({ id: 1, name: "bob" }).execute(), { code: "conflict" });
        await db.insertInto("customer").values({ id: 2, name: "cyd" }).execute();
      });

      assert.equal((await kept(book)).customers, 2);
    });

    test("Daybook's tables, a transaction of its own and a late use are refused", async (t) => {
      const book = await openShop(t, backend);
      const refused: [string, (tx: UserTx) => unknown, RegExp][] = [
        [
          "ours",
          (tx) => kyselyOn<Database>(tx).deleteFrom("daybook_job").execute(),
          /"daybook_job" is a table of Daybook/,
        ],
        ["drop", (tx) => kyselyOn<Database>(tx).schema.dropTable("daybook_job").execute(), /"daybook_job" is a table/],
        ["raw", (tx) => sql`update daybook_job set name = 'x'`.execute(kyselyOn(tx)), /"daybook_job" is a table/],
        ["commit", (tx) => sql`commit`.execute(kyselyOn(tx)), /"commit" cannot run inside a transaction/],
        [
          "begin",
          (tx) =>
            kyselyOn<Database>(tx)
              .transaction()
              .execute(async () => undefined),
          /the transaction begins and ends with book\.write/,
        ],
        [
          "no tx",
          () =>
            kyselyOn<Database>({} as UserTx)
              .selectFrom("customer")
              .execute(),
          /this is no transaction/,
        ],
      ];

      for (const [what, work, message] of refused) {
        await assert.rejects(book.write(work), message, what);
      }
      const late = await book.write((tx) => ({ db: kyselyOn<Database>(tx) }));
      await assert.rejects(
        late.db.selectFrom("customer").selectAll().execute(),
        /was used after its transaction ended/,
      );
      assert.equal((await kept(book)).customers, 0);
    });

    test("a query that is not awaited is part of the transaction, or undoes it", async (t) => {
      const book = await openShop(t, backend);

      const begun = await book
        .write((tx) => {
          const made = kyselyOn<Database>(tx).insertInto("customer").values({ name: "ada" }).execute();
          return { made: Promise.allSettled([made]) };
        })
        .catch((error: Error) => error.message);

      if (typeof begun === "string") assert.match(begun, /^a query \(.*query-builders\.test\.ts:.* was not awaited/);
      else await begun.made;
      assert.equal((await kept(book)).customers, typeof begun === "string" ? 0 : 1);
    });
  });
}

test("Kysely on PostgreSQL takes and gives what its driver does: dates, lists and JSON", async (t) => {
  const { book } = await openTest(t, "postgres", { worker: false });
  const at = new Date("2026-03-29T01:30:00.123Z");
  type Kinds = { kinds: { at: Date; here: Date; tags: string[]; body: { a: number[] } } };

  const found = await book.write(async (tx) => {
    await tx.sql`create table kinds (at timestamptz, here timestamp, tags text[], body jsonb)`;
    const db = kyselyOn<Kinds>(tx);
    await db
      .insertInto("kinds")
      .values({ at, here: at, tags: ["x", "y z"], body: { a: [1, 2] } })
      .execute();
    return db.selectFrom("kinds").selectAll().executeTakeFirstOrThrow();
  });

  assert.deepEqual(found, { at, here: at, tags: ["x", "y z"], body: { a: [1, 2] } });
});

test("Kysely on SQLite gives the id of the row that it inserted, and of no other", async (t) => {
  const book = await openShop(t, "sqlite");

  await book.write(async (tx) => {
    const customers = kyselyOn<Database>(tx).insertInto("customer");
    const ada = await customers.values({ id: 17, name: "ada" }).executeTakeFirst();
    const bob = await customers.values({ name: "bob" }).executeTakeFirst();
    const again = await customers.orIgnore().values({ id: 17, name: "ada" }).executeTakeFirst();

    assert.deepEqual([ada.insertId, bob.insertId, again.insertId], [17n, 18n, undefined]);
  });
});

test("Kysely on SQLite refuses what SQLite cannot keep, and says what to give", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });
  type Kinds = { kinds: { at: Date } };

  await assert.rejects(
    book.write(async (tx) => {
      await tx.sql`create table kinds (at integer)`;
      await kyselyOn<Kinds>(tx)
        .insertInto("kinds")
        .values({ at: new Date(0) })
        .execute();
    }),
    /dates as epoch milliseconds/,
  );
});

describe("Drizzle on sqlite", () => {
  const customers = sqlite.sqliteTable("customer", {
    id: sqlite.integer().primaryKey(),
    name: sqlite.text().notNull(),
  });
  const purchases = sqlite.sqliteTable("purchase", {
    id: sqlite.integer().primaryKey(),
    customerId: sqlite.integer("customer_id").notNull(),
    cents: sqlite.integer().notNull(),
  });
  const customerRelations = relations(customers, ({ many }) => ({ purchases: many(purchases) }));
  const purchaseRelations = relations(purchases, ({ one }) => ({
    customer: one(customers, { fields: [purchases.customerId], references: [customers.id] }),
  }));
  const schema = { customers, purchases, customerRelations, purchaseRelations };

  test("rows and a job are one commit, and are undone together", async (t) => {
    const book = await openShop(t, "sqlite");
    const buy = async (tx: UserTx, name: string): Promise<number> => {
      const [made] = await drizzleOnSqlite(tx).insert(customers).values({ name }).returning();
      await tx.jobs.enqueue(pay, { id: made?.id });
      return made?.id ?? 0;
    };

    const id = await book.write((tx) => buy(tx, "ada"));
    await assert.rejects(
      book.write(async (tx) => {
        await buy(tx, "bob");
        throw new Error("no more");
      }),
      /no more/,
    );

    assert.deepEqual([id, await kept(book)], [1, { customers: 1, jobs: 1 }]);
  });

  test("answers are typed: joins with columns of one name, relations, counts, and SQL of one's own", async (t) => {
    const book = await openShop(t, "sqlite");

    await book.write(async (tx) => {
      const db = drizzleOnSqlite(tx, { schema });
      await db.insert(customers).values([{ name: "ada" }, { name: "bob" }]);
      await db.insert(purchases).values([
        { id: 7, customerId: 1, cents: 400 },
        { id: 8, customerId: 1, cents: 250 },
      ]);
      const joined = await db.select().from(purchases).innerJoin(customers, eq(customers.id, purchases.customerId));
      assert.deepEqual(joined[0], { purchase: { id: 7, customerId: 1, cents: 400 }, customer: { id: 1, name: "ada" } });
      const found = await db.query.customers.findMany({ with: { purchases: { where: gt(purchases.cents, 300) } } });
      const cents: number | undefined = found[0]?.purchases[0]?.cents;
      assert.deepEqual([found.map(({ name }) => name), cents, found[1]?.purchases], [["ada", "bob"], 400, []]);
      const first = await db.query.customers.findFirst({ where: eq(customers.name, "bob") });
      assert.deepEqual(first, { id: 2, name: "bob" });
      assert.equal(await db.query.customers.findFirst({ where: eq(customers.name, "cyd") }), undefined);
      assert.equal(await db.select().from(customers).where(eq(customers.name, "cyd")).get(), undefined);
      assert.deepEqual(await db.select({ n: count() }).from(purchases).get(), { n: 2 });
      assert.equal(await db.$count(purchases), 2);
      assert.deepEqual(await db.all<{ most: number }>(drizzleSql`select max(cents) as most from purchase`), [
        { most: 400 },
      ]);
      assert.deepEqual(await db.get<{ one: number }>("select 1 as one"), { one: 1 });
      await db.delete(purchases).where(and(eq(purchases.id, 7), gt(purchases.cents, 1)));
      assert.equal(await db.$count(purchases), 1);
    });
  });

  test("Daybook's tables, a transaction of its own and the other back end's are refused", async (t) => {
    const book = await openShop(t, "sqlite");
    const ours = sqlite.sqliteTable("daybook_job", { name: sqlite.text() });

    await assertRefused(
      book.write((tx) => drizzleOnSqlite(tx).delete(ours)),
      /"daybook_job" is a table of Daybook/,
    );
    await assertRefused(
      book.write((tx) => drizzleOnSqlite(tx).run(drizzleSql`begin`)),
      /"begin" cannot run inside/,
    );
    await assertRefused(
      book.write((tx) => drizzleOnSqlite(tx).transaction(async () => 1)),
      /begins and ends with book\.write/,
    );
    await assertRefused(
      book.write((tx) => void drizzleOnPostgres(tx)),
      /this book is on SQLite: use drizzleOnSqlite/,
    );
  });
});

describe("Drizzle on postgres", () => {
  const customers = pg.pgTable("customer", { id: pg.serial().primaryKey(), name: pg.text().notNull() });
  const purchases = pg.pgTable("purchase", {
    id: pg.serial().primaryKey(),
    customerId: pg.integer("customer_id").notNull(),
    cents: pg.bigint({ mode: "bigint" }).notNull(),
  });
  const customerRelations = relations(customers, ({ many }) => ({ purchases: many(purchases) }));
  const purchaseRelations = relations(purchases, ({ one }) => ({
    customer: one(customers, { fields: [purchases.customerId], references: [customers.id] }),
  }));
  const schema = { customers, purchases, customerRelations, purchaseRelations };

  test("rows and a job are one commit, and are undone together", async (t) => {
    const book = await openShop(t, "postgres");
    const buy = async (tx: UserTx, name: string): Promise<number> => {
      const [made] = await drizzleOnPostgres(tx).insert(customers).values({ name }).returning();
      await tx.jobs.enqueue(pay, { id: made?.id });
      return made?.id ?? 0;
    };

    const id = await book.write((tx) => buy(tx, "ada"));
    await assert.rejects(
      book.write(async (tx) => {
        await buy(tx, "bob");
        throw new Error("no more");
      }),
      /no more/,
    );

    assert.deepEqual([id, await kept(book)], [1, { customers: 1, jobs: 1 }]);
  });

  test("answers are typed: joins with columns of one name, relations, large numbers, and SQL of one's own", async (t) => {
    const book = await openShop(t, "postgres");

    await book.write(async (tx) => {
      const db = drizzleOnPostgres(tx, { schema });
      await db.insert(customers).values([{ name: "ada" }, { name: "bob" }]);
      await db.insert(purchases).values([
        { id: 7, customerId: 1, cents: 9_007_199_254_740_993n },
        { id: 8, customerId: 1, cents: 250n },
      ]);
      const joined = await db.select().from(purchases).innerJoin(customers, eq(customers.id, purchases.customerId));
      const cents = 9_007_199_254_740_993n;
      assert.deepEqual(joined[0], { purchase: { id: 7, customerId: 1, cents }, customer: { id: 1, name: "ada" } });
      const found = await db.query.customers.findMany({ with: { purchases: { columns: { id: true } } } });
      assert.deepEqual(found[0]?.purchases, [{ id: 7 }, { id: 8 }]);
      assert.deepEqual(await db.select({ n: count() }).from(purchases), [{ n: 2 }]);
      assert.deepEqual(await db.execute<{ most: number }>("select max(id) as most from purchase"), [{ most: 8 }]);
    });
  });

  test("times, lists, numbers and JSON are what the columns say", async (t) => {
    const { book } = await openTest(t, "postgres", { worker: false });
    const kinds = pg.pgTable("kinds", {
      at: pg.timestamp({ withTimezone: true }).notNull(),
      here: pg.timestamp().notNull(),
      day: pg.date().notNull(),
      tags: pg.text().array().notNull(),
      price: pg.numeric().notNull(),
      small: pg.bigint({ mode: "number" }).notNull(),
      body: pg.jsonb().$type<{ a: number[] }>().notNull(),
    });
    const at = new Date("2026-03-29T01:30:00.123Z");
    const row = { at, here: at, day: "2026-03-29", tags: ["x", "y z"], price: "1.50", small: 5, body: { a: [1] } };

    const found = await book.write(async (tx) => {
      await tx.sql`create table kinds (at timestamptz, here timestamp, day date, tags text[], price numeric, small bigint, body jsonb)`;
      await drizzleOnPostgres(tx).insert(kinds).values(row);
      return drizzleOnPostgres(tx).select().from(kinds);
    });

    assert.deepEqual(found, [row]);
  });

  test("Daybook's tables, a transaction of its own and the other back end's are refused", async (t) => {
    const book = await openShop(t, "postgres");
    const ours = pg.pgTable("daybook_job", { name: pg.text() });

    await assertRefused(
      book.write((tx) => drizzleOnPostgres(tx).delete(ours)),
      /"daybook_job" is a table of Daybook/,
    );
    await assertRefused(
      book.write((tx) => drizzleOnPostgres(tx).execute("rollback")),
      /"rollback" cannot run inside/,
    );
    await assertRefused(
      book.write((tx) => drizzleOnPostgres(tx).transaction(async () => 1)),
      /begins and ends with book\.write/,
    );
    await assertRefused(
      book.write((tx) => void drizzleOnSqlite(tx)),
      /this book is on PostgreSQL: use drizzleOnPostgres/,
    );
  });
});
