import { describe, test } from "node:test";
import { killGroups } from "../support/job-group-kills.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("killed at any point of a turn, a worker leaves groups that the next one ends as they should", async (t) => {
      // Every point that a turn has. The passes let it settle a success, a failure with a retry and one without, and end a
      // group; `npm run proof` has more of each.
      await killGroups(t, backend, {
        "storage.commit": [5, 7],
        "storage.committed": [6],
        "jobs.settled": [3, 7],
        "jobs.claimed": [2, 6],
        "jobs.step.ran": [3],
        "jobs.step.kept": [2],
        "jobs.finish.worked": [2],
        "jobs.finish.settled": [3],
        "jobs.finish.committed": [1],
      });
    });
  });
}
