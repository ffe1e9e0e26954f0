// The verbs that read records, the same on the book, in a read of one moment, and in a transaction, which sees its own
// changes.
import type { Page } from "../core/page.ts";
import { listCommits, readCommit, readHead } from "./commit.ts";
import type { AsOf, CommitFilter, CommitPage, CommitRecord } from "./commit.ts";
import { checkDefinition, type AnyEntity, type AnyRecordType } from "./define/definition.ts";
import { noRecord, recordKey } from "./define/record-key.ts";
import { listTypes, storedDefinition, type RecordTypeInfo } from "./define/record-type.ts";
import { readCommitChanges, readDiff, readSince } from "./changes.ts";
import type { ChangePage, ChangeRecord, CommitChangesOptions, DiffOptions, DiffPage, SinceOptions } from "./changes.ts";
import { readEntry, type EntryOf, type KeyOf, type ReadOptions, type ValueOf } from "./entry.ts";
import { readBlame, readHistory, type Blamed, type HistoryOptions, type HistoryPage } from "./history.ts";
import { createQuery, type Asking, type Query } from "./query/query.ts";
import { exportRecords, type ExportOptions } from "./export.ts";
import { traverse, type Reached, type TraverseOptions } from "./traverse.ts";

export type RecordReads = {
  /** The document; `not_found` when there is none.
   *
   *  ```ts
   *  const Note = entity("note", { schema: z.object({ id: z.string(), body: z.string() }), key: "id" });
   *  await book.records.put(Note, { id: "n-1", body: "milk" });
   *  const { body } = await book.records.get(Note, "n-1");
   *  const then = await book.records.get(Note, "n-1", { asOf: 1 });
   *  ``` */
  get<Type extends AnyRecordType>(type: Type, key: KeyOf<Type>, options?: ReadOptions): Promise<ValueOf<Type>>;
  /** The document, or undefined. */
  find<Type extends AnyRecordType>(
    type: Type,
    key: KeyOf<Type>,
    options?: ReadOptions,
  ): Promise<ValueOf<Type> | undefined>;
  /** The document with its revision and its commit, or undefined. */
  entry<Type extends AnyRecordType>(
    type: Type,
    key: KeyOf<Type>,
    options?: ReadOptions,
  ): Promise<EntryOf<Type> | undefined>;
  /** Asks about all records of a type.
   *
   *  ```ts
   *  const Task = entity("task", { schema: z.object({ id: z.string(), hours: z.number() }), key: "id", indexes: ["hours"] });
   *  const long = await book.records.query(Task).where((task) => task("hours").gt(8)).orderBy((task) => task("hours")).list();
   *  ``` */
  query<Type extends AnyRecordType>(type: Type): Query<Type>;
  /** The last commit; null while there is none. */
  head(): Promise<number | null>;
  /** Everything that happened to a record, the oldest first. */
  history<Type extends AnyRecordType>(
    type: Type,
    key: KeyOf<Type>,
    options?: HistoryOptions,
  ): Promise<HistoryPage<ValueOf<Type>>>;
  /** What changed after a commit, in order and without gaps: the feed of all types, or the history of one. */
  since(commit: number, options?: SinceOptions): Promise<ChangePage>;
  /** What is different between two moments; each is a commit or a time. */
  diff(from: AsOf, to: AsOf, options?: DiffOptions): Promise<DiffPage>;
  /** Which commit last set each field of a record. */
  blame<Type extends AnyRecordType>(type: Type, key: KeyOf<Type>): Promise<Record<string, Blamed>>;
  /** Every type of which a record was ever written. */
  types(): Promise<RecordTypeInfo[]>;
  /** The definition of a type as the book knows it, for tools. No schema checks its documents. */
  type(name: string): Promise<AnyRecordType>;
  /** All records as lines of JSON: a header, the entities, the relations, a trailer. `history: true`: every commit with its changes. */
  export(options?: ExportOptions): AsyncIterable<string>;
  /** The records that are connected with this one, each by a shortest path. */
  traverse(type: AnyEntity, key: string, options: TraverseOptions): Promise<Reached[]>;
  /** Commits, the newest first: all of them, or those of an actor, of a time, or about a type.
   *
   *  ```ts
   *  const Memo = entity("memo", { schema: z.object({ id: z.string() }), key: "id" });
   *  await book.records.put(Memo, { id: "m-1" }, { actor: "ada" });
   *  const { items } = await book.records.commits({ actor: "ada", since: "2026-01-01T00:00:00Z", type: Memo });
   *  const changes = await book.records.changes(items[0]?.id ?? 1);
   *  ``` */
  commits(filter?: CommitFilter): Promise<CommitPage>;
  commit(id: number): Promise<CommitRecord>;
  /** What a commit changed, in the order in which it was written. */
  changes(commit: number, options?: CommitChangesOptions): Promise<Page<ChangeRecord>>;
};

export function recordReads(asking: Asking): RecordReads {
  const { reader, run } = asking;
  return {
    get: (type, key, options) =>
      run("get", async () => {
        const entry = await readEntry(reader, type, key, options);
        if (entry === undefined) throw noRecord(type.name, recordKey(type, key));
        return entry.value;
      }),
    find: (type, key, options) => run("find", async () => (await readEntry(reader, type, key, options))?.value),
    entry: (type, key, options) => run("entry", () => readEntry(reader, type, key, options)),
    query: (type) => createQuery(asking, checkDefinition(type, "query")),
    head: () => run("head", async () => (await readHead(reader)).commit),
    history: (type, key, options = {}) =>
      run("history", () => readHistory(reader, checkDefinition(type, "history"), key, options)),
    since: (commit, options = {}) => run("since", () => readSince(reader, commit, options)),
    diff: (from, to, options = {}) => run("diff", () => readDiff(reader, from, to, options)),
    blame: (type, key) => run("blame", () => readBlame(reader, checkDefinition(type, "blame"), key)),
    types: () => run("types", () => listTypes(reader)),
    type: (name) => run("type", () => storedDefinition(reader, name)),
    export: (options = {}) => exportRecords(asking.exporter ?? reader, options),
    traverse: (type, key, options) => run("traverse", () => traverse(reader, type, key, options)),
    commits: (filter = {}) => run("commits", () => listCommits(reader, filter)),
    commit: (id) => run("commit", () => readCommit(reader, id)),
    changes: (commit, options = {}) => run("changes", () => readCommitChanges(reader, commit, options)),
  };
}
