// One connection to one SQLite file, with its prepared statements, and the transaction that a unit sees on it. Everything here
// blocks the thread it runs on, so the write queue, the point reader and the reader threads each have their own.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { render, type BuiltAnswer, type Query, type Sql, type Value } from "../sql.ts";
import { authorize, type Authorizer } from "./authorize.ts";
import { fromSqliteError } from "./sqlite-error.ts";
import type { Ids, Random } from "../../core/id.ts";
import type { Keep } from "../../core/remember.ts";
import { usedAfterEnd, type Tx } from "../store.ts";
import { rowMakerOf, type MakeRow } from "./row.ts";

export type Connection = {
  readonly db: DatabaseSync;
  /** False once SQLite itself has ended the transaction: a full disk, an I/O error, `or rollback`. */
  readonly inTransaction: boolean;
  all(query: Query): unknown[];
  get(query: Query): unknown;
  run(query: Query): number;
  /** One statement without parameters, prepared once: begin, savepoint, commit. */
  exec(text: string): void;
  /** Many statements at once: migrations. */
  script(text: string): void;
  close(): void;
  [Symbol.dispose](): void;
};

type ConnectionOptions = {
  readonly readOnly?: boolean;
  /** How long SQLite may block this thread while another connection holds the lock. Zero on the main thread. */
  readonly busyMs?: number;
  readonly durability?: Durability | undefined;
  /** No other connection may have the file open: the first read finds it busy otherwise, and nothing is written beside it. */
  readonly exclusive?: boolean;
  /** How much of the file is kept in memory; what sorting needs beyond that is kept in files. Otherwise all of that is in
   *  memory, and more of the file. */
  readonly cacheKb?: number;
  /** Called around each statement; tests throw or kill from it. */
  readonly fault?: Fault | undefined;
};

type Prepared = {
  readonly statement: StatementSync;
  readonly makeRow: MakeRow;
  /** The same for `rowsAtOnce` rows, once it was asked for. */
  wide?: StatementSync | false;
};
type Prepare = (text: string) => Prepared;

/** Ten rows in one statement cost little more than half of ten statements; more at once gain no more. */
const rowsAtOnce = 10;

export type Durability = "full" | "normal";
/** Told of each statement, and by which connection it goes: others send theirs at the same time. */
export type Fault = (moment: "before" | "after", text: string, connection: object) => void;

/** Below this version a checkpoint and a commit could race and corrupt a WAL file. */
const sqliteVersionMin = [3, 51, 3] as const;

export function checkSqliteVersion(version: string): void {
  const found = version.split(".").map(Number);
  const different = sqliteVersionMin.findIndex((part, index) => (found[index] ?? 0) !== part);
  if (different === -1 || (found[different] ?? 0) > (sqliteVersionMin[different] ?? 0)) return;
  throw new DaybookError(
    "incompatible",
    `SQLite ${version} has a known WAL corruption bug: daybook needs ${sqliteVersionMin.join(".")} or newer, ` +
      "which comes with Node.js 24.15",
    { details: { version } },
  );
}

export function openConnection(location: string, options: ConnectionOptions = {}): Connection {
  const { fault } = options;
  const db = openDatabase(location, options);
  const cache = new Map<string, Prepared>();
  // Apart, because a statement that the engine has prepared would be run for a user without a question.
  const cacheOfUser = new Map<string, Prepared>();
  const cacheOfBuilt = new Map<string, Prepared>();
  let authorizer: Authorizer | undefined;

  function prepare(text: string, from: Map<string, Prepared> = cache): Prepared {
    let prepared = from.get(text);
    if (prepared === undefined) {
      const statement = db.prepare(text);
      prepared = { statement, makeRow: rowMakerOf(statement, text) };
      if (from.size >= limits.statementsCachedMax) from.delete(from.keys().next().value ?? "");
      from.set(text, prepared);
    }
    return prepared;
  }
  function guarded<T>(text: string, run: () => T): T {
    try {
      fault?.("before", text, db);
      const result = run();
      fault?.("after", text, db);
      return result;
    } catch (error) {
      throw fromSqliteError(error, location);
    }
  }

  return {
    db,
    get inTransaction() {
      return db.isTransaction;
    },
    all: (query) =>
      guarded(query.text, () => {
        if (query.user === undefined) return allPrepared(prepare(query.text), query);
        authorizer ??= authorize(db);
        const [answer, kept] = query.built === undefined ? [allPrepared, cacheOfUser] : [answerBuilt, cacheOfBuilt];
        return authorizer.ofUser(query.text, () => answer(prepare(query.text, kept), query));
      }),
    get: (query) => guarded(query.text, () => getPrepared(prepare(query.text), query)),
    run(query) {
      if (fault !== undefined) return guarded(query.text, () => runPrepared(prepare, query));
      try {
        return runPrepared(prepare, query);
      } catch (error) {
        throw fromSqliteError(error, location);
      }
    },
    exec: (text) => guarded(text, () => void prepare(text).statement.run()),
    script: (text) => guarded(text, () => db.exec(text)),
    close,
    [Symbol.dispose]: close,
  };

  function close(): void {
    if (db.isOpen) db.close();
  }
}

/** The first column of the one row that a statement without parameters answers: a pragma, a count. */
export function readValue(connection: Connection, text: string): unknown {
  return Object.values(connection.get({ text, params: [] }) as object)[0];
}

/** Ends the transaction, if there is one. SQLite has ended it even where it reports that the rollback failed. */
export function rollBack(connection: Connection): void {
  try {
    if (connection.inTransaction) connection.exec("rollback");
  } catch {
    // Only an injected fault keeps it open: past the seam it ends.
    if (connection.inTransaction) connection.db.exec("rollback");
  }
}

function openDatabase(location: string, options: ConnectionOptions): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(location, { readOnly: options.readOnly ?? false, timeout: options.busyMs ?? 0 });
    configure(db, options);
    return db;
  } catch (error) {
    db?.close();
    throw fromSqliteError(error, location);
  }
}

function allPrepared({ statement, makeRow }: Prepared, query: Query): unknown[] {
  const found =
    query.rows === undefined
      ? statement.all(...bindable(query.params))
      : query.rows.flatMap((row) => statement.all(...bindable(row)));
  return found.map(makeRow);
}

function answerBuilt({ statement }: Prepared, { params }: Query): BuiltAnswer[] {
  statement.setReturnArrays(true);
  if (statement.columns().length === 0) {
    const { changes, lastInsertRowid } = statement.run(...bindable(params));
    return [{ columns: [], rows: [], count: Number(changes), insertedLast: lastInsertRowid }];
  }
  const rows = statement.all(...bindable(params)) as unknown as unknown[][];
  // Asked for now: what a star stands for is looked up again when the statement runs.
  return [{ columns: statement.columns().map(({ name }) => name), rows, count: rows.length }];
}

function getPrepared(prepared: Prepared, query: Query): unknown {
  if (query.rows !== undefined) return allPrepared(prepared, query)[0];
  const { statement, makeRow } = prepared;
  const found = statement.get(...bindable(query.params));
  return found === undefined ? undefined : makeRow(found);
}

function runPrepared(prepare: Prepare, { text, params, rows }: Query): number {
  const prepared = prepare(text);
  if (rows === undefined) return Number(prepared.statement.run(...bindable(params)).changes);
  let changes = 0;
  let next = 0;
  if (rows.length >= rowsAtOnce) prepared.wide ??= widen(prepare, text);
  while (prepared.wide && next + rowsAtOnce <= rows.length) {
    const values: Value[] = [];
    for (const end = next + rowsAtOnce; next < end; next++) values.push(...(rows[next] ?? []));
    changes += Number(prepared.wide.run(...bindable(values)).changes);
  }
  for (; next < rows.length; next++) changes += Number(prepared.statement.run(...bindable(rows[next] ?? [])).changes);
  return changes;
}

/** The same statement for many rows; false for one that has no list of values, such as an update or a delete. */
function widen(prepare: Prepare, text: string): StatementSync | false {
  const wide = text.replace(/values (\(\?(?:, \?)*\))/, (_, row: string) => {
    return `values ${Array<string>(rowsAtOnce).fill(row).join(", ")}`;
  });
  return wide !== text && prepare(wide).statement;
}

function configure(db: DatabaseSync, options: ConnectionOptions): void {
  const { cacheKb } = options;
  // It must come before anything that reads the file.
  if (options.exclusive === true) db.exec("pragma locking_mode = exclusive");
  db.exec(`pragma foreign_keys = on; pragma cache_size = -${cacheKb ?? 64_000}`);
  db.exec(`pragma temp_store = ${cacheKb === undefined ? "memory" : "file"}`);
  if (options.readOnly === true) {
    db.exec("pragma query_only = on");
    return;
  }
  // Acknowledged means on disk: FULL syncs the WAL at each commit, and group commit makes that one sync per group.
  // On macOS a plain fsync leaves the data in the drive's own cache; elsewhere the second pragma does nothing.
  db.exec(`pragma synchronous = ${options.durability === "normal" ? "normal" : "full"}`);
  db.exec("pragma fullfsync = on; pragma checkpoint_fullfsync = on");
  // Checkpoints happen in the commit, rarely: 10,000 pages gave 1.4 times the sustained writes of the default 1,000.
  db.exec(`pragma wal_autocheckpoint = 10000; pragma journal_size_limit = ${limits.walBytesMax}`);
}

/** What of the connection's settings would lose acknowledged writes, in words. */
export function keptWrongly(connection: Connection, durability: Durability = "full"): string[] {
  const mode = readValue(connection, "pragma journal_mode");
  const synchronous = readValue(connection, "pragma synchronous");
  const least = durability === "normal" ? 1 : 2;
  return [
    ...(mode === "wal" ? [] : [`its journal mode is ${String(mode)} instead of wal`]),
    ...(Number(synchronous) >= least ? [] : [`synchronous is ${String(synchronous)} instead of ${least}`]),
  ];
}

type Bindable = string | number | bigint | null | Uint8Array;

/** SQLite has no booleans: they are 1 and 0. */
export function bindable(params: Query["params"]): Bindable[] {
  for (const value of params) {
    if (typeof value === "boolean") return params.map((each) => (typeof each === "boolean" ? Number(each) : each));
  }
  return params as Bindable[];
}

export type TxParts = { readonly connection: Connection } & Pick<Tx, "ids" | "random" | "keep">;

/** The transaction that one unit sees. It dies with its unit, and at once when SQLite ended the transaction under it: a statement
 *  after that would commit by itself. */
export class SqliteTx implements Tx {
  readonly dialect = "sqlite";
  readonly tenant: string;
  readonly now: number;
  readonly ids: Ids;
  readonly random: Random;
  readonly keep: Keep;
  /** Made when they are first needed: most units wake no listener, and one of these is made for every unit. */
  channels: Set<string> | undefined;
  committed: (() => void)[] | undefined;
  /** The error with which SQLite ended the transaction, whether or not the unit noticed. */
  endedBy: unknown;
  readonly #connection: Connection;
  #ended = false;

  constructor({ connection, ids, random, keep }: TxParts, tenant: string, now: number) {
    this.#connection = connection;
    this.tenant = tenant;
    this.now = now;
    this.ids = ids;
    this.random = random;
    this.keep = keep;
  }

  all<R>(statement: Sql): R[] {
    return this.#use(() => this.#connection.all(render(statement, "sqlite")) as R[]);
  }

  get<R>(statement: Sql): R | undefined {
    return this.#use(() => this.#connection.get(render(statement, "sqlite")) as R | undefined);
  }

  // Written out, because it is the hottest of the three and a closure for each statement shows.
  run(statement: Sql): number {
    if (this.#ended) throw usedAfterEnd();
    try {
      return this.#connection.run(render(statement, "sqlite"));
    } catch (error) {
      throw this.#noteEnd(error);
    }
  }

  wake(channel: string): void {
    (this.channels ??= new Set()).add(channel);
  }

  compete(_name: string): void {
    // There is one writer, and this unit is it.
  }

  userDone(): void {
    // Savepoints cost nothing here, and no other unit writes.
  }

  afterCommit(run: () => void): void {
    (this.committed ??= []).push(run);
  }

  end(): void {
    this.#ended = true;
  }

  #use<T>(run: () => T): T {
    if (this.#ended) throw usedAfterEnd();
    try {
      return run();
    } catch (error) {
      throw this.#noteEnd(error);
    }
  }

  #noteEnd(error: unknown): unknown {
    if (!this.#connection.inTransaction) {
      this.#ended = true;
      this.endedBy ??= error;
    }
    return error;
  }
}
