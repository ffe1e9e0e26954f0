import { test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { createSteadyTime } from "../../src/core/clock.ts";
import { startTicker } from "../../src/schedules/ticker.ts";
import type { Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";

test("the ticker does not sleep past a slot that another process makes while it looks for the next", async () => {
  const clock = manualClock();
  const [reads, fires] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const answer = Promise.withResolvers<{ at: number | null }[]>();
  let hear: (channel: string | null) => void = () => undefined;
  let asked = 0;
  let fired = 0;
  const fake: Pick<Store, "clock" | "waitClock" | "time" | "onWake" | "read" | "write"> = {
    clock,
    waitClock: clock,
    time: createSteadyTime(clock),
    onWake: (listener) => ((hear = listener), () => undefined),
    async read<R>(statement: Sql) {
      if (!JSON.stringify(statement).includes("min(next_at)")) return [];
      if (++asked > 1) return [{ at: clock.now() }] as R[];
      reads.resolve();
      return (await answer.promise) as R[];
    },
    async write() {
      if (++fired === 2) fires.resolve();
      return false as never;
    },
  };
  const ticker = startTicker({ store: fake as Store, kinds: {} });
  await reads.promise;

  hear(null); // It was made, and what was read a moment ago does not know of it.
  answer.resolve([{ at: null }]);

  await fires.promise;
  await ticker.stop();
});
