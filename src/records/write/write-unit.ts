// A write of records on the book itself: an engine unit that ends with its commit.
import type { Cause } from "../../core/cause.ts";
import { isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { jitter } from "../../core/id.ts";
import type { Store, Tx } from "../../storage/store.ts";
import type { OneRecord, WithinUnit } from "../record-verbs.ts";
import type { RecordRoom } from "../room.ts";
import { flushUnits, holdHead } from "./flush.ts";
import { createUnit, recordUnit, type RecordUnit, type SharedSight } from "./record-unit.ts";
import { flushRecords } from "./unit-end.ts";

type Work<T> = (unit: RecordUnit) => Promise<T>;

export function withinUnitOf(room: RecordRoom, tenant: string): WithinUnit {
  return async <T>(work: Work<T>, record?: OneRecord) => {
    // Asked here, because the writer runs the unit in a context of its own.
    const cause = room.cause();
    const isShared = record !== undefined;
    // SQLite's writer groups units by itself.
    if (isShared && room.store.dialect === "postgres") {
      return addToBatch(room, tenant, { ...record, cause, work }) as Promise<T>;
    }
    return room.store.write(commitOf(room, work, cause), { by: isShared ? "shared" : "engine", tenant });
  };
}

function commitOf<T>(room: RecordRoom, work: Work<T>, cause: Cause | undefined): (tx: Tx) => Promise<T> {
  return async (tx) => {
    await holdHead(tx);
    const result = await work(recordUnit(tx, room, cause));
    await flushRecords(tx);
    return result;
  };
}

const firstPauseMs = 10;

/** Runs a function again when it lost to another writer: the function itself, never what it computed before. */
export async function retryConflicts<T>({ waitClock, random }: Store, attempt: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "conflict" || retries >= limits.transactRetriesMax) throw error;
      await waitClock.sleep(jitter(random, firstPauseMs * 2 ** retries));
    }
  }
}

type Waiting = OneRecord & {
  readonly cause: Cause | undefined;
  readonly work: Work<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
};

/** The writers that wait, by tenant. A tenant has an entry while `writeAll` works on it. */
function waitingIn({ keep }: Store): Map<string, Waiting[]> {
  return keep("waiting record writes", () => new Map<string, Waiting[]>());
}

/** On PostgreSQL, writers of different keys share a transaction: it holds the head once, reads all keys at once and makes all
 *  commits in one statement. Each writer still gets its own commit, and fails alone. */
function addToBatch(room: RecordRoom, tenant: string, writer: Omit<Waiting, "resolve" | "reject">): Promise<unknown> {
  const byTenant = waitingIn(room.store);
  const known = byTenant.get(tenant);
  const waiting = known ?? [];
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  waiting.push({ ...writer, resolve, reject });
  if (known === undefined) {
    byTenant.set(tenant, waiting);
    void writeAll(room, tenant, waiting);
  }
  return promise;
}

async function writeAll(room: RecordRoom, tenant: string, waiting: Waiting[]): Promise<void> {
  while (waiting.length > 0) {
    // A turn of the loop lets the writers that were just answered write again and share the next batch.
    await room.store.clock.nextTurn();
    const batch = takeBatch(waiting);
    try {
      const answers = await room.store.write((tx) => runBatch(tx, room, batch), { tenant });
      for (const answer of answers) answer();
    } catch (error) {
      // The batch may be on disk, so running it again could write it twice.
      if (isDaybookError(error) && error.code === "unknown_outcome") {
        for (const writer of batch) writer.reject(error);
        continue;
      }
      // One writer broke the transaction of all, so each runs alone.
      for (const { work, cause, resolve, reject } of batch) {
        await room.store.write(commitOf(room, work, cause), { tenant }).then(resolve, reject);
      }
    }
  }
  // In the same step as the last check of `waiting`: a writer that comes later finds no entry and starts again.
  waitingIn(room.store).delete(tenant);
}

/** Takes the first writer of each key. The next writer of that key must see what the first one wrote. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  const taken = new Map<string, Waiting>();
  for (const writer of waiting.splice(0)) {
    const id = `${writer.type.name}\n${writer.key}`;
    if (taken.has(id) || taken.size >= limits.groupUnitsMax) waiting.push(writer);
    else taken.set(id, writer);
  }
  return [...taken.values()];
}

/** Runs the writers of a batch; returns what answers each of them once the transaction is on disk. */
async function runBatch(tx: Tx, room: RecordRoom, batch: readonly Waiting[]): Promise<(() => void)[]> {
  await holdHead(tx);
  const sight: SharedSight = { types: new Map(), seen: new Map() };
  for (const [type, writers] of Map.groupBy(batch, (writer) => writer.type)) {
    const keys = writers.map((writer) => writer.key);
    await createUnit(tx, room, undefined, sight).prefetch(type, keys, "whole");
  }
  const answers: (() => void)[] = [];
  const units: RecordUnit[] = [];
  for (const { work, cause, resolve, reject } of batch) {
    const unit = createUnit(tx, room, cause, sight);
    try {
      const value = await work(unit);
      answers.push(() => resolve(value));
      units.push(unit);
    } catch (error) {
      answers.push(() => reject(error));
    }
  }
  await flushUnits(tx, units);
  return answers;
}
