// A tenant that writes little does not wait behind one that writes a lot.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import type { Store, WriteOptions } from "../../src/storage/store.ts";
import { createPairs, numbered, readPairs, unitOf, writePair } from "../storage/pair.ts";
import { backends, openTestStore, type Backend } from "../support/open-test.ts";

const kinds = { sqlite: ["engine", "user"], postgres: ["shared"] } as const satisfies Record<
  Backend,
  readonly unknown[]
>;

/** Writes pairs, and keeps the order in which their callers are answered. */
function writer(store: Store, by: NonNullable<WriteOptions["by"]>) {
  const answered: string[] = [];
  return {
    answered,
    write: async (tenant: string, id: string, during: () => unknown = () => undefined): Promise<void> => {
      await store.write(
        async (tx) => {
          await during();
          await writePair(tx, tenant + id);
        },
        { tenant, by },
      );
      answered.push(tenant + id);
    },
  };
}

for (const backend of backends) {
  describe(backend, () => {
    for (const by of kinds[backend]) {
      test(`${unitOf(by)} of one tenant is in the next group, though 500 of another have waited for longer`, async (t) => {
        const { store } = await openTestStore(t, backend, { clock: manualClock() });
        await createPairs(store);
        const { answered, write } = writer(store, by);
        let other: Promise<void> | undefined;

        const many = numbered(500).map((id) => write("a", id, () => void (other ??= write("b", id))));
        await Promise.all(many);
        await other;

        const before = answered.indexOf("b000");
        assert.ok(before <= limits.groupUnitsMax + limits.groupTurnUnitsMax, `${before} were answered before it`);
        assert.equal((await readPairs(store)).length, 501);
      });

      test(`${unitOf(by)} of each tenant keeps its place among those of its tenant`, async (t) => {
        const { store } = await openTestStore(t, backend, { clock: manualClock() });
        await createPairs(store);
        const { answered, write } = writer(store, by);
        const tenants = ["a", "b", "c"];

        await Promise.all(numbered(100).flatMap((id) => tenants.map((tenant) => write(tenant, id))));

        for (const tenant of tenants) {
          const own = answered.filter((id) => id.startsWith(tenant));
          assert.deepEqual(
            own,
            numbered(100).map((id) => tenant + id),
          );
        }
        const first = answered.slice(0, 3 * limits.groupTurnUnitsMax).map((id) => id[0]);
        assert.deepEqual(new Set(first), new Set(tenants));
      });
    }
  });
}

test("a unit is not committed only after a long one of another tenant", async (t) => {
  const clock = manualClock();
  const { store } = await openTestStore(t, "sqlite", { clock });
  await createPairs(store);
  const { answered, write } = writer(store, "engine");
  await write("a", "000", () => clock.advance(limits.groupMsMax + 1));

  const long = ["001", "002"].map((id) => write("a", id, () => clock.advance(limits.groupMsMax + 1)));
  const short = write("b", "000");
  await Promise.race([...long, short]);

  assert.deepEqual(answered, ["a000", "b000"]);
  await Promise.all([...long, short]);
});

test("all units that have begun are waited for, whosever turn it is", async (t) => {
  const { store } = await openTestStore(t, "sqlite", { clock: manualClock() });
  await createPairs(store);
  const { answered, write } = writer(store, "engine");

  const begun = ["a", "b"].flatMap((tenant) => numbered(100).map((id) => write(tenant, id)));
  await store.begunEnded();

  assert.equal(answered.length, 200);
  await Promise.all(begun);
});
