import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { callKillPoints } from "../support/call-kills.ts";
import { eventKillPoints } from "../support/event-kill-points.ts";
import { commandKillPoints, dieAt, killPoints } from "../support/job-kill-points.ts";
import { backends } from "../support/open-test.ts";
import { sinkKillPoints } from "../support/sink-kills.ts";
import { scheduleKillPoints } from "../support/schedule-kill-points.ts";

test("every kill point of the product is among those that are tested", () => {
  const root = join(import.meta.dirname, "../../src");
  const found = globSync("**/*.ts", { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), "utf8").matchAll(/\bkillPoint\("([^"]+)"\)/g)].map(([, name]) => name),
  );

  assert.deepEqual(
    new Set(found),
    new Set([
      ...killPoints,
      ...commandKillPoints,
      ...scheduleKillPoints,
      ...callKillPoints,
      ...sinkKillPoints,
      ...eventKillPoints,
    ]),
  );
});

for (const backend of backends) {
  describe(backend, () => {
    test("killed at any point, a job that finishes with an effect leaves it exactly once", async (t) => {
      // The first commits of a process are its session's and its names'; those after them a claim and a finish. At the second
      // pass of any other point one job has gone by it. `npm run proof` has every pass.
      const passes = killPoints.flatMap((name) =>
        (name.startsWith("storage.") ? [1, 5, 6, 7] : [2]).map((pass) => ({ name, pass })),
      );

      const missed = await dieAt(t, backend, passes);

      assert.deepEqual(missed, []);
    });
  });
}
