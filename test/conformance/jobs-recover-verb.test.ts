import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const work = job<{ n: number }>("work", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("recover says what it would end, ends it once, and leaves the living alone", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      await at.jobs.enqueueMany(work, [{ n: 1 }, { n: 2 }, { n: 3 }]);
      const dead = await at.newSession();
      await at.claim(2, at.claimer(dead.seq));
      const [living] = await at.claim(1);
      await at.run(
        `update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${dead.seq}`,
      );

      const dry = await at.jobs.recover({ dryRun: true });
      assert.deepEqual(dry, { dryRun: true, lost: 2, reservations: 0, recovered: 0 });
      assert.deepEqual(await at.jobs.recover(), { ...dry, dryRun: false, recovered: 2 });
      assert.deepEqual(await at.jobs.recover(), { dryRun: false, lost: 0, reservations: 0, recovered: 0 });
      assert.equal((await at.jobs.get(living?.id ?? "")).status, "running");
      await assert.rejects(at.jobs.recover({ dryrun: true } as never), /did you mean "dryRun"\?/);
    });

    test("each of many may have options of its own, and a name may stand for the definition", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const params = [{ n: 1 }, { n: 2 }, { n: 1 }];
      const made = await at.jobs.enqueueMany(work, params, ({ n }, index) => ({ key: `k${n}`, priority: index }));
      assert.deepEqual(
        made.map(({ created }) => created),
        [true, true, false],
      );
      assert.equal(made[2]?.id, made[0]?.id);
      assert.equal((await at.jobs.enqueueMany("work", [{ n: 9 }])).length, 1);
    });
  });
}
