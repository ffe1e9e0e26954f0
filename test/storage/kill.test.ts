// SIGKILL while a process writes. `npm run proof` does the same two hundred times, and kills the server too.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startChild } from "../support/child-process.ts";
import { backends, testUrl } from "../support/open-test.ts";
import { assertWhole, killRounds } from "./kill-rounds.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("8 kills lose no acknowledged unit and leave no half one", async (t) => {
      await killRounds(t, { url: await testUrl(t, backend), rounds: 8 });
    });

    // One writer, whose units are a user's, the engine's and a shared one, in turns.
    for (const nth of [1, 2, 3]) {
      test(`a process that ends just before commit ${nth} has written ${nth - 1} units`, async (t) => {
        const url = await testUrl(t, backend);

        const child = startChild(t, "fill", [url, "a", "1"], { env: { DAYBOOK_CRASH_AT: `storage.commit:${nth}` } });
        const { signal, stderr } = await child.ended;

        assert.equal(signal, "SIGKILL", stderr);
        assert.equal(child.lines.length, nth - 1);
        assert.deepEqual(await assertWhole(url, new Set(child.lines)), child.lines);
      });

      test(`a process that ends just after commit ${nth} has written ${nth} units, the last unacknowledged`, async (t) => {
        const url = await testUrl(t, backend);

        const child = startChild(t, "fill", [url, "a", "1"], { env: { DAYBOOK_CRASH_AT: `storage.committed:${nth}` } });
        const { signal, stderr } = await child.ended;

        assert.equal(signal, "SIGKILL", stderr);
        assert.equal(child.lines.length, nth - 1);
        const present = await assertWhole(url, new Set(child.lines));
        assert.deepEqual(present, [...child.lines, `a-${String(nth - 1).padStart(5, "0")}`]);
      });
    }
  });
}
