// daybook/drizzle: the typed queries of Drizzle, run in a transaction of the book. Drizzle's tables are of one back end, so there is
// a function for each.
import { sql, type DrizzleConfig, type SQLWrapper } from "drizzle-orm";
import { drizzle as drizzlePostgres, type PgRemoteDatabase } from "drizzle-orm/pg-proxy";
import { SQLiteAsyncDialect } from "drizzle-orm/sqlite-core";
import { SQLiteRaw } from "drizzle-orm/sqlite-core/query-builders/raw";
import { drizzle as drizzleSqlite, type SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import { invalid, placeOf } from "../core/error.ts";
import type { BuiltAnswer, Dialect } from "../storage/sql.ts";
import { buildersOf, type UserTx } from "./user-tx.ts";

type Tables = Record<string, unknown>;
/** What was read earlier may not stand in for what the transaction sees. */
type Config<Schema extends Tables> = Omit<DrizzleConfig<Schema>, "cache">;

/** Drizzle for tables of `sqliteTable`, in this transaction of a book on SQLite: what it writes and what Daybook's own verbs write
 *  is kept together or not at all. It may be used until the transaction ends.
 *
 *  ```ts
 *  const notes = sqliteTable("note", { id: integer().primaryKey(), body: text().notNull() });
 *  await book.write(async (tx) => {
 *    await drizzleOnSqlite(tx).insert(notes).values({ id: 18, body: "bread" });
 *    await tx.jobs.enqueue(sendReceipt, { orderId: "o-18" });
 *  });
 *  ``` */
export function drizzleOnSqlite<Schema extends Tables = Record<string, never>>(
  tx: UserTx,
  config: Config<Schema> = {},
): SqliteRemoteDatabase<Schema> {
  const run = runIn(tx, "sqlite", drizzleOnSqlite);
  const dialect = new SQLiteAsyncDialect(config.casing === undefined ? {} : { casing: config.casing });
  const db = drizzleSqlite<Schema>(async (text, params, method) => {
    const { rows } = await run(text, params);
    // For "get" it wants the row itself, and undefined where there is none, whatever its type says.
    return { rows: method === "get" ? (rows[0] as unknown[]) : [...rows] };
  }, config);

  /** SQL of the user's own answers objects, as its type says; the driver underneath would answer lists. */
  function raw<Answer>(query: SQLWrapper | string, action: "all" | "get", of: (rows: object[]) => unknown) {
    const asked = typeof query === "string" ? sql.raw(query) : query.getSQL();
    const { sql: text, params } = dialect.sqlToQuery(asked);
    const execute = async (): Promise<Answer> => of(named(await run(text, params))) as Answer;
    return new SQLiteRaw<Answer>(
      execute,
      () => asked,
      action,
      dialect,
      (answered) => answered,
    );
  }
  db.all = <Row>(query: SQLWrapper | string) => raw<Row[]>(query, "all", (rows) => rows);
  db.get = <Row>(query: SQLWrapper | string) => raw<Row>(query, "get", ([row]) => row);
  db.transaction = refuseTransaction;
  db.batch = refuseTransaction;
  return db;
}

/** Drizzle for tables of `pgTable`, in this transaction of a book on PostgreSQL.
 *
 *  ```ts
 *  const customers = pgTable("customer", { id: serial().primaryKey(), name: varchar().notNull() });
 *  const addCustomer = (name: string) =>
 *    book.write(async (tx) => {
 *      const [added] = await drizzleOnPostgres(tx).insert(customers).values({ name }).returning();
 *      await tx.jobs.enqueue(sendReceipt, { orderId: `o-${added?.id}` });
 *    });
 *  ``` */
export function drizzleOnPostgres<Schema extends Tables = Record<string, never>>(
  tx: UserTx,
  config: Config<Schema> = {},
): PgRemoteDatabase<Schema> {
  const run = runIn(tx, "postgres", drizzleOnPostgres);
  const db = drizzlePostgres<Schema>(async (text, params, method) => {
    const answer = await run(text, params);
    return { rows: method === "execute" ? named(answer) : [...answer.rows] };
  }, config);
  db.transaction = refuseTransaction;
  return db;
}

type Run = (text: string, params: readonly unknown[]) => Promise<BuiltAnswer>;

function runIn(tx: UserTx, wanted: Dialect, from: (tx: UserTx) => unknown): Run {
  const builders = buildersOf(tx);
  const place = placeOf(from);
  if (builders.dialect === wanted) return (text, params) => builders.run(place, text, params, true);
  const [here, other] = wanted === "sqlite" ? ["PostgreSQL", drizzleOnPostgres] : ["SQLite", drizzleOnSqlite];
  throw invalid(`this book is on ${here}: use ${other.name}(tx), with tables of that kind`);
}

function named({ columns, rows }: BuiltAnswer): object[] {
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
}

function refuseTransaction(): never {
  throw invalid(
    "the transaction begins and ends with book.write: use the queries of Drizzle without transaction() and batch()",
  );
}
