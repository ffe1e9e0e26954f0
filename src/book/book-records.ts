// book.records: the verbs of the records room, each a commit or a read of its own.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { recordReads, type RecordReads } from "../records/record-reads.ts";
import { storeReader } from "../records/record-reader.ts";
import { recordVerbs, type RecordVerbs } from "../records/record-verbs.ts";
import type { Query } from "../records/query/query.ts";
import type { AnyRecordType } from "../records/define/definition.ts";
import { watchQuery, type WatchedCommit, type WatchOptions } from "../records/watch.ts";
import { importRecords, type Imported, type ImportOptions } from "../records/import.ts";
import { retryConflicts, withinUnitOf } from "../records/write/write-unit.ts";
import type { Rooms } from "../open/rooms.ts";
import { readAs } from "../storage/reading.ts";
import type { Awaitable } from "../storage/store.ts";
import { namingCaller, refuseVerb } from "../storage/unit.ts";
import { runUserUnit, type UserTx } from "./user-tx.ts";

export type Records = RecordVerbs &
  RecordReads & {
    /** Writes what `export` gave, of this book or of another.
     *
     *  ```ts
     *  const Page = entity("page", { schema: z.object({ id: z.string() }), key: "id" });
     *  await book.records.put(Page, { id: "p-1" });
     *  const { created } = await book.records.import(book.records.export(), { dryRun: true });
     *  ``` */
    import(lines: AsyncIterable<string> | Iterable<string>, options?: ImportOptions): Promise<Imported>;
    /** What comes to match a query, changes or ceases to, commit by commit, until it is ended. `after` goes on where another
     *  watch was left.
     *
     *  ```ts
     *  const Lamp = entity("lamp", { schema: z.object({ id: z.string(), on: z.boolean() }), key: "id" });
     *  await book.records.put(Lamp, { id: "hall", on: true });
     *  const lit = book.records.query(Lamp).where((lamp) => lamp("on").eq(true));
     *  for await (const { commit, changes } of book.records.watch(lit, { after: 0 })) {
     *    console.log(commit, changes);
     *    break;
     *  }
     *  ``` */
    watch<Type extends AnyRecordType>(query: Query<Type>, options?: WatchOptions): AsyncIterable<WatchedCommit<Type>>;
    /** Like `book.write`, but a conflict about records (a revision, a head) runs the function again, up to three times.
     *
     *  ```ts
     *  const Stock = entity("stock", { schema: z.object({ id: z.string(), left: z.number() }), key: "id" });
     *  await book.records.put(Stock, { id: "s-1", left: 5 });
     *  await book.records.transact(async (tx) => {
     *    const { value, revision } = (await tx.records.entry(Stock, "s-1")) ?? { value: { id: "s-1", left: 0 }, revision: 1 };
     *    await tx.records.put(Stock, { ...value, left: value.left - 1 }, { ifRevision: revision });
     *  });
     *  ``` */
    transact<T>(work: (tx: UserTx) => Awaitable<T>): Promise<T>;
  };

export function bookRecords(rooms: Rooms, tenant: string): Records {
  const { store, records } = rooms;
  const refuse = (verb?: string): void =>
    refuseVerb(verb === undefined ? "book.records" : `book.records.${verb}`, store);
  const within = withinUnitOf(records, tenant);
  return {
    ...recordVerbs((work, record) =>
      namingCaller(() => {
        refuse();
        return within(work, record);
      }),
    ),
    ...recordReads({
      reader: storeReader(store, tenant),
      exporter: storeReader(store, tenant, { tenant, verb: "book.records.export", msMax: limits.reportMs }),
      run: (verb, work) =>
        namingCaller(() => {
          refuse(verb);
          return readAs({ tenant, verb: `book.records.${verb}` }, work);
        }),
    }),
    async import(lines, options = {}) {
      refuse("import");
      const parts = { reader: storeReader(store, tenant), room: records, commit: within };
      return importRecords(parts, lines, options);
    },
    watch(query, options = {}) {
      refuse("watch");
      return watchQuery(store, tenant, query.question, options);
    },
    async transact(work) {
      refuse("transact");
      if (typeof work !== "function") throw invalid("transact takes a function: book.records.transact((tx) => …)");
      return retryConflicts(store, () => store.write((tx) => runUserUnit(tx, rooms, work), { by: "user", tenant }));
    },
  };
}
