// A write of records on the book: a unit of the engine that ends with its commit. On PostgreSQL, writes of different keys
// that need nothing else share a transaction, so that many writers pay for one; two of one key never do, because each
// would read what the other is about to replace.
import type { Store } from "../storage/store.ts";
import { flushRecords, holdHead } from "./flush.ts";
import type { WithinUnit } from "./record-verbs.ts";
import { recordUnit } from "./record-unit.ts";
import type { RecordRoom } from "./room.ts";

const writtenNow = new WeakMap<Store, Set<string>>();

export function withinUnitOf(room: RecordRoom, tenant: string): WithinUnit {
  const { store } = room;
  let keys = writtenNow.get(store);
  if (keys === undefined) writtenNow.set(store, (keys = new Set()));
  return async (work, how) => {
    const key = "key" in how ? `${tenant}\n${how.key}` : undefined;
    const shared = key !== undefined && !keys.has(key);
    if (shared) keys.add(key);
    // Not inside the unit: the writer runs it in a context of its own.
    const cause = room.cause();
    try {
      return await store.write(
        async (tx) => {
          await holdHead(tx);
          const result = await work(recordUnit(tx, room, cause));
          await flushRecords(tx);
          return result;
        },
        { by: shared ? "shared" : "engine", tenant },
      );
    } finally {
      if (shared) keys.delete(key);
    }
  };
}
