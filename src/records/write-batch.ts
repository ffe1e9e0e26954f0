// Writers of different keys that need nothing else share a transaction on PostgreSQL: the head is held once, what is known
// of all keys is read at once, and the commits of all are one statement. Each is a commit of its own, and fails alone.
import { isDaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import type { Store, Tx } from "../storage/store.ts";
import type { AnyEntity } from "./entity.ts";
import { flushRecords, flushUnits, holdHead } from "./flush.ts";
import { createUnit, recordUnit, type RecordUnit, type SharedSight } from "./record-unit.ts";
import type { Cause } from "../core/cause.ts";
import type { RecordRoom } from "./room.ts";

type Item<T> = {
  readonly type: AnyEntity;
  readonly key: string;
  readonly cause: Cause | undefined;
  readonly work: (unit: RecordUnit) => Promise<T>;
};

type Waiting = Item<unknown> & {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
};
type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** Those who wait, by tenant; an entry is there while somebody works on it. */
const lines = new WeakMap<Store, Map<string, Waiting[]>>();

export function addToBatch<T>(room: RecordRoom, tenant: string, item: Item<T>): Promise<T> {
  let byTenant = lines.get(room.store);
  if (byTenant === undefined) lines.set(room.store, (byTenant = new Map<string, Waiting[]>()));
  const line = byTenant.get(tenant);
  const all = line ?? [];
  return new Promise<T>((resolve, reject) => {
    all.push({ ...item, resolve: resolve as (value: unknown) => void, reject });
    if (line !== undefined) return;
    byTenant.set(tenant, all);
    void workOff(room, tenant, all);
  });
}

async function workOff(room: RecordRoom, tenant: string, line: Waiting[]): Promise<void> {
  while (line.length > 0) {
    // A turn of the loop lets everyone who was just answered ask again, so that they share the next batch.
    await room.store.clock.nextTurn();
    const batch = takeBatch(line);
    try {
      const outcomes = await room.store.write((tx) => runBatch(tx, room, batch), { tenant });
      batch.forEach((waiting, index) => settle(waiting, outcomes[index] as Outcome));
    } catch (error) {
      // Whoever ran again what may have been kept would write it twice.
      if (isDaybookError(error) && error.code === "unknown_outcome") {
        for (const waiting of batch) waiting.reject(error);
        continue;
      }
      // One of them broke the transaction of all; alone, each is judged by itself.
      for (const waiting of batch) await runAlone(room, tenant, waiting);
    }
  }
  // In the same step as the last look: whoever comes after it finds no line and begins one.
  lines.get(room.store)?.delete(tenant);
}

/** The first of each key: the next of the same key has to see what that one did. */
function takeBatch(line: Waiting[]): Waiting[] {
  const taken = new Map<string, Waiting>();
  const left: Waiting[] = [];
  for (const waiting of line.splice(0)) {
    const place = `${waiting.type.name}\n${waiting.key}`;
    if (taken.has(place) || taken.size >= limits.groupUnitsMax) left.push(waiting);
    else taken.set(place, waiting);
  }
  line.push(...left);
  return [...taken.values()];
}

async function runBatch(tx: Tx, room: RecordRoom, batch: readonly Waiting[]): Promise<Outcome[]> {
  await holdHead(tx);
  const sight: SharedSight = { types: new Map(), seen: new Map() };
  const outcomes: Outcome[] = [];
  const units: RecordUnit[] = [];
  for (const [type, items] of Map.groupBy(batch, (waiting) => waiting.type)) {
    const unit = createUnit(tx, room, undefined, sight);
    await unit.prefetch(
      await unit.typeOf(type),
      items.map((item) => item.key),
    );
  }
  for (const { work, cause } of batch) {
    const unit = createUnit(tx, room, cause, sight);
    try {
      outcomes.push({ value: await work(unit) });
      units.push(unit);
    } catch (error) {
      outcomes.push({ error });
    }
  }
  await flushUnits(tx, units);
  return outcomes;
}

function settle(waiting: Waiting, outcome: Outcome): void {
  if ("error" in outcome) waiting.reject(outcome.error);
  else waiting.resolve(outcome.value);
}

async function runAlone(room: RecordRoom, tenant: string, { work, cause, resolve, reject }: Waiting): Promise<void> {
  const unit = async (tx: Tx): Promise<unknown> => {
    await holdHead(tx);
    const result = await work(recordUnit(tx, room, cause));
    await flushRecords(tx);
    return result;
  };
  await room.store.write(unit, { tenant }).then(resolve, reject);
}
