import assert from "node:assert/strict";
import { test } from "node:test";
import { createBegins } from "../../src/calls/attempt/begin.ts";
import { DaybookError } from "../../src/core/error.ts";
import { adviceOf } from "../../src/core/retry.ts";
import type { Store, Tx } from "../../src/storage/store.ts";

const job = (id: string) => ({ tenant: "default", id, runId: id });
const begins = () => createBegins({ settings: { keys: undefined }, announce: undefined });

/** A store whose writes all fail, and that counts them. */
function failing(): { store: Store; writes(): number } {
  let writes = 0;
  const all = (): Promise<never> => Promise.reject(new DaybookError("busy", "the file is busy"));
  // As in a real store, a unit begins after the call that asks for it has returned.
  const write = async (unit: (tx: Tx) => Promise<unknown>): Promise<unknown> => {
    writes++;
    await Promise.resolve();
    return unit({ all } as unknown as Tx);
  };
  return { store: { write } as unknown as Store, writes: () => writes };
}

test("a call whose attempt could not be written was not sent: it is tried again and no attempt is counted", async () => {
  const { store } = failing();

  const error = await begins()
    .begin(store, job("a"))
    .catch((thrown: unknown) => thrown);

  assert.match(String(error), /the file is busy/);
  assert.deepEqual(adviceOf(error), { counts: false, atLeastMs: 1000 });
});

test("attempts that begin together share a write, and are written one by one if that fails", async () => {
  const { store, writes } = failing();
  const begin = begins();

  const ends = await Promise.allSettled(["a", "b", "c"].map((id) => begin.begin(store, job(id))));

  assert.deepEqual(
    ends.map(({ status }) => status),
    ["rejected", "rejected", "rejected"],
  );
  assert.equal(writes(), 4);
});
