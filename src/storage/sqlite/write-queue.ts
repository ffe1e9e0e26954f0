// One writer, group commit. Units wait in line; a group begins one transaction, runs every waiting unit behind a
// savepoint of its own, commits once and only then resolves them all (group.ts). So an acknowledged unit is on disk,
// and the sync that this costs is shared.
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Awaitable, Tx } from "../store.ts";
import { beginImmediate, createContention } from "./contend.ts";
import { runGroup, type GroupParts, type Waiting } from "./group.ts";
import { isBusy } from "./sqlite-error.ts";

export type WriteQueue = {
  add<T>(run: (tx: Tx) => Awaitable<T>, how: UnitOptions): Promise<T>;
  /** Refuses new units and resolves once the ones in line are done. */
  drain(): Promise<void>;
};

export type UnitOptions = Pick<Waiting, "tenant" | "careful">;

export function createWriteQueue(parts: Omit<GroupParts, "contention">): WriteQueue {
  const { clock } = parts;
  const contention = createContention(parts);
  const line: Waiting[] = [];
  let working: Promise<void> | undefined;
  let closed = false;

  async function work(): Promise<void> {
    while (line.length > 0) {
      // A turn of the loop lets everyone who was just answered ask again, so that they share the next group.
      await clock.nextTurn();
      await contention.giveWay();
      const failure = await beginImmediate(parts, contention);
      if (failure !== undefined) refuse(failure);
      else line.unshift(...(await runGroup({ ...parts, contention }, line.splice(0, limits.groupUnitsMax))));
    }
    working = undefined;
  }

  // When the file is busy only those who have waited their full time give up; the rest of the line tries again.
  function refuse(failure: unknown): void {
    const now = clock.monotonic();
    const patient = (waiting: Waiting): boolean => isBusy(failure) && now - waiting.since < limits.busyMsMax;
    for (const waiting of line.splice(0)) {
      if (patient(waiting)) line.push(waiting);
      else waiting.reject(failure);
    }
  }

  return {
    add<T>(run: (tx: Tx) => Awaitable<T>, how: UnitOptions): Promise<T> {
      if (closed) return Promise.reject(new DaybookError("closed", "the book is closed: open it again to write"));
      return new Promise<T>((resolve, reject) => {
        line.push({ ...how, run, since: clock.monotonic(), resolve: resolve as (value: unknown) => void, reject });
        working ??= work();
      });
    },
    async drain() {
      closed = true;
      await working;
    },
  };
}
