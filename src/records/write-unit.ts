// A write of records on the book: a unit of the engine that ends with its commit.
import type { WithinUnit } from "./record-verbs.ts";
import { flushRecords, holdHead } from "./flush.ts";
import { recordUnit } from "./record-unit.ts";
import type { RecordRoom } from "./room.ts";
import { addToBatch } from "./write-batch.ts";

export function withinUnitOf(room: RecordRoom, tenant: string): WithinUnit {
  const { store } = room;
  return async (work, how) => {
    // Not inside the unit: the writer runs it in a context of its own.
    const cause = room.cause();
    // SQLite's writer gathers units by itself, at no cost of theirs.
    if ("key" in how && store.dialect === "postgres") return addToBatch(room, tenant, { ...how, work, cause });
    return store.write(
      async (tx) => {
        await holdHead(tx);
        const result = await work(recordUnit(tx, room, cause));
        await flushRecords(tx);
        return result;
      },
      { by: "key" in how ? "shared" : "engine", tenant },
    );
  };
}
