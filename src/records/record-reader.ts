// What records are read from: the committed book, a snapshot of it, or a transaction, which sees its own changes.
import { systemClock } from "../core/clock.ts";
import type { Keep } from "../core/remember.ts";
import type { Reading } from "../storage/reading.ts";
import type { Dialect, Sql } from "../storage/sql.ts";
import type { Awaitable, Reader, Some, Store, Tx } from "../storage/store.ts";
import type { AnyRecordType } from "./define/definition.ts";
import { findType, type TypeRow } from "./define/record-type.ts";
import { builtDefinition } from "./indexes/build-indexes.ts";
import { recordUnitOf, type Change } from "./write/record-unit.ts";

export type RecordReader = {
  readonly dialect: Dialect;
  readonly tenant: string;
  now(): number;
  /** A few rows by an index. */
  point<R>(statement: Sql): Awaitable<R[]>;
  /** A read of unknown cost. */
  heavy<R>(statement: Sql): Awaitable<R[]>;
  /** A page of documents: fewer rows where they are large, and whether there are more. */
  page<R>(statement: Sql): Awaitable<Some<R>>;
  /** Lets the loop go on between two pieces of a long work; a transaction holds the writer and goes on at once. */
  turn(): Promise<void>;
  /** The changes that the transaction has not written yet. */
  pending(): readonly Change[];
  /** The commit that the transaction has begun and not finished: what it reads of the past ends before it. */
  unfinished(): number | undefined;
  typeOf(name: string): Promise<TypeRow | undefined>;
  /** The definition of this name whose indexes are there. */
  built(name: string): AnyRecordType | undefined;
};

/** A reader that reads in these ways; `tx` when they are those of a transaction, which sees its own changes. */
function readerOf(
  ways: Omit<RecordReader, "turn" | "pending" | "unfinished" | "typeOf" | "built">,
  keep: Keep,
  tx?: Tx,
): RecordReader {
  const types = { all: <R>(statement: Sql) => ways.point<R>(statement), keep, committed: tx === undefined };
  return {
    ...ways,
    turn: tx === undefined ? systemClock.nextTurn : async () => undefined,
    pending: () => (tx === undefined ? [] : [...(recordUnitOf(tx)?.changes.values() ?? [])]),
    unfinished: () => tx && recordUnitOf(tx)?.ahead?.commit,
    typeOf: (name) => findType(types, ways.tenant, name),
    built: (name) => builtDefinition(keep, name),
  };
}

export function storeReader(store: Store, tenant: string, who: Partial<Reading> = { tenant }): RecordReader {
  const ways = {
    dialect: store.dialect,
    tenant,
    now: () => store.clock.now(),
    point: <R>(statement: Sql) => store.read<R>(statement),
    heavy: <R>(statement: Sql) => store.readHeavy<R>(statement, who),
    page: <R>(statement: Sql) => store.readPage<R>(statement, who),
  };
  return readerOf(ways, store.keep);
}

export function txReader(tx: Tx): RecordReader {
  const all = <R>(statement: Sql): Awaitable<R[]> => tx.all<R>(statement);
  // The transaction's own connection cannot stop in between.
  const page = async <R>(statement: Sql) => ({ rows: await all<R>(statement), more: false });
  return readerOf(
    { dialect: tx.dialect, tenant: tx.tenant, now: () => tx.now, point: all, heavy: all, page },
    tx.keep,
    tx,
  );
}

export function snapshotReader(reader: Reader, tenant: string, at: { keep: Keep; now: () => number }): RecordReader {
  const all = <R>(statement: Sql): Promise<R[]> => reader.all<R>(statement);
  const page = <R>(statement: Sql): Awaitable<Some<R>> => reader.page<R>(statement);
  return readerOf({ dialect: reader.dialect, tenant, now: at.now, point: all, heavy: all, page }, at.keep);
}
