// Plain jobs that are enqueued on the book at the same time, each to be acknowledged by itself, are one unit: one statement
// writes them all. Whoever asks while a unit is on its way is in the next one.
import type { Store, Tx } from "../storage/store.ts";
import { enqueueAll, type Enqueued } from "./enqueue.ts";
import type { Prepared } from "./prepare.ts";

type Asked = {
  readonly tenant: string;
  readonly prepared: Prepared;
  readonly resolve: (made: Enqueued) => void;
  readonly reject: (error: unknown) => void;
};

export type EnqueueTogether = (tenant: string, prepared: Prepared) => Promise<Enqueued>;

const unitJobsMax = 500;

export function enqueueTogether(store: Store): EnqueueTogether {
  const waiting: Asked[] = [];
  let asked = false;

  async function write(): Promise<void> {
    let group: Asked[] | undefined;
    // Taken when the unit runs, and kept: a unit may run more than once.
    const unit = (tx: Tx): Promise<Enqueued[]> => {
      if (group === undefined) {
        group = waiting.splice(0, unitJobsMax);
        asked = false;
        if (waiting.length > 0) ask();
      }
      return enqueueAll(tx, group);
    };
    try {
      const made = await store.write(unit, { by: "shared" });
      for (const [index, each] of (group ?? []).entries()) each.resolve(made[index] as Enqueued);
    } catch (error) {
      // Refused before it ran, so nobody was taken: all who wait are told.
      if (group === undefined) asked = false;
      for (const each of group ?? waiting.splice(0)) {
        // One that cannot be written must not fail its neighbours.
        if (group === undefined || group.length === 1) each.reject(error);
        else
          store
            .write((tx) => enqueueAll(tx, [each]), { by: "shared" })
            .then(([made]) => each.resolve(made as Enqueued), each.reject);
      }
    }
  }

  function ask(): void {
    if (asked) return;
    asked = true;
    void write();
  }

  return (tenant, prepared) =>
    new Promise((resolve, reject) => {
      waiting.push({ tenant, prepared, resolve, reject });
      ask();
    });
}
