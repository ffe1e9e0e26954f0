// daybook/kysely: the typed queries of Kysely, run in a transaction of the book.
import * as kysely from "kysely";
import type { CompiledQuery, DatabaseConnection, Dialect, Driver, Kysely, KyselyConfig, QueryResult } from "kysely";
import { invalid, placeOf } from "../core/error.ts";
import { buildersOf, type Builders, type UserTx } from "./user-tx.ts";

/** Kysely in this transaction, on either back end: what it writes and what Daybook's own verbs write is kept together or not at
 *  all. It may be used until the transaction ends.
 *
 *  ```ts
 *  type Database = { note: { id: number; body: string } };
 *  await book.write(async (tx) => {
 *    await kyselyOn<Database>(tx).insertInto("note").values({ id: 17, body: "milk" }).execute();
 *    await tx.jobs.enqueue(sendReceipt, { orderId: "o-17" });
 *  });
 *  ``` */
export function kyselyOn<Database>(tx: UserTx, config: Omit<KyselyConfig, "dialect"> = {}): Kysely<Database> {
  const builders = buildersOf(tx);
  return new kysely.Kysely<Database>({ ...config, dialect: dialectOf(builders, runIn(builders, placeOf(kyselyOn))) });
}

type Run = <Row>(query: CompiledQuery) => Promise<QueryResult<Row>>;

function runIn(builders: Builders, place: object): Run {
  return async <Row>({ sql, parameters, query }: CompiledQuery) => {
    const { columns, rows, count, insertedLast } = await builders.run(place, sql, parameters, false);
    // The builder knows which columns it asked for, and its caller of which types they are.
    const named = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
    const answer = { rows: named, numAffectedRows: BigInt(count) };
    // Of another statement, or of an insert that inserted nothing, it would be a row that somebody else inserted before.
    if (insertedLast === undefined || count === 0 || query.kind !== "InsertQueryNode") return answer;
    return { ...answer, insertId: BigInt(insertedLast) };
  };
}

function dialectOf({ dialect }: Builders, run: Run): Dialect {
  const isSqlite = dialect === "sqlite";
  return {
    createDriver: () => driverOf(run),
    createQueryCompiler: () => (isSqlite ? new kysely.SqliteQueryCompiler() : new kysely.PostgresQueryCompiler()),
    createAdapter: () => (isSqlite ? new kysely.SqliteAdapter() : new kysely.PostgresAdapter()),
    createIntrospector: (db) => (isSqlite ? new kysely.SqliteIntrospector(db) : new kysely.PostgresIntrospector(db)),
  };
}

function driverOf(run: Run): Driver {
  const connection: DatabaseConnection = {
    executeQuery: run,
    async *streamQuery<Row>(query: CompiledQuery) {
      yield await run<Row>(query);
    },
  };
  const refuse = async (): Promise<never> => {
    throw invalid(
      "the transaction begins and ends with book.write: use the queries of kyselyOn(tx) without transaction()",
    );
  };
  return {
    init: async () => undefined,
    acquireConnection: async () => connection,
    releaseConnection: async () => undefined,
    destroy: async () => undefined,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
  };
}
