import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manualClock } from "../../src/index.ts";
import { askForTurn, reservationsOf, takeDirect, work } from "../jobs/direct.ts";
import { leave } from "../jobs/leave.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const day = 86_400_000;

for (const backend of backends) {
  describe(backend, () => {
    test("a reservation leaves with its direct work, one made by hand by its age, and one that is held stays", async (t) => {
      const at = await openEngine(t, backend, { use: [work], clock: manualClock({ at: Date.UTC(2026, 5, 1) }) });
      const [mine, theirs] = [reservationsOf(at), reservationsOf(at, at.session, "acme")];
      await runDirect(at);
      await mine.release((await mine.reserve("by-hand")).id);
      await mine.release((await mine.reserve("elsewhere")).id);
      await theirs.release((await theirs.reserve("by-hand")).id);
      await at.clock.advance(day);
      await runDirect(at);
      await mine.release((await mine.reserve("by-hand")).id);
      await mine.reserve("held");
      const count = async (): Promise<number> => (await at.rows("select seq from daybook_reservation")).length;
      const counts = async (options: Parameters<typeof leave>[1]): Promise<number[]> => {
        const { jobs, reservations } = await leave(at, options);
        return [jobs, reservations, await count()];
      };

      // A rule about names or ends is about jobs, and so is one without an age.
      assert.deepEqual(await counts({ olderThan: "12h", name: "nobody" }), [0, 0, 7]);
      assert.deepEqual(await counts({ olderThan: "12h", status: "failed" }), [0, 0, 7]);
      assert.deepEqual(await counts({ keep: 5 }), [0, 0, 7]);
      assert.deepEqual(await counts({ olderThan: "12h", queue: "by-hand", dryRun: true }), [0, 1, 7]);
      assert.deepEqual(await counts({ olderThan: "12h", dryRun: true }), [1, 3, 7]);

      assert.deepEqual(await counts({ olderThan: "12h", queue: "by-hand" }), [0, 1, 6]);
      assert.deepEqual(await counts({ olderThan: "12h", keep: 1 }), [1, 2, 4]);
      assert.deepEqual(await counts({ olderThan: "12h", keep: 1 }), [0, 0, 4]);
      assert.deepEqual(await counts({ keep: 0 }), [1, 1, 3]);
      assert.deepEqual(await counts({ olderThan: 0 }), [0, 1, 2]);
      const gone = await at.rows<{ what: string; reason: string; removed: number }>(
        "select what, reason, removed from daybook_eviction where what in ('job', 'reservation') order by what, reason",
      );
      assert.deepEqual(
        gone.map(({ what, reason, removed }) => `${removed} ${what} by ${reason}`),
        ["1 job by age", "1 job by count", "4 reservation by age", "1 reservation by count"],
      );
      assert.deepEqual([(await mine.list({ all: true })).length, (await theirs.list({ all: true })).length], [1, 1]);
      await assertInvariants(at);
    });
  });
}

async function runDirect(at: TestEngine): Promise<void> {
  const turn = await askForTurn(at);
  const [claimed] = (await takeDirect(at, turn)).jobs;
  await at.end(claimed ?? assert.fail(), { status: "success" });
  const [{ jobId } = { jobId: null }] = await reservationsOf(at).list({ all: true });
  assert.equal(jobId, turn.jobId);
}
