// How published events are found: by their numbers, each once, also when numbers are missing or cannot be read for a while.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { followPublished } from "../../src/events/live/follow.ts";
import type { EventRow } from "../../src/events/event.ts";
import { rawSql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { backends, cleanup, openTestStore, type Backend } from "../support/open-test.ts";

type Scene = {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly heard: number[];
  readonly failures: boolean[];
};

/** A follower whose next reads fail as the test says, and which is told of other processes by hand. */
async function openScene(t: TestContext, backend: Backend): Promise<Scene & { wake(): void; stop(): void }> {
  const clock = manualClock();
  const { store } = await openTestStore(t, backend, { clock, waitClock: clock });
  const heard: number[] = [];
  const failures: boolean[] = [];
  let tell: (channel: string | null) => void = () => undefined;
  await insert(store, [1, 2, 5]);
  const follower = await followPublished(
    {
      ...store,
      read: (statement) => (failures.shift() === true ? Promise.reject(new Error("no")) : store.read(statement)),
      onWake: (hear) => ((tell = hear), () => undefined),
    },
    { wants: (_tenant, topic) => topic === "wanted", hear: ({ seq }: EventRow) => void heard.push(seq) },
  );
  cleanup(t, () => follower.stop());
  return { store, clock, heard, failures, wake: () => tell(null), stop: follower.stop };
}

/** As another process leaves them: without a word to this one. */
async function insert(store: Store, seqs: readonly number[], topic = "wanted"): Promise<void> {
  const rows = seqs.map((seq) => `(${seq}, 'default', 'e-${seq}', '${topic}', '{}', 100, 1, 1, 'e-${seq}', 0, 0)`);
  const into = `insert into daybook_event (seq, tenant_id, id, topic, payload, priority, published_at, available_at, root_event_id,
    chain_depth, deliveries)`;
  await store.write((tx) => tx.run(rawSql(`${into} values ${rows.join(", ")}`)));
}

async function untilHeard({ clock, heard }: Scene, count: number): Promise<void> {
  while (heard.length < count) await clock.nextTurn();
}

for (const backend of backends) {
  describe(`following on ${backend}`, () => {
    test("earlier events are not heard, and numbers that were passed over are heard when they appear", async (t) => {
      const scene = await openScene(t, backend);

      await insert(scene.store, [9]);
      await insert(scene.store, [10], "unwanted");
      scene.wake();
      await untilHeard(scene, 1);
      await insert(scene.store, [3, 7, 8, 11]);
      scene.wake();
      scene.wake();
      await untilHeard(scene, 5);
      await insert(scene.store, [12]);
      scene.wake();
      await untilHeard(scene, 6);

      assert.deepEqual(scene.heard, [9, 3, 7, 8, 11, 12]);
    });

    test("many are read in parts, and a book that cannot be read for a moment is asked again", async (t) => {
      const scene = await openScene(t, backend);
      const seqs = Array.from({ length: 450 }, (_, index) => index + 6);

      // First the numbers cannot be read, and then what stands under them.
      scene.failures.push(true, false, true);
      await insert(scene.store, seqs);
      scene.wake();
      await scene.clock.advance(1000);
      while (scene.failures.length > 0) await scene.clock.nextTurn();
      assert.deepEqual(scene.heard, []);
      await scene.clock.advance(1000);
      await untilHeard(scene, 450);

      assert.deepEqual(new Set(scene.heard), new Set(seqs));
      assert.equal(scene.heard.length, 450);
    });

    test("a number that stays missing is forgotten after a while, and nothing is heard once it was stopped", async (t) => {
      const scene = await openScene(t, backend);

      await scene.clock.advance(600_001);
      await insert(scene.store, [3, 6]);
      scene.wake();
      await untilHeard(scene, 1);
      scene.stop();
      await insert(scene.store, [7]);
      scene.wake();
      await scene.clock.advance(10_000);

      assert.deepEqual(scene.heard, [6]);
    });
  });
}
