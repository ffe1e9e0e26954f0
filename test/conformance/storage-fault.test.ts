// A statement fails, wherever it stands: before it ran or just after. Whatever was acknowledged is there, whatever was
// refused is not, and nothing is there by half.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock, type Clock } from "../../src/core/clock.ts";
import type { Fault } from "../../src/storage/sqlite/connection.ts";
import type { Store, WriteOptions } from "../../src/storage/store.ts";
import { createPairs, readPairs, writePair } from "../storage/pair.ts";
import { backends, openTestStore, type Backend } from "../support/open-test.ts";

type Moment = Parameters<Fault>[0];
type Fuse = {
  readonly fault: Fault;
  /** Fails `times` statements in a row, beginning with the n-th from now. */
  light(n: number, moment: Moment, times: number): void;
  /** Returns how many statements there were since it was lit, and whether any of them failed. */
  disarm(): { seen: number; blown: boolean };
};

function fuse(backend: Backend): Fuse {
  let burning: { n: number; moment: Moment; times: number } | undefined;
  let seen = 0;
  let blown = false;
  return {
    fault(moment, text) {
      if (moment === "before") seen++;
      if (burning === undefined || burning.moment !== moment || text === "pragma data_version") return;
      // SQLite's commit fails and is undone, or it succeeds: an error after its success does not exist. Ending the
      // process there does, and is tested with the kill points.
      if (backend === "sqlite" && moment === "after" && text === "commit") return;
      if (seen < burning.n || seen >= burning.n + burning.times) return;
      blown = true;
      throw new Error(`the fuse blew ${moment} statement ${seen}: ${text}`);
    },
    light(n, moment, times) {
      burning = { n, moment, times };
      seen = 0;
      blown = false;
    },
    disarm() {
      burning = undefined;
      return { seen, blown };
    },
  };
}

/** No group is cut because it took its time, and nobody looks for others: every round has the same statements. */
const clock: Clock = { ...systemClock, monotonic: () => 0 };

type Outcome = { id: string; became: "acknowledged" | "refused" | "unknown" };

async function workload(store: Store, prefix: string, kinds: NonNullable<WriteOptions["by"]>[]): Promise<Outcome[]> {
  return Promise.all(
    kinds.map(async (by, index): Promise<Outcome> => {
      const id = `${prefix}-${index}`;
      try {
        await store.write((tx) => writePair(tx, id), { by });
        return { id, became: "acknowledged" };
      } catch (error) {
        const unknown = (error as { code?: string }).code === "unknown_outcome";
        return { id, became: unknown ? "unknown" : "refused" };
      }
    }),
  );
}

function check(present: ReadonlySet<string>, outcomes: readonly Outcome[]): void {
  for (const { id, became } of outcomes) {
    if (became === "acknowledged") assert.ok(present.has(id), `${id} was acknowledged and is missing`);
    if (became === "refused") assert.ok(!present.has(id), `${id} was refused and is there`);
  }
}

const workloads: Record<string, NonNullable<WriteOptions["by"]>[]> = {
  "user units": ["user", "user", "user"],
  "engine units": ["engine", "engine", "engine"],
  "shared units": ["shared", "shared", "shared"],
  "a mixture": ["shared", "user", "engine", "shared"],
};

for (const backend of backends) {
  describe(backend, () => {
    for (const [name, kinds] of Object.entries(workloads)) {
      test(`a failure before or after any statement of ${name} leaves what was acknowledged and nothing else`, async (t) => {
        const { fault, light, disarm } = fuse(backend);
        const { store } = await openTestStore(t, backend, { fault, clock });
        await createPairs(store);
        light(Infinity, "before", 1);
        await workload(store, "calm", kinds);
        const statements = disarm().seen;
        const outcomes: Outcome[] = [];
        let failures = 0;

        for (const moment of ["before", "after"] as const) {
          for (const times of [1, 4]) {
            for (let n = 1; n <= statements; n++) {
              light(n, moment, times);
              outcomes.push(...(await workload(store, `${moment}-${times}-${n}`, kinds)));
              if (disarm().blown) failures++;
            }
          }
        }

        check(new Set(await readPairs(store)), outcomes);
        assert.ok(statements >= 2 * kinds.length, `only ${statements} statements were seen`);
        assert.ok(failures >= 3 * statements, `only ${failures} of ${4 * statements} rounds had a failure`);
        assert.deepEqual(
          (await workload(store, "afterwards", kinds)).map(({ became }) => became),
          kinds.map(() => "acknowledged"),
        );
      });
    }

    test("a failed commit is unknown only where the server alone knows", async (t) => {
      let armed: Moment | undefined;
      const { store } = await openTestStore(t, backend, {
        fault(moment, text) {
          if (text !== "commit" || moment !== armed) return;
          armed = undefined;
          throw new Error("lost");
        },
      });
      await createPairs(store);

      armed = "before";
      const [before] = await workload(store, "before", ["user"]);

      // SQLite is asked, in this process, and the unit runs again; on PostgreSQL the answer was lost with the connection.
      assert.equal(before?.became, backend === "sqlite" ? "acknowledged" : "unknown");
      assert.deepEqual(await readPairs(store), backend === "sqlite" ? ["before-0"] : []);
    });
  });
}
