// One writer, group commit. Units wait in line; a group begins one transaction, runs every waiting unit behind a
// savepoint of its own, commits once and only then resolves them all (group.ts). So an acknowledged unit is on disk,
// and the sync that this costs is shared.
import { AsyncLocalStorage } from "node:async_hooks";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Awaitable, Tx } from "../store.ts";
import { rollBack } from "./connection.ts";
import { beginImmediate, createContention } from "./contend.ts";
import { runGroup, type GroupParts, type Waiting } from "./group.ts";
import { isBusy } from "./sqlite-error.ts";

// Nobody's context: the loop belongs to no caller.
const outside = AsyncLocalStorage.snapshot();

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
      const inLine = line.length;
      const failure = await begin();
      if (failure !== undefined) refuse(failure, inLine);
      else await runNext(line.splice(0, limits.groupUnitsMax));
    }
    working = undefined;
  }

  async function begin(): Promise<unknown> {
    try {
      await contention.giveWay();
      return await beginImmediate(parts, contention);
    } catch (error) {
      return error;
    }
  }

  // Whatever happens in one group, the line goes on: whoever waits in it would wait for ever.
  async function runNext(group: readonly Waiting[]): Promise<void> {
    try {
      line.unshift(...(await runGroup({ ...parts, contention }, group)));
    } catch (error) {
      rollBack(parts.connection);
      for (const waiting of group) waiting.reject(error);
    }
  }

  // When the file is busy, those who were in line when the try began have waited its full time and give up; whoever came
  // later tries again.
  function refuse(failure: unknown, inLine: number): void {
    for (const waiting of line.splice(0, isBusy(failure) ? inLine : line.length)) waiting.reject(failure);
  }

  return {
    add<T>(run: (tx: Tx) => Awaitable<T>, how: UnitOptions): Promise<T> {
      if (closed) return Promise.reject(new DaybookError("closed", "the book is closed: open it again to write"));
      return new Promise<T>((resolve, reject) => {
        // A user's function runs in its caller's own async context, not in that of whoever happened to start the loop.
        const bound = how.careful ? AsyncLocalStorage.bind(run) : run;
        line.push({
          tenant: how.tenant,
          careful: how.careful,
          run: bound,
          resolve: resolve as (value: unknown) => void,
          reject,
        });
        working ??= outside(work);
      });
    },
    async drain() {
      closed = true;
      await working;
    },
  };
}
