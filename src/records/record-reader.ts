// What records are read from: the committed book, a snapshot of it, or a transaction, which sees its own changes.
import type { Keep } from "../core/remember.ts";
import { systemClock } from "../core/clock.ts";
import type { Reading } from "../storage/reading.ts";
import type { Dialect, Sql } from "../storage/sql.ts";
import type { Awaitable, Reader, Some, Store, Tx } from "../storage/store.ts";
import type { AnyRecordType } from "./define/definition.ts";
import { findType, type TypeRow } from "./define/record-type.ts";
import { isBuilt } from "./indexes/build-indexes.ts";
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
  typeOf(name: string): Promise<TypeRow | undefined>;
  /** Whether the indexes that the definition declares are there. */
  isBuilt(type: AnyRecordType): boolean;
};

export function storeReader(store: Store, tenant: string, who: Partial<Reading> = { tenant }): RecordReader {
  const { keep } = store;
  return {
    dialect: store.dialect,
    tenant,
    now: () => store.clock.now(),
    point: (statement) => store.read(statement),
    heavy: (statement) => store.readHeavy(statement, who),
    page: (statement) => store.readPage(statement, who),
    turn: systemClock.nextTurn,
    pending: () => [],
    typeOf: (name) => findType({ all: (statement) => store.read(statement), keep, committed: true }, tenant, name),
    isBuilt: (type) => isBuilt(keep, type),
  };
}

export function txReader(tx: Tx): RecordReader {
  const all = <R>(statement: Sql): Awaitable<R[]> => tx.all<R>(statement);
  return {
    dialect: tx.dialect,
    tenant: tx.tenant,
    now: () => tx.now,
    point: all,
    heavy: all,
    // The transaction's own connection cannot stop in between.
    page: async <R>(statement: Sql) => ({ rows: await all<R>(statement), more: false }),
    turn: async () => undefined,
    pending: () => [...(recordUnitOf(tx)?.changes.values() ?? [])],
    typeOf: (name) => findType({ all, keep: tx.keep, committed: false }, tx.tenant, name),
    isBuilt: (type) => isBuilt(tx.keep, type),
  };
}

export function snapshotReader(reader: Reader, tenant: string, at: { keep: Keep; now: () => number }): RecordReader {
  const all = <R>(statement: Sql): Promise<R[]> => reader.all<R>(statement);
  return {
    dialect: reader.dialect,
    tenant,
    now: at.now,
    point: all,
    heavy: all,
    page: (statement) => reader.page(statement),
    turn: systemClock.nextTurn,
    pending: () => [],
    typeOf: (name) => findType({ all, keep: at.keep, committed: true }, tenant, name),
    isBuilt: (type) => isBuilt(at.keep, type),
  };
}
