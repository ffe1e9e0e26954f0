import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { backends } from "../support/open-test.ts";
import { assertEachOnce, scheduleBench, scheduleKillPoints } from "../support/schedule-kill-points.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("killed anywhere between slot and job, there is never one without the other", async (t) => {
      const { book, start, untilDecided } = await scheduleBench(t, backend, ["seconds"]);
      const points = [
        ...scheduleKillPoints.flatMap((name) => [`${name}:1`, `${name}:2`]),
        // The first commits of a process are its session's; those after them fire, claim and settle.
        ...[3, 4, 5].flatMap((pass) => [`storage.commit:${pass}`, `storage.committed:${pass}`]),
      ];

      for (const point of points) {
        const { signal, stderr } = await start(point).ended;
        assert.equal(signal, "SIGKILL", `${point}: ${stderr}`);
        await assertEachOnce(book);
      }

      const { items } = await book.schedules.decisions("seconds");
      const child = start();
      await untilDecided(items.length + 2);
      await child.kill();
      await assertEachOnce(book);
    });

    test("two processes fire each slot once", async (t) => {
      const { book, start, untilDecided } = await scheduleBench(t, backend, ["a", "b", "c"]);
      const both = [start(), start()];
      await Promise.all(both.map((child) => child.hear("working")));

      await untilDecided(12);

      await Promise.all(both.map((child) => child.kill()));
      await assertEachOnce(book);
    });
  });
}
