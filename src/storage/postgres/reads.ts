// Reads on PostgreSQL. They have connections of their own, so that no writer waits behind them, and the server itself ends a
// statement at its deadline: leaving its connection would not.
import type { Pool, PoolClient } from "pg";
import { limits } from "../../core/limits.ts";
import { createReadTurns, tooLong } from "../read-turns.ts";
import { readingNow, type Reading } from "../reading.ts";
import { render, type Query, type Sql } from "../sql.ts";
import { answerTooLarge, endedReader, type Reader, type Some } from "../store.ts";
import { beginAnswer, control, isAnswerTooLarge, send, type Server } from "./connect.ts";
import { giveBack } from "./own-transaction.ts";
import { fromPostgresError, isCancelled } from "./postgres-error.ts";

export type PostgresReads = {
  all<R>(statement: Sql, who?: Partial<Reading>): Promise<R[]>;
  page<R>(statement: Sql, who?: Partial<Reading>): Promise<Some<R>>;
  snapshot<T>(run: (reader: Reader) => Promise<T>, who?: Partial<Reading>): Promise<T>;
  /** Ends what is under way, also on the server. */
  close(): Promise<void>;
};

type Parts = { readonly server: Server; readonly location: string; readonly pool: Pool; readonly writers: Pool };

export function createPostgresReads(parts: Parts): PostgresReads {
  const { pool, server, location } = parts;
  const turns = createReadTurns({ atOnce: limits.readsMax, perTenant: limits.readsPerTenant });
  const snapshots = createReadTurns({ atOnce: limits.snapshotsMax, perTenant: limits.snapshotsPerTenant });
  const ending = new Set<Promise<unknown>>();
  // Only this pool's connections have the setting, and each the one of its last read.
  const timeouts = new WeakMap<PoolClient, number>();
  /** Those in which a user's statement may have left something behind. */
  const used = new WeakSet<PoolClient>();

  // The connection is given up only after the server was told, because its number may be another's then.
  function cancel(client: PoolClient & { processID?: number }): void {
    const told = parts.writers
      .query("select pg_catalog.pg_cancel_backend($1)", [client.processID])
      .catch(() => undefined)
      .then(() => client.release(true))
      .finally(() => ending.delete(told));
    ending.add(told);
  }

  async function use<T>(who: Reading, signal: AbortSignal, work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect().catch((error: unknown) => {
      throw fromPostgresError(error, location);
    });
    let cancelled = false;
    const end = (): void => {
      cancelled = true;
      cancel(client);
    };
    let broken = false;
    try {
      signal.throwIfAborted();
      signal.addEventListener("abort", end, { once: true });
      if (timeouts.get(client) !== who.msMax) {
        timeouts.set(client, who.msMax);
        // Not awaited: the server does one after the other, and a connection that refuses it is broken.
        control(client, `set statement_timeout = ${who.msMax}`, server).catch(() => (broken = true));
      }
      return await work(client);
    } catch (error) {
      if (!cancelled && isAnswerTooLarge(client)) {
        broken = true;
        throw answerTooLarge();
      }
      throw isCancelled(error) ? tooLong(who) : error;
    } finally {
      signal.removeEventListener("abort", end);
      const leaves = used.delete(client);
      // What is set anew then is the deadline, too.
      if (leaves) timeouts.delete(client);
      if (!cancelled) giveBack(parts, client, { broken, leaves });
    }
  }

  async function ask(client: PoolClient, query: Query): Promise<unknown[]> {
    beginAnswer(client);
    if (query.user?.leaves === true) used.add(client);
    // Texts of lists and filters are unbounded in number, and the server would keep every one that has a name until the
    // connection ends. Their plans cost more to keep than to make.
    return (await send(client, query, server, false)).rows;
  }
  async function askPage<R>(client: PoolClient, statement: Sql): Promise<Some<R>> {
    return toSome<R>(await ask(client, pageOf(render(statement, "postgres"))));
  }
  async function askAll<R>(client: PoolClient, statement: Sql): Promise<R[]> {
    return (await ask(client, render(statement, "postgres"))) as R[];
  }

  async function read<T>(who: Partial<Reading> | undefined, work: (client: PoolClient) => Promise<T>): Promise<T> {
    const reading = readingNow(who);
    return turns.run(reading, (signal) => use(reading, signal, work));
  }

  /** A read-only transaction at REPEATABLE READ. */
  async function readSnapshot<T>(client: PoolClient, run: (reader: Reader) => Promise<T>): Promise<T> {
    let open = true;
    const checked = (): PoolClient => {
      if (!open) throw endedReader();
      return client;
    };
    try {
      const begun = control(client, "begin isolation level repeatable read, read only", server);
      begun.catch(() => undefined);
      const result = await run({
        dialect: "postgres",
        all: async <R>(statement: Sql) => askAll<R>(checked(), statement),
        page: async <R>(statement: Sql) => askPage<R>(checked(), statement),
      });
      // Without it each statement would have read of a moment of its own.
      await begun;
      return result;
    } finally {
      open = false;
      await control(client, "rollback", server).catch(() => undefined);
    }
  }

  return {
    all: <R>(statement: Sql, who?: Partial<Reading>) => read(who, (client) => askAll<R>(client, statement)),
    page: <R>(statement: Sql, who?: Partial<Reading>) => read(who, (client) => askPage<R>(client, statement)),
    async snapshot(run, who) {
      const reading = readingNow(who);
      return snapshots.run(reading, (signal) => use(reading, signal, (client) => readSnapshot(client, run)));
    },
    async close() {
      turns.close();
      snapshots.close();
      while (ending.size > 0) await Promise.all(ending);
      await pool.end();
    },
  };
}

/** The rows that fit on a page, and the one after them; the server sends no others. It keeps all of them for each window of
 *  another kind, so there is one. */
function pageOf({ text, params }: Query): Query {
  return {
    text: `select * from (select page.*, sum(page_size) over before as page_bytes, row_number() over before as page_row
        from (select asked.*, pg_column_size(asked) as page_size from (${text}) as asked) as page
        window before as (rows unbounded preceding)) as sized
      where page_row <= 2 or page_bytes - page_size <= ${limits.pageBytesMax}`,
    params,
  };
}

type Sized = { readonly page_size: number; readonly page_bytes: number; readonly page_row: number };

function toSome<R>(found: unknown[]): Some<R> {
  // Sorted here: the server would carry all documents through another sort.
  const all = (found as Sized[]).toSorted((one, other) => one.page_row - other.page_row);
  // The first is on the page whatever its size.
  const rows = all.filter((row) => row.page_row === 1 || row.page_bytes <= limits.pageBytesMax);
  return {
    rows: rows.map(({ page_size: _s, page_bytes: _b, page_row: _r, ...row }) => row as R),
    more: all.length > rows.length,
  };
}
