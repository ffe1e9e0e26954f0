import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { assertGroup, makeGroups } from "../support/job-group-kills.ts";
import { dies, type KillPoint } from "../support/job-kill-points.ts";
import { jobKinds } from "../support/job-kinds.ts";
import { openLedger } from "../support/job-ledger.ts";
import { untilAllEnded } from "../support/job-story.ts";
import { backends, cleanup, testFolder, testUrl } from "../support/open-test.ts";

// Every point that a turn has. The passes let it settle a success, a failure with a retry and one without, and end a group.
const passes: Readonly<Record<KillPoint["name"], readonly number[]>> = {
  "storage.commit": [5, 7],
  "storage.committed": [6, 8],
  "jobs.settled": [2, 3, 5, 7],
  "jobs.claimed": [1, 2, 4, 6],
  "jobs.step.ran": [1, 3],
  "jobs.step.kept": [2, 4],
  "jobs.finish.worked": [1, 2],
  "jobs.finish.settled": [1, 3],
  "jobs.finish.committed": [1, 2],
};

for (const backend of backends) {
  describe(backend, () => {
    test("killed at any point of a turn, a worker leaves groups that the next one ends as they should", async (t) => {
      const url = await testUrl(t, backend);
      const folder = testFolder(t);
      const kinds = jobKinds({
        ...{ ledger: openLedger(folder), began: () => undefined, aborted: () => undefined },
        gate: () => Promise.resolve(),
      });
      const book = await open(url, { use: Object.values(kinds) });
      cleanup(t, () => book.close());
      await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
      const points = Object.entries(passes).flatMap(([name, each]) =>
        each.map((pass) => ({ name: name as KillPoint["name"], pass })),
      );
      const groups = [];
      for (const [index, point] of points.entries()) groups.push(...(await makeGroups(book, kinds, point, index)));

      const left = [...points];
      const reached = new Set<string>();
      const kill = async (): Promise<void> => {
        for (let point = left.shift(); point !== undefined; point = left.shift()) {
          if (await dies(t, { url, folder, point, book })) reached.add(point.name);
        }
      };
      await Promise.all([kill(), kill(), kill()]);
      // How many turns there are depends on what ends together, so a late pass may not come; every point does.
      assert.deepEqual([...reached].toSorted(), Object.keys(passes).toSorted());
      await book.startWorker();
      await untilAllEnded(book);

      for (const group of groups) await assertGroup(book, folder, group);
      assert.deepEqual(await book.doctor(), []);
    });
  });
}
